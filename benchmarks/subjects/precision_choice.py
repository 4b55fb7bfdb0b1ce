"""The automatic choice beside the best that any rival gives, and the memory of calibration as the data grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bars import set_bar
from document import Row, Table
from pairs import Pairs, show_ratio, show_seconds
from processes import Peak, watch_memory
from subjects.precision_cases import ROOT, Subject
from subjects.precision_rivals import OFFLINE, OLIVE_STATIC, Job
from subjects.precision_runs import FAILURES, Bench, Findings, Made, describe_reason, judge_model, show_size

LEAST_SQNR_DB = 15.0
"""The gate of both sides: what int8 is held to when a profile says nothing."""
NOISE = 0.03
UNTOUCHED = "the original model"
MEBIBYTE = 2**20
FEW, MANY = 50, 500
CONSTANT = 1.1


@dataclass(slots=True, kw_only=True)
class Choice:
    """What `auto` chose for one model, its attempts, and how it runs beside each rival's model that holds the gate."""

    subject: str
    chosen: str = ""
    seconds: float = 0.0
    attempts: tuple[Mapping[str, Any], ...] = ()
    made: Made | None = None
    races: dict[str, Pairs] = field(default_factory=dict)
    failed: str = ""

    @property
    def best_rival(self) -> str | None:
        """The one that is fastest beside ours."""
        return max(self.races, key=lambda who: self.races[who].ratio, default=None)


def choose_automatically(bench: Bench, subject: Subject, findings: Sequence[Findings]) -> Choice:
    """Build with `auto`, and race the bundle against all that rivals made of that model and that holds the gate."""
    choice = Choice(subject=subject.name)
    gate = ("--set", f"accuracy.sqnr_db={LEAST_SQNR_DB:g}")
    arguments = ("--set", "precision.method=auto", *gate)
    try:
        built = bench.build(arguments, subject, "--no-prove")
        choice.seconds, choice.made = built.ran.seconds, bench.judge_bundle(built, subject)
        frontier = next(iter(built.answer["decisions"].values()))["answer"]
        choice.chosen, choice.attempts = frontier["chosen"], tuple(frontier["attempts"])
        bench.diary.note(subject.name, "auto", "chosen", [choice.chosen, choice.seconds, choice.attempts])
        others = {name_race(one, who): made for one in findings for who, made in _list_rivals(one)}
        size = subject.model.stat().st_size
        others[UNTOUCHED] = judge_model(subject, subject.model, size)
        for who, made in others.items():
            if (made.figures["sqnr_db"] or 0.0) >= LEAST_SQNR_DB and Path(made.model).exists():
                choice.races[who] = bench.race(built, subject, made.model)
                bench.diary.note(subject.name, "auto", f"beside {who}", round(choice.races[who].ratio, 3))
    except FAILURES as error:
        choice.failed = describe_reason(error)
        bench.diary.note(subject.name, "auto", "failed", str(error)[-2000:])
    return choice


def name_race(found: Findings, who: str) -> str:
    """Under which name the race with what `who` made in that case is kept."""
    return f"{found.title}: {who}"


def _list_rivals(found: Findings) -> list[tuple[str, Made]]:
    return [(who, made) for who, made in found.made.items() if who in found.rivals]


def choice_table(choices: Sequence[Choice]) -> Table:
    """One row a model."""
    columns = ("model", "chosen", "size", "SQNR", "a call, beside the original model", "fastest that holds the gate")
    return Table(
        title=f"Automatic choice (gate: {LEAST_SQNR_DB:g} dB for both sides)",
        columns=(*columns, "ours over it", "bar 1.0", "time of the build"),
        rows=tuple(_choice_row(choice) for choice in choices if choice.made is not None),
    )


def _choice_row(choice: Choice) -> Row:
    made, best = choice.made, choice.best_rival
    raw = choice.races.get(UNTOUCHED)
    ratio = choice.races[best] if best else None
    return (
        choice.subject,
        choice.chosen,
        show_size(made.size if made else 0),
        f"{(made.figures['sqnr_db'] if made else None) or 0:.1f} dB",
        f"{show_seconds(raw.ours)}, {raw.ratio:.2f} of its time" if raw else "",
        best or "none",
        show_ratio(ratio) if ratio else "",
        set_bar(f"automatic choice: {choice.subject}", ratio.ratios, 1 + NOISE) if ratio else "",
        f"{choice.seconds:.1f} s",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Peak memory of the same command with few and with many calibration samples, or why it failed."""

    who: str
    few: Peak | None = None
    many: Peak | None = None
    failed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growths:
    """All calibration methods, as they are kept on disk."""

    found: tuple[Growth, ...]


def measure_growth(bench: Bench, subject: Subject) -> Growths:
    """Calibration of the orientation classifier's model with 50 and with 500 real images."""
    import sys  # noqa: PLC0415

    sys.path.insert(0, str(ROOT))
    from tests.support import text_images  # noqa: PLC0415

    counts = (5, FEW) if bench.workplace.quick else (FEW, MANY)
    sets = [text_images.write_line_samples(bench.workplace.empty(f"lines-{count}"), count) for count in counts]
    found = [_grow(bench, subject, sets, method) for method in ("minmax", "entropy", "percentile")]
    return Growths(found=(*found, _grow(bench, subject, sets, "")))


def _grow(bench: Bench, subject: Subject, sets: Sequence[Path], method: str) -> Growth:
    who = f"bundler build, {method}" if method else OLIVE_STATIC.name
    try:
        peaks = [_weigh(bench, replace(subject, calibration=folder), method) for folder in sets]
    except FAILURES as error:
        bench.diary.note("memory", who, "failed", str(error)[-2000:])
        return Growth(who=who, failed=describe_reason(error))
    bench.diary.note("memory", who, "peaks", [peak.shared_out for peak in peaks])
    return Growth(who=who, few=peaks[0], many=peaks[1])


def _weigh(bench: Bench, subject: Subject, method: str) -> Peak:
    if not method:
        output = bench.workplace.folder / "precision" / subject.name / "rivals" / "growth"
        job = Job(model=subject.model, calibration=subject.calibration, output=output)
        return watch_memory(OLIVE_STATIC.command(bench.workplace, job), OFFLINE)
    settings = {"precision.method": "static-int8-full", "precision.calibration": method, "accuracy.sqnr_db": "-100"}
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return watch_memory(bench.command(words, subject, "--no-prove"), OFFLINE)


def growth_table(found: Sequence[Growth], *, quick: bool) -> Table:
    """One row a calibration method."""
    few, many = (5, FEW) if quick else (FEW, MANY)
    columns = ("", f"{few} images", f"{many} images", "ratio", "without files", f"bar {CONSTANT}")
    return Table(
        title="Peak memory of static quantisation as the data grow (rapidocr_cls, whole tree)",
        columns=columns,
        rows=tuple(_growth_row(one) for one in found),
    )


def _growth_row(one: Growth) -> Row:
    if one.few is None or one.many is None:
        return (one.who, "failed", one.failed[:100], "", "", "")
    ratio = one.many.shared_out / one.few.shared_out
    own = one.many.own / (one.few.own or 1)
    sizes = (f"{peak.shared_out / MEBIBYTE:.0f} MiB" for peak in (one.few, one.many))
    return (
        one.who,
        *sizes,
        f"{ratio:.2f}",
        f"{own:.2f}",
        set_bar(f"memory as the data grow: {one.who}", [ratio], CONSTANT),
    )
