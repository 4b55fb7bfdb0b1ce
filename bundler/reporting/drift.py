"""How the error of a stream grows from its first step to its last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from bundler.model.manifest import CheckRecord
from bundler.model.results import OutputComparison
from bundler.reporting.checks import find_least, read_comparison
from bundler.reporting.data import ComponentReport
from bundler.reporting.models import show_tag
from bundler.reporting.page import Bar, BarChart
from bundler.reporting.scales import linear_scale

_SHOWN_STEPS: Final = 8
"""Runs of steps whose figures are shown; of each the worst step counts."""

_Run = tuple[str, float | None]
"""Steps that follow each other, as text, and their lowest SQNR in dB; None without error."""


def describe_drift(part: ComponentReport, checks: Sequence[CheckRecord]) -> Iterator[str]:
    """The SQNR of each stream from its first step to its last, by output: errors that add up."""
    for check, outputs in _list_streams(part, checks):
        tag = show_tag(part, check.variant)
        for output in outputs:
            runs = ", ".join(f"{steps} {_show_least(least)}" for steps, least in _split(output.step_sqnr_db))
            yield f"Stream{f' of {tag}' if tag else ''}, SQNR of {output.name!r}: {runs}."


def chart_drift(part: ComponentReport, checks: Sequence[CheckRecord]) -> BarChart | None:
    """The lowest SQNR among all outputs, a bar for each run of steps of each variant; None where no stream differs."""
    rows = [
        (show_tag(part, check.variant), steps, least)
        for check, outputs in _list_streams(part, checks)
        for steps, least in _split(merge_steps(outputs))
    ]
    if not rows:
        return None
    scale = linear_scale([least or 0.0 for _, _, least in rows], lambda value: f"{value:.0f} dB")
    return BarChart(
        scale=scale,
        bars=tuple(
            Bar(
                label=steps,
                tag=tag,
                value="without error" if least is None else f"{least:.1f} dB",
                detail="",
                share=100.0 if least is None else scale.place(least),
            )
            for tag, steps, least in rows
        ),
    )


def merge_steps(outputs: Iterable[OutputComparison]) -> list[float | None]:
    """The lowest SQNR of each step among the outputs. One that was compared in fewer steps has none in the others."""
    return [find_least(each) for each in zip_longest(*(output.step_sqnr_db for output in outputs))]


def _list_streams(
    part: ComponentReport, checks: Sequence[CheckRecord]
) -> Iterator[tuple[CheckRecord, list[OutputComparison]]]:
    """The checks of streams, and the outputs whose steps differ from the original's."""
    found = {outcome.step: outcome for outcome in part.outcomes if outcome.stage == "compare"}
    for check in checks:
        outputs = read_comparison(found[check.step].facts).outputs if check.step in found else ()
        drifting = [output for output in outputs if any(ratio is not None for ratio in output.step_sqnr_db)]
        if drifting:
            yield check, drifting


def _split(ratios: Sequence[float | None]) -> Iterator[_Run]:
    size = -(-len(ratios) // _SHOWN_STEPS)
    for first in range(0, len(ratios), size):
        part = ratios[first : first + size]
        yield f"steps {first + 1} to {first + len(part)}", find_least(part)


def _show_least(least: float | None) -> str:
    return "without error" if least is None else f"at least {least:.1f} dB"
