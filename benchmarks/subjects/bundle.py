"""Run-time cost of a bundle beside a plain session on the raw model: load time, first inference, steady latency."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bars import set_bar
from document import Section, Table
from feeds import write_feeds
from models import EVERY, Ready, measure_each
from pairs import Pairs, show_number, show_ratio, show_seconds
from processes import run_child
from workplace import Built, Workplace, build_bundle

OPENING_BAR, STEADY_BAR = 0.7, 1.03
SETTLED_SECONDS = 2.2
"""A bundle remembers what it checked only of files that have rested for two seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What was measured of one model: `opening` and `first_start` in fresh processes, `again` and `steady` in one."""

    name: str
    opening: Pairs
    first_start: Pairs
    again: Pairs
    steady: Pairs
    import_runtime: tuple[float, ...]
    import_package: tuple[float, ...]


def measure(workplace: Workplace) -> Section:
    found, failures = measure_each(workplace, [model.name for model in EVERY], _measure)
    taken = list(found.values())
    return Section(
        name="bundle",
        title="the bundle beside a plain session",
        method=(
            "A bundle for linux-x64 beside `InferenceSession(raw model)` with its defaults, on the bundle's golden "
            "input; the files are in the page cache for both. Load time is measured from the call that loads the model "
            "to the end of the first inference."
        ),
        tables=(_opening_table(taken), _steady_table(taken), _import_table(taken)),
        notes=failures,
        figures={one.name: _figures(one) for one in taken},
    )


def _measure(workplace: Workplace, model: Ready) -> Taken:
    built = build_bundle(workplace, model.path, workplace.empty("out"), model.samples)
    feeds = write_feeds(built.payload, workplace.empty("feeds"))[0]
    time.sleep(SETTLED_SECONDS)
    memory = workplace.empty("loader-memory")
    slow = model.path.stat().st_size > 50e6 or sum(file["size"] for file in _files(built)) > 50e6  # noqa: PLR2004 (MB)
    count = workplace.pick(3, 9 if slow else 15)
    package = built.folder / built.package
    opening, imports = _open_in_turns(model.path, package, feeds, memory, count)
    first = _open_first(workplace, model.path, package, feeds, 3)
    counts = workplace.pick(3, 9), workplace.pick(7, 15 if slow else 31)
    environment = {"XDG_CACHE_HOME": str(memory)}
    ran = run_child("side_by_side.py", model.path, package, feeds, *map(str, counts), env=environment)
    answer = json.loads(ran.output)
    return Taken(
        name=model.name,
        opening=opening,
        first_start=first,
        again=_pair(answer["opening"]),
        steady=_pair(answer["steady"]),
        import_runtime=tuple(entry["import_runtime"] for entry in imports),
        import_package=tuple(entry["import_package"] for entry in imports),
    )


def _files(built: Built) -> list[Any]:
    files: list[Any] = built.config["components"][0]["variants"][0]["files"]
    return files


def _pair(answer: Mapping[str, list[float]]) -> Pairs:
    return Pairs(ours=tuple(answer["bundle"]), theirs=tuple(answer["raw"]))


def _open_once(kind: str, place: Path, feeds: Path, memory: Path) -> dict[str, float]:
    ran = run_child("open_once.py", kind, place, feeds, env={"XDG_CACHE_HOME": str(memory)})
    seconds: dict[str, float] = json.loads(ran.output)
    return seconds


def _open_in_turns(
    raw: Path, package: Path, feeds: Path, memory: Path, count: int
) -> tuple[Pairs, list[dict[str, float]]]:
    """Openings with everything remembered, and what the bundle's processes took to import."""
    _open_once("bundle", package, feeds, memory)
    found = []
    for turn in range(count):
        order = (("raw", raw), ("bundle", package))
        found.append(
            {kind: _open_once(kind, place, feeds, memory) for kind, place in (order if turn % 2 else order[::-1])}
        )
    times = {kind: tuple(pair[kind]["first_answer"] for pair in found) for kind in ("bundle", "raw")}
    return Pairs(ours=times["bundle"], theirs=times["raw"]), [pair["bundle"] for pair in found]


def _open_first(workplace: Workplace, raw: Path, package: Path, feeds: Path, count: int) -> Pairs:
    """Openings on a device that never saw the bundle: all is hashed, nothing is kept yet."""
    found = [
        (
            _open_once("bundle", package, feeds, workplace.empty("no-memory"))["first_answer"],
            _open_once("raw", raw, feeds, workplace.empty("no-memory"))["first_answer"],
        )
        for _ in range(count)
    ]
    return Pairs(ours=tuple(pair[0] for pair in found), theirs=tuple(pair[1] for pair in found))


def _opening_table(taken: list[Taken]) -> Table:
    columns = (
        "model",
        "raw",
        "bundle",
        "ratio",
        "of the minima",
        f"bar {OPENING_BAR}",
        "first start ever",
        "same process",
    )
    rows = tuple(
        (
            one.name,
            show_seconds(one.opening.theirs),
            show_seconds(one.opening.ours),
            show_ratio(one.opening),
            f"{one.opening.ratio_of_minima:.2f}",
            set_bar(f"load to first inference: {one.name}", one.opening.ratios, OPENING_BAR),
            f"{one.first_start.ratio:.2f}",
            show_ratio(one.again),
        )
        for one in taken
    )
    return Table(
        title="Load to first inference (fresh processes; the last column: reopened in one)", columns=columns, rows=rows
    )


def _steady_table(taken: list[Taken]) -> Table:
    columns = ("model", "raw", "bundle", "ratio", "of the minima", f"bar {STEADY_BAR}")
    rows = tuple(
        (
            one.name,
            show_seconds(one.steady.theirs),
            show_seconds(one.steady.ours),
            show_ratio(one.steady),
            f"{one.steady.ratio_of_minima:.3f}",
            set_bar(f"steady latency: {one.name}", [round(ratio, 2) for ratio in one.steady.ratios], STEADY_BAR),
        )
        for one in taken
    )
    return Table(title="Steady latency (one process, blocks in turns)", columns=columns, rows=rows)


def _import_table(taken: list[Taken]) -> Table:
    runtime = [value for one in taken for value in one.import_runtime]
    package = [value for one in taken for value in one.import_package]
    ratio = statistics.median((r + p) / r for r, p in zip(runtime, package, strict=True)) if runtime else 0.0
    row = (show_seconds(runtime), show_seconds(package), show_number(ratio)) if runtime else ("", "", "")
    columns = ("NumPy and onnxruntime", "the package on top", "both over the first")
    return Table(title=f"Import ({len(runtime)} processes)", columns=columns, rows=(row,))


def _figures(one: Taken) -> dict[str, Any]:
    names = ("opening", "first_start", "again", "steady")
    pairs = {name: getattr(one, name) for name in names}
    return {name: {"ours": pair.ours, "theirs": pair.theirs, "ratio": pair.ratio} for name, pair in pairs.items()}
