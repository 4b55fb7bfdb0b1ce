"""The tables of the benchmark of precision, from what was found: first every bar, rival by rival, then the figures."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from bars import Bar, set_bar
from document import Row, Table
from pairs import judge, show_number, show_ratio, show_seconds
from subjects.precision_choice import LEAST_SQNR_DB, Choice, name_race
from subjects.precision_runs import BARE, OURS, PROVEN, Findings, show_size

WALL_BAR, MEMORY_BAR, LATENCY_BAR = 0.5, 1.0, 1.0
NOISE = 0.03
SAME_DB = 0.05


def bars_table(findings: list[Findings], choices: Mapping[str, Choice]) -> Table:
    """Met or missed, for each rival and each bar. The latency is that of what `auto` chose for the model (`choices`,
    by the model's name), beside the rival's model, where that holds the gate.
    """
    walls = (f"wall, no proof ≤ {WALL_BAR}", f"wall, with proof ≤ {WALL_BAR}")
    accuracy = ("SQNR no worse", "task no worse")
    bars = (*walls, f"peak memory ≤ {MEMORY_BAR}", *accuracy, f"chosen bundle's latency ≤ {LATENCY_BAR}")
    rows = tuple(
        (*_start(one, who), *_bars(one, who), _latency_bar(one, who, choices.get(one.subject)))
        for one, who in _rows(findings)
    )
    return Table(title="Bars, rival by rival", columns=("model", "what", "rival", *bars), rows=rows)


def _bars(one: Findings, who: str) -> Row:
    for name in (who, OURS):
        if name in one.failed:
            return (f"{'ours' if name == OURS else 'the rival'} failed", *[""] * 4)
    walls = (
        _bar(f"wall, {how}", one, who, pairs.ratios if (pairs := one.pairs(ours, who)) else (), WALL_BAR)
        for ours, how in ((OURS, "no proof"), (PROVEN, "with proof"))
    )
    ratio = _memory_ratio(one, who)
    memory = _bar("peak memory", one, who, () if ratio is None else (ratio,), MEMORY_BAR)
    return (*walls, memory, *_accuracy_bars(one, who))


def _latency_bar(one: Findings, who: str, choice: Choice | None) -> str | Bar:
    if who not in one.made or choice is None or choice.failed:
        return ""
    race = choice.races.get(name_race(one, who))
    if race is None:
        return "it breaks the gate" if (one.made[who].figures["sqnr_db"] or 0.0) < LEAST_SQNR_DB else ""
    return _bar("latency of the chosen", one, who, race.ratios, LATENCY_BAR + NOISE)


def _bar(what: str, one: Findings, who: str, ratios: Sequence[float], limit: float) -> str | Bar:
    if not ratios:
        return ""
    name = f"{what}: {one.subject}, {one.title}, beside {who}"
    return set_bar(name, ratios, limit, said=f"{statistics.median(ratios):.2f} ")


def _memory_ratio(one: Findings, who: str) -> float | None:
    return one.peaks[OURS].shared_out / one.peaks[who].shared_out if {OURS, who} <= set(one.peaks) else None


def _accuracy_bars(one: Findings, who: str) -> Row:
    ours, theirs = one.made.get(OURS), one.made.get(who)
    if ours is None or theirs is None:
        return ("", "")
    losses = [_lost(theirs.figures, ours.figures, name) for name in ("sqnr_db", "task")]
    return tuple("" if loss is None else judge(loss, bar) for loss, bar in zip(losses, (SAME_DB, 0.0), strict=True))


def _lost(theirs: Mapping[str, float | None], ours: Mapping[str, float | None], name: str) -> float | None:
    """By how much ours is worse; nothing where both are the same, endless SQNR included."""
    one, two = theirs.get(name), ours.get(name)
    if one is None or two is None:
        return None
    return 0.0 if one == two else one - two


def _rows(findings: Iterable[Findings]) -> Iterable[tuple[Findings, str]]:
    return ((one, who) for one in findings for who in one.rivals)


def _start(one: Findings, who: str) -> Row:
    return (one.subject, one.title, who)


def wall_table(findings: list[Findings]) -> Table:
    """Seconds of each, and the ratios turn by turn."""
    columns = ("model", "what", "rival", "its time", "build, no proof", "ratio", "with proof", "ratio")
    rows = tuple(_wall_row(one, who) for one, who in _rows(findings))
    more = ("our stages alone", "processor time: rival, build, stages")
    return Table(title="Wall time", columns=(*columns, *more), rows=rows)


def _wall_row(one: Findings, who: str) -> Row:
    cells = []
    for ours in (OURS, PROVEN):
        pairs = one.pairs(ours, who)
        cells += [_show_all(one, ours), show_ratio(pairs) if pairs else ""]
    bare = _show_median(one.seconds, BARE)
    processor = ", ".join(_show_median(one.processor, name) for name in (who, OURS, BARE))
    return (*_start(one, who), _show_all(one, who), *cells, bare, processor)


def _show_all(one: Findings, who: str) -> str:
    return show_seconds(one.seconds[who]) if one.seconds.get(who) else "failed"


def _show_median(seconds: Mapping[str, tuple[float, ...]], who: str) -> str:
    return f"{show_number(statistics.median(seconds[who]))} s" if seconds.get(who) else "none"


def memory_table(findings: list[Findings]) -> Table:
    """Peaks of the whole tree of processes."""
    columns = ("model", "what", "rival", "its peak", "build, no proof", "ratio", "with proof", "our stages alone")
    return Table(
        title="Peak memory", columns=columns, rows=tuple(_memory_row(one, who) for one, who in _rows(findings))
    )


def _memory_row(one: Findings, who: str) -> Row:
    shown = {
        name: f"{one.peaks[name].shared_out / 2**20:.0f} MiB" if name in one.peaks else ""
        for name in (who, OURS, PROVEN, BARE)
    }
    ratio = _memory_ratio(one, who)
    cell = f"{ratio:.2f}" if ratio is not None else ""
    return (*_start(one, who), shown[who], shown[OURS], cell, shown[PROVEN], shown[BARE])


def result_table(findings: list[Findings]) -> Table:
    """What each made."""
    columns = ("model", "what", "rival", "its size", "ours", "its SQNR", "ours", "its task score", "ours")
    rows = tuple(_result_row(one, who) for one, who in _rows(findings))
    more = ("latency of this method, ours over its",)
    return Table(title="What comes out, on held-out samples", columns=(*columns, *more), rows=rows)


def _result_row(one: Findings, who: str) -> Row:
    ours, theirs = one.made.get(OURS), one.made.get(who)
    if ours is None or theirs is None:
        return (*_start(one, who), "nothing to compare", *[""] * 6)
    both = (theirs, ours)
    sizes = (show_size(made.size) for made in both)
    sqnr = (_show_db(made.figures["sqnr_db"]) for made in both)
    tasks = ("" if made.figures["task"] is None else f"{made.figures['task']:.3f}" for made in both)
    race = one.latencies.get(who)
    return (*_start(one, who), *sizes, *sqnr, *tasks, show_ratio(race) if race else "")


def _show_db(value: float | None) -> str:
    if value is None:
        return "none"
    return "the same" if value == float("inf") else f"{value:.1f} dB"
