"""What a cold build costs beside a script that does the same checks by hand."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Mapping
from typing import Any

from bars import set_bar
from document import Row, Section, Table
from feeds import write_feeds
from models import Ready, choose, make_ready, measure_each
from pairs import Pairs, alternate, show_number, show_ratio, show_seconds
from processes import run_child
from workplace import Built, Workplace, build_bundle

BAR = 1.5
MODELS = ("rapidocr_cls", "rapidocr_det", "rapidocr_rec", "magika", "resnet50", "encoder_90mb", "skl_regression")
STAGES = ("inspect", "record_golden", "optimize", "convert_ort", "compare", "derive_operators")


def measure(workplace: Workplace) -> Section:
    measured, failures = measure_each(workplace, MODELS, _measure)
    first = make_ready(choose(MODELS)[0], workplace.folder / "models")
    nothing = _build_with_nothing(workplace, first)
    rows = tuple(_row(name, pairs) for name, (pairs, _) in measured.items())
    phases = tuple(_phase_row(name, timings) for name, (_, timings) in measured.items())
    heads = ("model", *STAGES, "emit", "the rest")
    return Section(
        name="build",
        title="a cold build without proof",
        method=(
            "`bundler build --no-prove` for linux-x64 with an empty step cache (wheels are kept) beside one Python "
            "script that does the same checks by hand (`children/bare_build.py`); whole processes."
        ),
        tables=(
            Table(columns=("model", "build", "by hand", "ratio", "bar", ""), rows=rows),
            Table(title="Where a build's time goes (medians, ms)", columns=heads, rows=phases),
        ),
        notes=(
            f"With nothing kept at all, wheels from the index too: {nothing.ran.seconds:.1f} s ({first.name}).",
            (
                "The rest is starting the parent, hashing the model, the manifest, and the report. Stages of one build "
                "may run at once, so that the columns may add up to more than the whole."
            ),
            *failures,
        ),
        figures={name: {"ours": pairs.ours, "theirs": pairs.theirs} for name, (pairs, _) in measured.items()},
    )


def _build_with_nothing(workplace: Workplace, model: Ready) -> Built:
    cache = workplace.empty("cold-cache")
    built = build_bundle(workplace, model.path, workplace.empty("out"), model.samples, cache=cache)
    shutil.rmtree(cache)
    return built


def _measure(workplace: Workplace, model: Ready) -> tuple[Pairs, list[Any]]:
    """Pairs of whole processes, and what each build said of its time."""
    first = build_bundle(workplace, model.path, workplace.empty("reference"), model.samples)
    feeds = workplace.empty("feeds")
    write_feeds(first.payload, feeds)
    timings: list[Any] = []

    def ours() -> float:
        workplace.forget_steps()
        built = build_bundle(workplace, model.path, workplace.empty("out"), model.samples)
        timings.append({"seconds": built.ran.seconds, **built.timings})
        return built.ran.seconds

    def theirs() -> float:
        return run_child("bare_build.py", model.path, first.payload, feeds, workplace.empty("bare")).seconds

    return alternate(ours, theirs, workplace.pick(3, 9)), timings


def _row(name: str, pairs: Pairs) -> Row:
    shown = show_seconds(pairs.ours), show_seconds(pairs.theirs), show_ratio(pairs)
    return (name, *shown, f"{BAR:g} times", set_bar(name, pairs.ratios, BAR))


def _phase_row(name: str, timings: list[Any]) -> tuple[str, ...]:
    split = [_split(timing) for timing in timings]
    columns = (*STAGES, "emit", "rest")
    return (name, *(show_number(1000 * statistics.median(entry[column] for entry in split)) for column in columns))


def _split(timing: Mapping[str, Any]) -> dict[str, float]:
    """Seconds by stage and phase; what no part accounts for is the rest."""
    parts = dict.fromkeys(STAGES, 0.0)
    for step in timing["steps"]:
        parts[step["stage"]] += step["seconds"]
    parts["emit"] = timing["phases"].get("emit", 0.0)
    return {**parts, "rest": timing["seconds"] - sum(parts.values())}
