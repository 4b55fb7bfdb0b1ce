"""The summary's lines on a variant's accuracy relative to the original model, and its limits."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor
from typing import TYPE_CHECKING

from bundler.cli.printing import printable
from bundler.support.text import count_things

if TYPE_CHECKING:
    from bundler.model.runtime import Tolerance
    from bundler.pipeline.results import AccuracyResult

NAME_LENGTH = 40
"""Characters of an output's name that the line shows."""
PLACE_LENGTH = 80
"""Characters of the place where it ran."""


def accuracy_lines(found: AccuracyResult) -> Iterator[str]:
    """What was compared and whether the gate passed: `htp: gate passed against the original model, 40 samples`. Then
    the figures, and lines on a stream's drift and the device's limits where there is something to say.
    """
    samples = (
        count_things(found.samples, "step") + " of a stream" if found.stream else count_things(found.samples, "sample")
    )
    named = "" if found.outputs == 1 or found.equal else f", worst output {printable(found.output, NAME_LENGTH)}"
    instead = f", run on the CPU in place of {found.in_place_of}" if found.in_place_of else ""
    place = f", {printable(found.place, PLACE_LENGTH)}" if found.place else ""
    yield f"{found.variant}: {_verdict(found)}, {samples}{place}{instead}{named}"
    figures = ", ".join(_figures(found))
    if figures:
        yield figures
    if found.drift is not None:
        first, last = found.drift
        yield (
            f"the error grows over the stream: SQNR {first:.1f} dB in the first quarter of its steps, {last:.1f} dB in "
            "the last; longer streams were not compared"
        )
    if found.device_limit is not None:
        computes = f", which {found.rounding}" if found.rounding else ""
        yield f"limits on the device{computes}: {_describe_limit(found.device_limit)}"


def _verdict(found: AccuracyResult) -> str:
    if found.unjudged == found.outputs and found.limit.judged:
        return "no output could be judged"
    if not found.limit.judged and not found.equal:
        return "not judged (set by the profile)"
    judged = f" on {found.outputs - found.unjudged} of {found.outputs} outputs" if found.unjudged else ""
    return f"gate passed against the original model{judged}"


def _describe_limit(limit: Tolerance) -> str:
    rows = ((limit.low_sqnr_db, "{:g} in nine of ten samples"), (limit.worst_sqnr_db, "{:g} in each"))
    samples = ", ".join(text.format(value) for value, text in rows if value is not None)
    parts = [] if limit.sqnr_db is None else [f"SQNR {limit.sqnr_db:g} dB" + (f" ({samples})" if samples else "")]
    parts += [] if limit.absolute is None else [f"max error {limit.absolute:g}"]
    parts += [] if limit.top1_agreement is None else [f"top-1 {_in_percent(limit.top1_agreement)}"]
    parts += [] if limit.agreement is None or parts else [f"equal values {_in_percent(limit.agreement)}"]
    return ", ".join(parts) or "none"


def _figures(found: AccuracyResult) -> Iterator[str]:
    limit = found.limit
    if found.unjudged == found.outputs and limit.judged:
        return
    if found.equal:
        yield "bit-identical"
        return
    if not limit.judged:
        return
    decibels, shares = ("{:.1f} dB".format, "{:g}".format), (_in_percent, _in_percent)
    rows = (
        ("SQNR", decibels, found.sqnr_db, limit.sqnr_db),
        ("worst sample", decibels, found.worst_sqnr_db, limit.worst_sqnr_db),
        ("input-dependent part", decibels, _without_constant(found), limit.typical_sqnr_db),
        ("top-1", shares, found.top1_agreement, limit.top1_agreement),
        ("equal integers and strings", shares, found.agreement, limit.agreement),
    )
    for name, (show, bound), value, least in rows:
        if value is not None:
            # Of a bundle that was built, only what is rounding alone can be below (`bundler.model.gates.is_rounding`).
            waived = ", waived: rounding errors only" if least and value < least else ""
            yield f"{name} {show(value)}" + (f" (min {bound(least)}{waived})" if least else "")
    if found.sqnr_db is not None and limit.typical_sqnr_db is not None and found.typical_sqnr_db is None:
        yield "too few outputs for the SQNR of the input-dependent part"
    if found.max_absolute:
        yield f"max error {found.max_absolute:.2g}{_allowed(found)}"


def _without_constant(found: AccuracyResult) -> float | None:
    return None if found.limit.typical_sqnr_db is None else found.typical_sqnr_db


def _allowed(found: AccuracyResult) -> str:
    limit = found.limit
    if limit.absolute is None or limit.relative is None:
        return ""
    share = f" + {limit.relative:g} of the reference" if limit.relative else ""
    return f" (limit {limit.absolute:g}{share})"


def _in_percent(share: float) -> str:
    """Rounded down: nothing that is below a limit is shown as if it met it."""
    return f"{floor(share * 10_000 + 1e-6) / 100:g}%"
