"""Load time and latency of a bundle, compared with a default session on the original model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bundler.model.runtime import SOLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How to time a bundle: `batch` rows per call (0: those of the golden sample), `threads` inside a call (0: the
    bundle's own number), whether idle threads are `spinning` (None: the bundle's own choice), numbers of concurrent
    `callers` whose calls per second are counted, and the approximate duration in `seconds` of each variant (0: a few)
    or `in_all` of the whole bundle (0: as long as its variants take).
    """

    batch: int = 0
    threads: int = 0
    spinning: bool | None = None
    callers: tuple[int, ...] = ()
    seconds: float = 0.0
    in_all: float = 0.0

    @property
    def is_usual(self) -> bool:
        """Whether the model is run as an application would by default; the duration does not matter."""
        return not (self.batch or self.threads or self.callers) and self.spinning is None


USUAL = Timing()

BRIEF_SECONDS: Final = 0.5
"""What a build spends on timing a bundle unless it is asked for more."""

BRIEF = Timing(in_all=BRIEF_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Calls per second of so many concurrent `callers` together, one entry per repetition."""

    callers: int
    per_second: tuple[float, ...]


WHOLE: Final = ""
"""The component of a measurement of all components together, by the user's own pipeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One variant compared with a default session on the original model, on the same machine in the same run.

    `opening_ms` is from the start of loading to the end of the first inference, `latency_ms` one steady-state call; one
    entry per repetition, in milliseconds; empty where it was not measured. `others` is the share of the machine's
    processors that other programs kept busy meanwhile, None where unknown. `name` says what was measured (`golden
    sample 0`). `throughput` is for several concurrent callers, and `batch` the rows of a call, if requested.
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
    component: str = SOLE
