"""A build, proven and not, beside Olive's optimisation of the same model for the same device."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bars import set_bar
from document import Row, Section, Table
from pairs import Pairs, show_ratio, show_seconds
from processes import CommandError, Ran, run_timed
from subjects.precision_cases import make_subject
from subjects.precision_rivals import OFFLINE, OLIVE_OPTIMIZE, Job, find_program
from workplace import Workplace, build_bundle

BAR = 0.4
MODELS = ("rapidocr_cls", "rapidocr_rec", "minilm")
OLIVE, PROVEN, UNPROVEN = "Olive", "proven build", "without proof"
IMPORT = "import time; began = time.perf_counter(); import torch; print(time.perf_counter() - began)"
Turns = Mapping[str, Sequence[Ran]]
"""What each took, turn by turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The turns of one model."""

    model: str
    turns: Turns

    def pairs(self, who: str, figure: str) -> Pairs:
        """Ours beside Olive's: `seconds` or `cpu_seconds`."""
        ours, theirs = (tuple(getattr(ran, figure) for ran in self.turns[name]) for name in (who, OLIVE))
        return Pairs(ours=ours, theirs=theirs)


def measure(workplace: Workplace) -> Section:
    wanted = [name for name in MODELS if not workplace.models or name in workplace.models]
    taken, failures = [], []
    for name in wanted[:1] if workplace.quick and not workplace.models else wanted:
        try:
            taken.append(_measure(workplace, name))
        except CommandError as error:
            failures.append(f"**{name} could not be measured**: {error.reason}")
    return make_section(taken, (*_describe_olive(workplace), *failures))


def make_section(taken: Sequence[Taken], notes: Sequence[str]) -> Section:
    """The tables of what was taken."""
    columns = ("model", OLIVE, PROVEN, "ratio", f"bar {BAR:g}", UNPROVEN, "ratio")
    cpu = (*columns[:4], *columns[5:])
    return Section(
        name="rivals",
        title="a build beside Olive's",
        method=(
            "Whole processes in turns, on the same model, for ONNX Runtime on this CPU in fp32: `olive optimize`, "
            "`bundler build MODEL --target linux-x64` (the model is judged, the bundle holds its wheels, is installed "
            "from them and is proven), and the same with `--no-prove`. Each starts without what its own earlier runs "
            "left, but for packages and environments. Olive writes a model, and neither judges nor proves it. CPU "
            "seconds are those of the whole tree of processes. Ratios are ours over Olive's, turn by turn."
        ),
        tables=(
            Table(title="Wall time", columns=columns, rows=tuple(map(_wall_row, taken))),
            Table(title="CPU time", columns=cpu, rows=tuple(map(_cpu_row, taken))),
        ),
        notes=tuple(notes),
        figures={
            one.model: {who: [(ran.seconds, ran.cpu_seconds) for ran in runs] for who, runs in one.turns.items()}
            for one in taken
        },
    )


def _measure(workplace: Workplace, name: str) -> Taken:
    """Who begins changes from turn to turn; the first turn makes environments and byte code, and does not count."""
    model = make_subject(workplace, name).model
    runs = _list_runs(workplace, model)
    turns: dict[str, list[Ran]] = {who: [] for who in runs}
    for turn in range(workplace.pick(2, 7) + 1):
        start = turn % len(runs)
        for who in (*list(runs)[start:], *list(runs)[:start]):
            ran = runs[who]()
            print(f"    {name}, {who}: {ran.seconds:.2f} s, CPU {ran.cpu_seconds:.2f} s", file=sys.stderr, flush=True)
            if turn:
                turns[who].append(ran)
    return Taken(model=name, turns=turns)


def _list_runs(workplace: Workplace, model: Path) -> dict[str, Callable[[], Ran]]:
    output = workplace.folder / "olive-out" / "model"
    job = Job(model=model, calibration=model.parent, output=output)

    def optimize() -> Ran:
        ran = run_timed(OLIVE_OPTIMIZE.command(workplace, job), OFFLINE)
        if not (output / OLIVE_OPTIMIZE.result).is_file():
            raise CommandError(["olive"], 0, "error: it wrote no model")
        return ran

    def build(*arguments: str) -> Ran:
        workplace.forget_steps()
        return build_bundle(workplace, model, workplace.empty("out"), arguments=arguments).ran

    return {OLIVE: optimize, PROVEN: build, UNPROVEN: lambda: build("--no-prove")}


def _wall_row(one: Taken) -> Row:
    proven, unproven = (one.pairs(who, "seconds") for who in (PROVEN, UNPROVEN))
    bar = set_bar(one.model, proven.ratios, BAR)
    return (*_start(one.model, proven), bar, show_seconds(unproven.ours), show_ratio(unproven))


def _cpu_row(one: Taken) -> Row:
    proven, unproven = (one.pairs(who, "cpu_seconds") for who in (PROVEN, UNPROVEN))
    return (*_start(one.model, proven), show_seconds(unproven.ours), show_ratio(unproven))


def _start(model: str, pairs: Pairs) -> tuple[str, ...]:
    return (model, show_seconds(pairs.theirs), show_seconds(pairs.ours), show_ratio(pairs))


def _describe_olive(workplace: Workplace) -> tuple[str, ...]:
    """The command, what is installed, and how much of its time is the import of what it does not use here."""
    command = " ".join(OLIVE_OPTIMIZE.arguments(Job(model=Path("MODEL"), calibration=Path(), output=Path("OUTPUT"))))
    try:
        python = str(find_program(workplace, OLIVE_OPTIMIZE.environment, "python"))
        versions = run_timed([python, "-c", _VERSIONS]).output.strip()
        imports = [float(run_timed([python, "-c", IMPORT]).output) for _ in range(workplace.pick(1, 5))]
    except CommandError as error:
        return (f"**Olive could not be installed**: {error.reason}",)
    return (
        f"Olive: `olive {command}`; {versions}, by `benchmarks/locks/olive.txt`. Its messages home are off.",
        f"Of Olive's time, {statistics.median(imports):.1f} s is `import torch` (the build that PyPI has, for CUDA).",
    )


_VERSIONS = (
    "from importlib.metadata import version; "
    "print(', '.join(f'{name} {version(name)}' for name in ('olive-ai', 'onnxruntime', 'onnx', 'torch')))"
)
