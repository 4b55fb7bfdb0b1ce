"""Precision beside Olive and Optimum: time, memory, accuracy, size, latency; same models, options and data."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from document import Section, Table
from pairs import judge, show_number, show_ratio, show_seconds
from subjects.precision_cases import choose_cases, make_subject
from subjects.precision_choice import Choice, choice_table, choose_automatically, growth_table, measure_growth
from subjects.precision_rivals import describe_versions
from subjects.precision_runs import BARE, FAILURES, OURS, PROVEN, Bench, Diary, Findings, show_size
from workplace import Workplace

WALL_BAR, MEMORY_BAR, LATENCY_BAR = 0.5, 1.0, 1.0
NOISE = 0.03
SAME_DB = 0.05
GROWTH_SUBJECT = "rapidocr_cls"


def measure(workplace: Workplace) -> Section:
    bench = Bench(workplace=workplace, diary=Diary(workplace.folder))
    findings, notes = _run_cases(bench)
    names = dict.fromkeys(one.case.subject for one in findings)
    choices = [_choose(bench, name, findings) for name in names]
    notes += [f"**automatic choice, {one.subject}**: {one.failed}" for one in choices if one.failed]
    notes += [f"automatic choice, {one.subject}: {_tell_attempts(one)}" for one in choices if one.attempts]
    tables = [_wall_table(findings), _memory_table(findings), _result_table(findings), choice_table(choices)]
    tables += _grow(bench, notes)
    return Section(
        name="precision",
        title="precision beside other tools",
        method=(
            "Whole processes in turns, each from a cold start: `bundler build` with an empty step cache (wheels and "
            "tool environments are kept) makes, judges and packs a bundle; the rivals' command lines write a model. "
            "100 samples calibrate, 40 others (20 pages for rapidocr_det) judge. Ratios are ours over theirs. Memory "
            "is the proportional set size of the whole tree of processes. Latency is that of the bundle beside a plain "
            "session on the rival's model, in turns in one process. But for the automatic choice the gate is open, for "
            "rivals have none: below 15 dB (10 dB for 4 bits) a build of ours would have ended with an error."
        ),
        tables=tuple(tables),
        notes=(f"Rivals: {describe_versions(workplace)}.", *notes),
        figures={f"{one.case.subject}, {one.case.title}": _figures(one) for one in findings},
    )


def _run_cases(bench: Bench) -> tuple[list[Findings], list[str]]:
    findings, notes = [], []
    for case in choose_cases(bench.workplace):
        title = f"{case.subject}, {case.title}"
        try:
            subject = make_subject(bench.workplace, case.subject)
        except FAILURES as error:
            bench.diary.note(title, "data", "failed", str(error)[-2000:])
            notes.append(f"**{title} could not be measured**: {getattr(error, 'reason', '') or error}")
            continue
        found = bench.run(case, subject)
        findings.append(found)
        notes += [f"**{title}, {who}** failed: {reason}" for who, reason in found.failed.items()]
    return findings, notes


def _choose(bench: Bench, name: str, findings: list[Findings]) -> Choice:
    mine = [one for one in findings if one.case.subject == name]
    return choose_automatically(bench, mine[0].subject, mine)


def _grow(bench: Bench, notes: list[str]) -> list[Table]:
    if bench.workplace.models and GROWTH_SUBJECT not in bench.workplace.models:
        return []
    try:
        found = measure_growth(bench, make_subject(bench.workplace, GROWTH_SUBJECT))
    except FAILURES as error:
        notes.append(f"**memory as the data grow** could not be measured: {error}")
        return []
    return [growth_table(found, quick=bench.workplace.quick)]


def _tell_attempts(choice: Choice) -> str:
    return "; ".join(f"{one.get('method')} {_tell_attempt(one)}" for one in choice.attempts)


def _tell_attempt(attempt: Any) -> str:
    ratio, size = attempt.get("ratio"), attempt.get("model_bytes")
    figures = [f"{ratio:.2f} times the time" if ratio else "", show_size(size) if size else ""]
    return ", ".join(part for part in (attempt.get("state", "?"), *figures) if part)


def _rows(findings: Iterable[Findings]) -> Iterable[tuple[Findings, str]]:
    return ((one, rival.name) for one in findings for rival in one.case.rivals)


def _wall_table(findings: list[Findings]) -> Table:
    bar = f"bar {WALL_BAR}"
    columns = ("model", "what", "rival", "its time", "build, no proof", "ratio", bar, "with proof", "ratio", bar)
    rows = (_wall_row(one, who) for one, who in _rows(findings))
    more = ("our stages alone", "processor time: rival, build, stages")
    return Table(title="Wall time", columns=(*columns, *more), rows=tuple(rows))


def _wall_row(one: Findings, who: str) -> tuple[str, ...]:
    start = (one.case.subject, one.case.title, who)
    theirs = show_seconds(one.seconds[who]) if who in one.seconds else "failed"
    cells = []
    for ours in (OURS, PROVEN):
        pairs = one.pairs(ours, who)
        seconds = show_seconds(one.seconds[ours]) if ours in one.seconds else "failed"
        cells += [seconds, *((show_ratio(pairs), judge(pairs.ratio, WALL_BAR)) if pairs else ("", ""))]
    bare = _show_median(one.seconds, BARE)
    return (*start, theirs, *cells, bare, ", ".join(_show_median(one.processor, name) for name in (who, OURS, BARE)))


def _show_median(seconds: Mapping[str, tuple[float, ...]], who: str) -> str:
    return f"{show_number(statistics.median(seconds[who]))} s" if seconds.get(who) else "none"


def _memory_table(findings: list[Findings]) -> Table:
    columns = ("model", "what", "rival", "its peak", "build, no proof", "ratio", f"bar {MEMORY_BAR}", "with proof")
    rows = (_memory_row(one, who) for one, who in _rows(findings))
    return Table(title="Peak memory", columns=(*columns, "our stages alone"), rows=tuple(rows))


def _memory_row(one: Findings, who: str) -> tuple[str, ...]:
    shown = {
        name: f"{one.peaks[name].shared_out / 2**20:.0f} MiB" if name in one.peaks else ""
        for name in (who, OURS, PROVEN, BARE)
    }
    ratio = one.peaks[OURS].shared_out / one.peaks[who].shared_out if {OURS, who} <= set(one.peaks) else None
    verdict = (f"{ratio:.2f}", judge(ratio, MEMORY_BAR)) if ratio is not None else ("", "")
    return (one.case.subject, one.case.title, who, shown[who], shown[OURS], *verdict, shown[PROVEN], shown[BARE])


def _result_table(findings: list[Findings]) -> Table:
    columns = ("model", "what", "rival", "its size", "ours", "its SQNR", "ours", "no worse", "its task score", "ours")
    rows = (_result_row(one, who) for one, who in _rows(findings))
    more = ("no worse", "latency, ours over its", f"bar {LATENCY_BAR}")
    return Table(title="What comes out, on held-out samples", columns=(*columns, *more), rows=tuple(rows))


def _result_row(one: Findings, who: str) -> tuple[str, ...]:
    start = (one.case.subject, one.case.title, who)
    ours, theirs = one.made.get(OURS), one.made.get(who)
    if ours is None or theirs is None:
        return (*start, "nothing to compare", *[""] * 9)
    sqnr = [made.figures["sqnr_db"] or 0.0 for made in (theirs, ours)]
    task = [made.figures["task"] for made in (theirs, ours)]
    race = one.latencies.get(who)
    return (
        *start,
        *(show_size(made.size) for made in (theirs, ours)),
        *(f"{value:.1f} dB" for value in sqnr),
        judge(sqnr[0] - sqnr[1], SAME_DB),
        *("" if value is None else f"{value:.3f}" for value in task),
        "" if task[0] is None or task[1] is None else judge(task[0] - task[1], 0.0),
        show_ratio(race) if race else "",
        judge(race.ratio, LATENCY_BAR + NOISE) if race else "",
    )


def _figures(one: Findings) -> dict[str, Any]:
    return {
        "seconds": one.seconds,
        "processor": one.processor,
        "peaks": {who: [peak.shared_out, peak.own, peak.largest] for who, peak in one.peaks.items()},
        "made": {who: {"size": made.size, **made.figures} for who, made in one.made.items()},
        "latency ratios": {who: pairs.ratios for who, pairs in one.latencies.items()},
        "failed": one.failed,
    }
