"""What one call costs beside a plain session, what four callers get done, and what spinning threads gain or lose."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bars import set_bar
from document import Section, Table
from feeds import write_feeds
from models import Ready, measure_each
from pairs import Pairs, show_number, show_ratio
from processes import PYTHON, run_child
from workplace import Workplace, build_bundle

SMALL = ("skl_regression", "skl_forest", "magika")
"""Calls of microseconds, in which the loader's own work shows."""
PARALLEL = ("rapidocr_cls", "rapidocr_rec", "encoder_5mb")
"""Calls that several threads share."""
WAYS = ("run", "run_named")
CALL_BAR, CALLERS_BAR = 1.05, 0.98
BUSY_BAR, QUIET_BAR = 2.0, 1.0
SETTLED_SECONDS = 2.2
"""A bundle remembers what it checked only of files that have rested for two seconds."""
BURNER = "while True: pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Of each turn, by name: a figure by the wall, and the same by CPU seconds."""

    name: str
    figures: dict[str, list[tuple[float, float]]]

    def pair(self, ours: str, theirs: str, *, cpu: bool = False) -> Pairs:
        """Two of them, by the wall or by CPU seconds."""
        column = int(cpu)
        one, other = (tuple(turn[column] for turn in self.figures[name]) for name in (ours, theirs))
        return Pairs(ours=one, theirs=other)


def measure(workplace: Workplace) -> Section:
    small, small_failures = measure_each(workplace, SMALL, _measure_small)
    parallel, failures = measure_each(workplace, PARALLEL, _measure_parallel)
    return Section(
        name="calls",
        title="calls of a bundle beside a plain session, and threads that spin",
        method=(
            "A bundle for linux-x64 beside `InferenceSession(raw model)` with its defaults, on the bundle's golden "
            "input, in turns within one process; a plain session gets a dictionary, as `run_named` does. Spinning: "
            "four callers of the bundle with and without it; the busy machine has "
            f"{os.cpu_count()} more processes that never wait."
        ),
        tables=(
            _call_table([alone for alone, _ in small.values()]),
            _callers_table([together for _, together in small.values()]),
            _spinning_table(list(parallel.values())),
        ),
        notes=(*small_failures, *failures),
        figures={
            **{name: {"alone": alone.figures, "together": both.figures} for name, (alone, both) in small.items()},
            **{name: {"quiet": quiet.figures, "busy": busy.figures} for name, (quiet, busy) in parallel.items()},
        },
    )


def _measure_small(workplace: Workplace, model: Ready) -> tuple[Taken, Taken]:
    given = _prepare(workplace, model)
    return _run(workplace, model, "alone", given, 41), _run(workplace, model, "together", given, 15)


def _measure_parallel(workplace: Workplace, model: Ready) -> tuple[Taken, Taken]:
    given = _prepare(workplace, model)
    quiet = _run(workplace, model, "spinning", given, 15)
    with _burn():
        return quiet, _run(workplace, model, "spinning", given, 15)


def _prepare(workplace: Workplace, model: Ready) -> tuple[Path, ...]:
    built = build_bundle(workplace, model.path, workplace.empty("out"), model.samples)
    feeds = write_feeds(built.payload, workplace.empty("feeds"))[0]
    time.sleep(SETTLED_SECONDS)
    return model.path, built.folder / built.package, feeds


def _run(workplace: Workplace, model: Ready, kind: str, given: Sequence[Path], turns: int) -> Taken:
    memory = {"XDG_CACHE_HOME": str(workplace.empty("loader-memory"))}
    ran = run_child("calls.py", kind, *given, str(workplace.pick(5, turns)), env=memory)
    return Taken(name=model.name, figures=json.loads(ran.output))


@contextmanager
def _burn() -> Iterator[None]:
    """Keep every processor busy."""
    burners = [subprocess.Popen([PYTHON, "-c", BURNER]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def _call_table(taken: Sequence[Taken]) -> Table:
    rows = []
    for one in taken:
        for way in WAYS:
            pair = one.pair(way, "raw")
            bar = set_bar(f"cost of a call, {way}: {one.name}", pair.ratios, CALL_BAR)
            cpu = f"{one.pair(way, 'raw', cpu=True).ratio:.3f}"
            rows.append(
                (one.name, way, _microseconds(pair.theirs), _microseconds(pair.ours), show_ratio(pair), cpu, bar)
            )
    columns = ("model", "call", "raw", "bundle", "ratio", "of CPU seconds", f"bar {CALL_BAR}")
    return Table(title="One caller, microseconds a call", columns=columns, rows=tuple(rows))


def _callers_table(taken: Sequence[Taken]) -> Table:
    rows = []
    for one in taken:
        for way in WAYS:
            pair = one.pair(way, "raw")
            bar = set_bar(f"four callers, {way}: {one.name}", pair.ratios, CALLERS_BAR, at_least=True)
            cpu = f"{one.pair(way, 'raw', cpu=True).ratio:.3f}"
            rows.append((one.name, way, _rate(pair.theirs), _rate(pair.ours), show_ratio(pair), cpu, bar))
    columns = ("model", "call", "raw", "bundle", "ratio", "of calls a CPU second", f"bar {CALLERS_BAR} at least")
    return Table(title="Four callers at once, calls a second", columns=columns, rows=tuple(rows))


def _spinning_table(taken: Sequence[tuple[Taken, Taken]]) -> Table:
    rows = []
    for pair_of_hosts in taken:
        for host, limit, one in zip(("quiet", "busy"), (QUIET_BAR, BUSY_BAR), pair_of_hosts, strict=True):
            pair = one.pair("sleeping", "spinning")
            name = f"no spinning on a {host} machine: {one.name}"
            bar = set_bar(name, pair.ratios, limit, at_least=True, said=f"{limit} at least: ")
            cpu = f"{one.pair('sleeping', 'spinning', cpu=True).ratio:.2f}"
            rows.append((one.name, host, _rate(pair.theirs), _rate(pair.ours), show_ratio(pair), cpu, bar))
    columns = ("model", "machine", "spinning", "no spinning", "ratio", "of calls a CPU second", "bar")
    return Table(title="Threads that spin, four callers, calls a second", columns=columns, rows=tuple(rows))


def _microseconds(seconds: Sequence[float]) -> str:
    return f"{show_number(statistics.median(seconds) * 1e6)} µs"


def _rate(values: Sequence[float]) -> str:
    return show_number(statistics.median(values))
