"""Precision beside Olive and Optimum: time, memory, accuracy, size, latency; same models, options and data."""

from __future__ import annotations

from typing import Any

from document import Section
from subjects.precision_cases import choose_cases, make_subject
from subjects.precision_choice import (
    Choice,
    Growths,
    choice_table,
    choose_automatically,
    growth_table,
    measure_growth,
)
from subjects.precision_rivals import describe_versions
from subjects.precision_runs import FAILURES, Bench, Findings, describe_reason, show_size
from subjects.precision_store import Diary, Store
from subjects.precision_tables import bars_table, memory_table, result_table, wall_table
from workplace import Workplace

GROWTH_SUBJECT = "rapidocr_cls"
METHOD = (
    "Whole processes in turns, each from a cold start, on the same model, data and options. A rival's command line "
    "writes a model, and neither judges nor proves it. `bundler build --no-prove` with an empty step cache makes the "
    "model, judges every step of it on held-out samples, and packs a bundle for one Python; `bundler build` also "
    "proves and times that bundle in its own runtime; “our stages alone” is the method by itself in one process. "
    "Wheels and tool environments are there before the time counts, as the rivals' environments are. 100 samples "
    "calibrate, 40 others judge what came out (50 and 20 pages for rapidocr_det); a build's own gate takes as many of "
    "these as fit its limit of bytes. Ratios are ours over theirs. Memory is the proportional set size of the whole "
    "tree of processes. Latency is that of a bundle beside a plain session on the rival's "
    "model, in turns in one process; within 3 % counts as no slower; its bar is for the bundle that the automatic "
    "choice gives, beside every rival's model that holds the same gate. But for the automatic choice the gate is open, "
    "for rivals have none: below 15 dB (10 dB for 4 bits) a build of ours would have ended with an error."
)


def measure(workplace: Workplace) -> Section:
    """All cases of the wanted models, kept in the work folder as they come."""
    store = Store(folder=workplace.folder / f"found-{'quick' if workplace.quick else 'full'}", resume=workplace.resume)
    bench = Bench(workplace=workplace, diary=Diary(workplace.folder), store=store)
    findings, notes = _run_cases(bench)
    choices = [_choose(bench, name, findings) for name in dict.fromkeys(one.subject for one in findings)]
    growths = _grow(bench, notes)
    return make_section(findings, choices, growths, (f"Rivals: {describe_versions(workplace)}.", *notes), workplace)


def make_section(
    findings: list[Findings],
    choices: list[Choice],
    growths: Growths | None,
    notes: tuple[str, ...],
    workplace: Workplace,
) -> Section:
    """The tables of what was found, measured now or before."""
    growth = [growth_table(growths.found, quick=workplace.quick)] if growths else []
    bars = bars_table(findings, {one.subject: one for one in choices})
    tables = [bars, wall_table(findings), memory_table(findings), result_table(findings)]
    return Section(
        name="precision",
        title="precision beside other tools",
        method=METHOD,
        tables=(*tables, choice_table(choices), *growth),
        notes=(*notes, *_describe_failures(findings), *_describe_choices(choices), *_describe_times(findings)),
        figures={one.name: _figures(one) for one in findings},
    )


def _run_cases(bench: Bench) -> tuple[list[Findings], list[str]]:
    findings: list[Findings] = []
    notes: list[str] = []
    cases = choose_cases(bench.workplace)
    for position, case in enumerate(cases, 1):
        title = f"{case.subject}, {case.title}"
        bench.diary.tell(f"case {position} of {len(cases)}: {title}")
        try:
            subject = make_subject(bench.workplace, case.subject)
        except FAILURES as error:
            bench.diary.note(title, "data", "failed", str(error)[-2000:])
            notes.append(f"**{title} could not be measured**: {describe_reason(error)}")
            continue
        found = bench.store.recall_or_make(Findings, title, lambda case=case, subject=subject: bench.run(case, subject))  # type: ignore[misc]
        findings.append(found)
    return findings, notes


def _choose(bench: Bench, name: str, findings: list[Findings]) -> Choice:
    bench.diary.tell(f"automatic choice: {name}")
    mine = [one for one in findings if one.subject == name]
    subject = make_subject(bench.workplace, name)
    return bench.store.recall_or_make(Choice, f"{name}, auto", lambda: choose_automatically(bench, subject, mine))


def _grow(bench: Bench, notes: list[str]) -> Growths | None:
    if bench.workplace.models and GROWTH_SUBJECT not in bench.workplace.models:
        return None
    bench.diary.tell("memory as the data grow")
    try:
        subject = make_subject(bench.workplace, GROWTH_SUBJECT)
        return bench.store.recall_or_make(Growths, "growth", lambda: measure_growth(bench, subject))
    except FAILURES as error:
        notes.append(f"**memory as the data grow** could not be measured: {describe_reason(error)}")
        return None


def _describe_failures(findings: list[Findings]) -> list[str]:
    return [f"**{one.name}, {who}** failed: {reason[:300]}" for one in findings for who, reason in one.failed.items()]


def _describe_choices(choices: list[Choice]) -> list[str]:
    failed = [f"**automatic choice, {one.subject}** failed: {one.failed[:300]}" for one in choices if one.failed]
    tried = [(one.subject, "; ".join(map(_describe_attempt, one.attempts))) for one in choices if one.attempts]
    return [*failed, *(f"automatic choice, {name}: {text}" for name, text in tried)]


def _describe_attempt(attempt: Any) -> str:
    ratio, size = attempt.get("ratio"), attempt.get("model_bytes")
    figures = [f"{ratio:.2f} times the time" if ratio else "", show_size(size) if size else ""]
    return f"{attempt.get('method')} " + ", ".join(part for part in (attempt.get("state", "?"), *figures) if part)


def _describe_times(findings: list[Findings]) -> list[str]:
    """When each was measured, where a run took up what others had left."""
    times = sorted(one.measured for one in findings if one.measured)
    return [f"Measured from {times[0]} to {times[-1]} UTC."] if times else []


def _figures(one: Findings) -> dict[str, Any]:
    return {
        "seconds": one.seconds,
        "processor": one.processor,
        "peaks": {who: [peak.shared_out, peak.own, peak.largest] for who, peak in one.peaks.items()},
        "made": {who: {"size": made.size, **made.figures} for who, made in one.made.items()},
        "latency ratios": {who: pairs.ratios for who, pairs in one.latencies.items()},
        "failed": one.failed,
    }
