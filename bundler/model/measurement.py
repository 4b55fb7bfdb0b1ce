"""Opening and latency of a bundle beside a plain session on the untouched model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How to time a bundle, where it is not as always: `batch` rows a call (0: those of the golden sample), `threads`
    inside a call (0: the bundle's own number), the calls a second of so many `callers` at once, and for about how many
    `seconds` (0: a few).
    """

    batch: int = 0
    threads: int = 0
    callers: tuple[int, ...] = ()
    seconds: float = 0.0

    @property
    def is_usual(self) -> bool:
        """Whether the model is run as an application would by default; for how long says nothing of that."""
        return not (self.batch or self.threads or self.callers)


USUAL = Timing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Calls a second that so many `callers` at once got done together, one entry a repetition."""

    callers: int
    per_second: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One variant beside a plain session on the untouched model, on the same machine in the same run.

    `opening_ms` is from opening to the first answer, `latency_ms` one steady call; one entry a repetition, in
    milliseconds; empty where it was not measured. `others` is the share of the machine's processors that other programs
    kept busy meanwhile, None where that is not known. `name` says what was measured (`golden sample 0`).
    `throughput` is for several callers at once, and `batch` the rows of a call, where either was asked for.
    """

    name: str
    variant: str
    opening_ms: tuple[float, ...] = ()
    latency_ms: tuple[float, ...] = ()
    baseline_opening_ms: tuple[float, ...] = ()
    baseline_latency_ms: tuple[float, ...] = ()
    others: float | None = None
    throughput: tuple[Throughput, ...] = ()
    batch: int = 0
