"""The values that the report's template shows: already counted, sorted and put into words."""

from __future__ import annotations

from dataclasses import dataclass

from bundler.model.manifest import Manifest, VariantProofRecord
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
    """One bar of a chart; `share` in percent of its width, `before` marks what it is compared with."""

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
    """One point: `x` in percent of the width, `y` in pixels, `text` is what its tooltip says."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadRow:
    """One series: every repetition a dot, from p10 to p90 a line, the median a mark; places in percent."""

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
    """Series on one scale, the untouched model's and the bundle's. `verdict` compares their medians."""

    title: str
    verdict: str
    tone: str
    scale: Scale
    rows: tuple[SpreadRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyRow:
    """One check: `dots` are its outputs by greatest absolute error; `sqnr` is the least. Places,
    those of the limits too (`gate`, `sqnr_gate`), are in percent of their scales.
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
    that every output of every stage is equal to the bit, so that there is nothing to draw. `metrics` are sentences on
    the user's own measure, `doubts` on what could not be judged, or only weakly.
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
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """How often an operator occurs after each stage; `changed` where it differs from the stage before."""

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
    """One part of a whole; places in percent, `series` picks its colour."""

    label: str
    start: float
    width: float
    value: str
    series: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedBar:
    """The parts of one variant's nodes."""

    label: str
    total: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftRow:
    """A node that an accelerator left, and why."""

    name: str
    operator: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What one variant's accelerator takes. `segments` are empty where nobody can tell before the device; `gate` is the
    least share in percent, None where there is none. `facts` are terms with their values: what was compiled, and what
    is made on the device. `left_text` is the heading of `left`.
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
    """One first visit, its parts side by side on the scale of all."""

    label: str
    tag: str
    segments: tuple[Segment, ...]
    value: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Which browsers take a build of the runtime."""

    build: str
    browsers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadTotal:
    """One first visit as a row: its parts and their sum with brotli, the sum with gzip and plain, the second visit."""

    variant: str
    build: str
    figures: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadRow:
    """One file that a first visit fetches: with brotli, with gzip, plain."""

    path: str
    role: str
    figures: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloads:
    """What a visitor downloads. `gate` is the budget's place in percent, None where there is no budget."""

    scale: Scale
    bars: tuple[DownloadBar, ...]
    audiences: tuple[Audience, ...]
    gate: float | None
    gate_text: str
    totals: tuple[DownloadTotal, ...]
    files: tuple[DownloadRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One attempt on a chart: `x` in percent of its width, all else in pixels. Its label stands to the right of the
    chart at the height `label_y`, in a row that no other label has. `number` is that of its row in the table.
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
    """Bubbles over two scales. `unit` is where the unchanged model stands, in percent; `strokes` join what nothing else
    beats in both.
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
    """One attempt as a row: `figures` are size, latency, its ratio, and the worst of each figure of accuracy."""

    number: int
    method: str
    title: str
    state: str
    result: str
    figures: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """What was tried for one variant. `chart` is None where fewer than two attempts can be placed."""

    variant: str
    summary: str
    timing: str
    chart: SpotChart | None
    columns: tuple[str, ...]
    rows: tuple[AttemptRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One step as it was taken."""

    title: str
    tag: str
    environment: str
    result: str
    seconds: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRow:
    """Something that a stage had to say."""

    origin: str
    text: str
    warning: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The whole page. A chart that is None was not measured; the text beside it says why. `downloads` is None for a
    bundle that nobody visits, `precisions` are empty where no precision was chosen by trying, `placements` where no
    variant has an accelerator that chooses its nodes; `names_samples` says that some notes name files of samples.
    """

    title: str
    manifest: Manifest
    cards: tuple[Card, ...]
    badge: str
    judged_by_seeds: bool
    names_samples: bool
    verification: tuple[str, ...]
    least_runs: int
    proven: tuple[str, ...]
    unproven: tuple[str, ...]
    proofs: tuple[VariantProofRecord, ...]
    downloads: Downloads | None
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
    files: BarChart
    file_count: str
