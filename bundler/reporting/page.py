"""The values that the report's template shows: counted, sorted and formatted."""

from __future__ import annotations

from dataclasses import dataclass

from bundler.model.manifest import Manifest
from bundler.model.plan import Decision
from bundler.reporting.scales import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One figure of the headline. `tone` is `good`, `bad`, `plain` or `none` (not measured)."""

    label: str
    value: str
    change: str
    detail: str
    tone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar of a chart; `share` in percent of its width, `before` marks the baseline."""

    label: str
    tag: str
    value: str
    detail: str
    share: float
    before: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """Bars on one scale."""

    scale: Scale
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One point: `x` in percent of the width, `y` in pixels, `text` is its tooltip."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadRow:
    """One series: a dot for each run, a line from p10 to p90, a mark at the median; positions in percent."""

    label: str
    before: bool
    dots: tuple[Dot, ...]
    low: float
    high: float
    median: float
    value: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadChart:
    """Series on one scale, the original model's and the bundle's. `verdict` compares their medians."""

    title: str
    verdict: str
    tone: str
    scale: Scale
    rows: tuple[SpreadRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyRow:
    """One check: `dots` are its outputs by largest absolute error; `sqnr` is the lowest. Positions, including those of
    the limits (`gate`, `sqnr_gate`), are in percent of their scales.
    """

    label: str
    tag: str
    equal: bool
    dots: tuple[Dot, ...]
    error: str
    sqnr: float | None
    sqnr_text: str
    gate: float | None
    sqnr_gate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyCell:
    """One output after one stage, for the table."""

    stage: str
    output: str
    figures: tuple[str, ...]
    remark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Accuracy by stage. `gate_text` and `sqnr_gate_text` name the limits, empty where there are none; `equal` says
    that every output of every stage is bit-identical, so that there is nothing to draw. `metrics` are sentences on the
    user's own metric and on the steps of a stream, which `drift` draws; `doubts` on outputs that the golden set cannot
    judge, or only weakly.
    """

    samples: int
    error_scale: Scale
    sqnr_scale: Scale
    gate_text: str
    sqnr_gate_text: str
    equal: bool
    rows: tuple[AccuracyRow, ...]
    table: tuple[AccuracyCell, ...]
    metrics: tuple[str, ...] = ()
    drift: BarChart | None = None
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """An operator's count after each stage; `changed` where it differs from the stage before."""

    name: str
    counts: tuple[str, ...]
    changed: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operators:
    """Nodes by stage as a chart, and operators by stage as a table."""

    chart: BarChart
    stages: tuple[str, ...]
    rows: tuple[OperatorRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One part of a whole; positions in percent, `series` selects its colour."""

    label: str
    start: float
    width: float
    value: str
    series: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedBar:
    """One variant's nodes by provider."""

    label: str
    total: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftRow:
    """A node that is not assigned to the accelerator, with the reason."""

    name: str
    operator: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The nodes assigned to one variant's accelerator. `segments` are empty where only the device shows it; `gate` is
    the minimum share in percent, None where there is none. `facts` are terms with their values: what was compiled, and
    what is generated on the device. `left_text` is the heading of `left`.
    """

    variant: str
    segments: tuple[Segment, ...]
    total: str
    gate: float | None
    verdict: str
    tone: str
    facts: tuple[tuple[str, str], ...]
    left: tuple[LeftRow, ...]
    left_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadBar:
    """One first visit, its parts side by side on a common scale."""

    label: str
    tag: str
    segments: tuple[Segment, ...]
    value: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """The browsers that use a build of the runtime."""

    build: str
    browsers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadTotal:
    """One first visit as a row: parts and total with brotli, total with gzip, total uncompressed, second visit."""

    variant: str
    build: str
    figures: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadRow:
    """One file of a first visit: with brotli, with gzip, uncompressed."""

    path: str
    role: str
    figures: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloads:
    """The download sizes. `gate` is the budget's position in percent, None where there is no budget."""

    scale: Scale
    bars: tuple[DownloadBar, ...]
    audiences: tuple[Audience, ...]
    gate: float | None
    gate_text: str
    totals: tuple[DownloadTotal, ...]
    files: tuple[DownloadRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One attempt on a chart: `x` in percent of its width, all else in pixels. Its label is to the right of the chart
    at the height `label_y`, in a row of its own. `number` is that of its row in the table.
    """

    x: float
    y: float
    radius: float
    state: str
    number: int
    label: str
    text: str
    label_y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """A line from one point to another; `x` in percent, `y` in pixels."""

    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A labelled height of a chart, in pixels from its top."""

    y: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotChart:
    """Bubbles over two scales. `unit` is the position of the unchanged model in percent; `strokes` are the Pareto
    frontier.
    """

    figure: str
    scale: Scale
    height: int
    levels: tuple[Level, ...]
    unit: float
    strokes: tuple[Stroke, ...]
    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """One attempt as a row: `figures` are size, latency, latency ratio, and the worst of each accuracy figure."""

    number: int
    method: str
    title: str
    state: str
    result: str
    figures: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """The attempts for one variant. `chart` is None where fewer than two of them can be drawn."""

    variant: str
    summary: str
    timing: str
    chart: SpotChart | None
    columns: tuple[str, ...]
    rows: tuple[AttemptRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One executed step."""

    title: str
    tag: str
    environment: str
    result: str
    seconds: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRow:
    """A note or warning of a stage."""

    origin: str
    text: str
    warning: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The sections of one component. A chart that is None was not measured; the text beside it says why. `precisions`
    are empty where no precision was chosen by measuring, `placements` where no variant has an accelerator that chooses
    its nodes; `names_samples` says that some notes name files of samples. `key` begins its elements' ids.
    """

    name: str
    key: str
    model: str
    cards: tuple[Card, ...]
    judged_by_seeds: bool
    names_samples: bool
    sizes: BarChart
    speed: tuple[SpreadChart, ...]
    unmeasured: str
    precisions: tuple[Precision, ...]
    accuracy: Accuracy | None
    operators: Operators | None
    placements: tuple[Placement, ...]
    providers: tuple[StackedBar, ...]
    unassigned: str
    decisions: tuple[Decision, ...]
    notes: tuple[NoteRow, ...]
    steps: tuple[StepRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The whole page: what is of the bundle, and a part for each component. Only web bundles have `downloads`;
    `phases` are the rows of a bundle of several components for what is done once.
    """

    title: str
    manifest: Manifest
    cards: tuple[Card, ...]
    badge: str
    judged_by_seeds: bool
    verification: tuple[str, ...]
    least_runs: int
    proven: tuple[str, ...]
    unproven: tuple[str, ...]
    downloads: Downloads | None
    brief_seconds: str
    parts: tuple[Part, ...]
    phases: tuple[StepRow, ...]
    files: BarChart
    file_count: str
