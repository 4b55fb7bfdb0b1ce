"""The attempts of an automatic choice of precision, and the one that ships."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

AttemptState = Literal["chosen", "passed", "failed", "broken", "skipped"]
"""`chosen` ships; `passed` met the gate, but another was faster; `failed` did not meet it; `broken` could not be made
or run; `skipped` was not tried."""
STATE_TITLES: Mapping[AttemptState, str] = {
    "chosen": "chosen",
    "passed": "gate met",
    "failed": "gate not met",
    "broken": "could not be made",
    "skipped": "not tried",
}
"""The states as text."""

Timing = Literal["measured", "estimated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One method of `bundler.profiles.methods` on one variant, the unchanged model (`none`) among them.

    `seconds` is the median latency of one call; `ratio` compares it with the unchanged model, timed in turns with it
    (below 1 is faster); `low` and `high` are its 10th and 90th percentile over `rounds`, `processor_ratio` compares the
    time of all processors together; None where it was not timed.
    `figures` are the worst over all outputs on held-out samples: `sqnr_db`, `cosine`,
    `max_absolute`, `top1_agreement`, and the user's own metric under its own name; None where it was not measurable.
    `reason` says why in a sentence without a trailing stop; it may hold names from the model.
    """

    method: str
    title: str
    state: AttemptState
    model_bytes: int | None = None
    seconds: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int | None = None
    processor_ratio: float | None = None
    figures: Mapping[str, float | None] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """All attempts for one variant, in order.

    `chosen` is the method that ships, and `reason` a sentence without a trailing stop that says why. `how` is a
    sentence that says how latencies were measured, or what they were estimated from. `held_out` samples judged the
    accuracy; none of the `calibration` samples is among them.
    """

    variant: str
    chosen: str
    attempts: tuple[Attempt, ...]
    timing: Timing
    how: str
    held_out: int
    calibration: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChoice:
    """A choice as a lock records it: `question` is the digest of all that it depends on, but for versions of tools."""

    question: str
    answer: Frontier
