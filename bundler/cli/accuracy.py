"""The summary line with a variant's accuracy relative to the original model, and its limits."""

from __future__ import annotations

from collections.abc import Iterator
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


def accuracy_line(found: AccuracyResult) -> str:
    """`accuracy of htp over 40 samples: 22.8 dB (at least 15), 16.1 dB in the worst sample (at least 5)`."""
    samples = (
        count_things(found.samples, "step") + " of a stream" if found.stream else count_things(found.samples, "sample")
    )
    figures = ", ".join(_figures(found)) or "no accuracy figure available"
    named = "" if found.outputs == 1 or found.equal else f" (output {printable(found.output, NAME_LENGTH)})"
    missing = f"; {found.unjudged} of {found.outputs} outputs could not be judged" if found.unjudged else ""
    instead = f", run on the CPU in place of {found.in_place_of}" if found.in_place_of else ""
    place = f", {printable(found.place, PLACE_LENGTH)}" if found.place else ""
    return f"accuracy of {found.variant} over {samples}{place}{instead}{named}: {figures}{missing}"


def drift_lines(found: AccuracyResult) -> Iterator[str]:
    """`the error of cpu grows over the stream: …`, where it does."""
    if found.drift is not None:
        first, last = found.drift
        yield (
            f"the error of {found.variant} grows over the stream: {first:.1f} dB in the first quarter of its steps, "
            f"{last:.1f} dB in the last; longer streams were not compared"
        )


def device_lines(found: AccuracyResult) -> Iterator[str]:
    """`gpu on the device: computes in half precision, its outputs are held to 30 dB (25 in nine of ten samples, 15 in
    each)`, where the device is held to another limit than what ran here.
    """
    if found.device_limit is not None:
        computes = f"{found.rounding}, " if found.rounding else ""
        yield f"{found.variant} on the device: {computes}its outputs are held to {_describe_limit(found.device_limit)}"


def _describe_limit(limit: Tolerance) -> str:
    rows = ((limit.low_sqnr_db, "{:g} in nine of ten samples"), (limit.worst_sqnr_db, "{:g} in each"))
    samples = ", ".join(text.format(value) for value, text in rows if value is not None)
    parts = [] if limit.sqnr_db is None else [f"{limit.sqnr_db:g} dB" + (f" ({samples})" if samples else "")]
    parts += [] if limit.absolute is None else [f"an error of {limit.absolute:g}"]
    parts += [] if limit.top1_agreement is None else [f"top-1 agreement of {limit.top1_agreement:g}"]
    parts += [] if limit.agreement is None or parts else [f"{limit.agreement:g} of its values equal"]
    return ", ".join(parts) or "no limit"


def _figures(found: AccuracyResult) -> Iterator[str]:
    limit = found.limit
    if found.unjudged == found.outputs and limit.judged:
        return
    if found.equal:
        yield "bit-identical"
        return
    if not limit.judged:
        yield "not judged (set by the profile)"
        return
    if found.max_absolute:
        yield f"largest error {found.max_absolute:.2g}{_allowed(found)}"
    rows = (
        (found.sqnr_db, limit.sqnr_db, "{:.1f} dB"),
        (found.worst_sqnr_db, limit.worst_sqnr_db, "{:.1f} dB in the worst sample"),
        (_without_constant(found), limit.typical_sqnr_db, "{:.1f} dB without the constant part"),
        (found.top1_agreement, limit.top1_agreement, "top-1 agreement {:.4g}"),
        (found.agreement, limit.agreement, "{:.4g} of the integers and strings equal"),
    )
    for value, least, text in rows:
        if value is not None:
            # Of a bundle that was built, only what is rounding alone can be below (`bundler.model.gates.is_rounding`).
            waived = ", not required of rounding errors" if least and value < least else ""
            yield text.format(value) + (f" (at least {least:g}{waived})" if least else "")
    if found.sqnr_db is not None and limit.typical_sqnr_db is not None and found.typical_sqnr_db is None:
        yield "too few outputs to leave out the constant part"


def _without_constant(found: AccuracyResult) -> float | None:
    return None if found.limit.typical_sqnr_db is None else found.typical_sqnr_db


def _allowed(found: AccuracyResult) -> str:
    limit = found.limit
    if limit.absolute is None or limit.relative is None:
        return ""
    share = f" + {limit.relative:g} of the reference" if limit.relative else ""
    return f" (at most {limit.absolute:g}{share})"
