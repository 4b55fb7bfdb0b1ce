"""Find sizes at which a model runs: small ones first, within limits of memory and time, and every try is reported."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import onnxruntime

from bundler.model.errors import ModelError
from bundler.model.free_dimensions import Key, Sizes, free_dimensions, tensor_type
from bundler.model.golden_inputs import NOTHING_RAN
from bundler.model.shapes import SizeRange
from bundler.model.signature import Signature
from bundler.model.stage import Report
from bundler.onnxkit.running import RunError, RunMemoryError, RunTimeError, run_within
from bundler.onnxkit.seeded_inputs import Integers, Maker, ValueHints
from bundler.onnxkit.value_files import MAX_SAMPLE_BYTES, Value
from bundler.support.processes import bounded_memory
from bundler.support.text import visible

MAX_SEARCHED_BYTES: Final = 64 << 20
"""Limit for one sample's inputs at guessed sizes."""
SEARCH_SECONDS: Final = 300.0
RUN_SECONDS: Final = 60.0
FIXED_RUN_SECONDS: Final = 1800.0
"""A model with fixed sizes only has no smaller ones to try, so it gets more time: in proportion to its multiplications,
up to this."""
MIN_MULTIPLICATIONS_PER_SECOND: Final = 20_000_000
"""Multiplications a second; the reference runtime's single thread does a hundred times as many with 32-bit floats."""
RUN_BYTES: Final = 4 << 30
"""Memory of one run on generated inputs, in addition to the loaded model, unless BUNDLER_MEMORY_LIMIT sets another: a
model of a few bytes may compute a value of any size.
"""
MEMORY_HINT: Final = (
    "export the model with smaller sizes, or set the memory that a step may use with BUNDLER_MEMORY_LIMIT=SIZE "
    "(for example 32G) on a machine that has it"
)
_NUMBER: Final = re.compile(r"(?<![\w.:-])\d{1,5}(?![\w.])")
"""A size in an error of the runtime, but no part of a name, nor the line of a source file."""
_MAX_NAMED: Final = 8
_MAX_LISTED_TRIES: Final = 12
_MAX_REASON_LENGTH: Final = 160

GUESSES: Final = (
    Sizes(),
    Sizes(space=32, length=8),
    Sizes(space=128, length=32),
    Sizes(space=224, length=64),
    Sizes(channel=1, space=32),
    Sizes(channel=1, space=64, length=128),
    Sizes(channel=4, space=64, length=128),
    Sizes(channel=1, space=1, length=1),
    Sizes(space=256, length=256),
    Sizes(space=384, length=512),
    Sizes(space=640, length=1024),
    Sizes(batch=2),
    Sizes(batch=4),
    Sizes(batch=8),
    Sizes(batch=16),
    Sizes(batch=64, length=128),
    Sizes(batch=512, length=4000),
    Sizes(batch=4000, length=16000),
    Sizes(batch=16000, length=16000),
)
"""Tried in this order until the model runs: typical sizes of vision, text, classical and audio models. The axis of a
one-dimensional waveform counts as the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """Sizes that did not run, and the reason; `by_model`: the model rejected them, not a limit of the search, such as
    that of `memory`.
    """

    sizes: str
    reason: str
    by_model: bool
    memory: bool = False


@dataclass(slots=True, kw_only=True)
class SizeSearch:
    """Runs a model on guesses. Tests set `clock` and the limits."""

    session: onnxruntime.InferenceSession
    signature: Signature
    hints: ValueHints
    seed: int
    report: Report
    search_seconds: float = SEARCH_SECONDS
    run_seconds: float = RUN_SECONDS
    fixed_seconds: float = FIXED_RUN_SECONDS
    clock: Callable[[], float] = time.monotonic
    refused: list[Try] = field(default_factory=list)
    ranges: Mapping[Key, SizeRange] = field(default_factory=dict)
    _ends: float = 0.0
    _numbers: Counter[int] = field(default_factory=Counter)

    def find(self) -> tuple[Maker, dict[str, Value]]:
        """The first guess that the model runs at, and its outputs. Raises `ModelError` when there is none."""
        self._ends = self.clock() + self._limit()
        for maker, why in self._guesses():
            if self.is_over:
                break
            self.report(0.0, f"trying {describe_sizes(maker)}{why}")
            outputs = self.attempt(maker)
            if outputs is not None:
                return maker, outputs
        raise self._failure()

    @property
    def is_over(self) -> bool:
        """Whether the time of the search is used up."""
        return self.clock() >= self._ends

    def attempt(self, maker: Maker, index: int = 0) -> dict[str, Value] | None:
        """The outputs of one run, or None where the model (or a limit) rejects it: `refused` then holds the reason."""
        size = maker.count_bytes()
        limit = MAX_SEARCHED_BYTES if self._is_free else MAX_SAMPLE_BYTES
        by_model = memory = False
        if size > limit:
            reason = f"not tried: the inputs would have {_describe_bytes(size)}, more than {_describe_bytes(limit)}"
        else:
            try:
                with bounded_step(RUN_BYTES):
                    return run_within(self.session, maker.make(self.seed, index), self._run_limit())
            except RunTimeError:
                seconds = self.run_seconds if self._is_free else self.fixed_seconds
                reason = f"stopped: one run took more than {seconds:g} s"
            except RunMemoryError as error:
                reason, memory = str(error), True
            except RunError as error:
                reason, by_model = str(error), True
                self._numbers.update(set(map(int, _NUMBER.findall(reason))))
        reason = _shorten(reason)
        self.refused.append(Try(sizes=describe_sizes(maker), reason=reason, by_model=by_model, memory=memory))
        return None

    @property
    def _is_free(self) -> bool:
        return bool(free_dimensions(self.signature))

    def _limit(self) -> float:
        return self.search_seconds if self._is_free else self.fixed_seconds

    def _run_limit(self) -> float:
        if not self._is_free:
            return max(self._ends - self.clock(), 0.0)
        return min(self.run_seconds, max(self._ends - self.clock(), 0.0))

    def _guesses(self) -> Iterator[tuple[Maker, str]]:
        """The usual sizes, then those that the errors of these name; with words for the progress."""
        makers = list(self._makers())
        for place, maker in enumerate(makers):
            yield maker, f" ({place + 1} of {len(makers)})"
        for maker in self._named_makers(makers):
            yield maker, ", which the model's errors name"

    def _makers(self) -> Iterator[Maker]:
        """Sizes vary only if one is free, integers only if an input has them."""
        integers = any("int" in (tensor_type(port.type).element_type or "") for port in self.signature.inputs)
        modes: tuple[Integers, ...] = ("implied", "bits", "ones") if integers else ("implied",)
        base = Maker(signature=self.signature, sizes=Sizes(), hints=self.hints, ranges=self.ranges)
        for mode in modes:
            seen: list[Mapping[Key, int]] = []
            for sizes in GUESSES:
                maker = replace(base, sizes=sizes, integers=mode)
                if maker.assigned not in seen:
                    seen.append(maker.assigned)
                    yield maker

    def _named_makers(self, tried: Sequence[Maker]) -> Iterator[Maker]:
        """The numbers that most errors have in common are sizes of the model's weights (`must have shape {1,100,16}.
        Actual:{1,100,162}`): each for one dimension after another, of lengths and channels before batches.
        """
        free = sorted(free_dimensions(self.signature), key=lambda item: item.role == "batch")
        known = {item.key: {maker.assigned[item.key] for maker in tried} for item in free}
        new = (number for number, _ in self._numbers.most_common() if any(number not in known[key] for key in known))
        for number in itertools.islice((number for number in new if number > 0), _MAX_NAMED):
            for item in free:
                if number not in known[item.key] and item.key not in self.ranges:
                    yield replace(tried[0], named={item.key: number})

    def _failure(self) -> ModelError:
        spent = f" within {self._limit():g} s" if self.is_over else ""
        named = ", or sizes with --dim NAME=SIZE or --shape INPUT=SIZES" if self._is_free else ""
        hint = f"give real inputs with --samples{named}"
        if all(item.memory for item in self.refused):
            hint = MEMORY_HINT
        details = tuple(_list_tries(self.refused))
        return ModelError(f"{NOTHING_RAN}{spent}", details=details, hint=hint)


def bounded_step(size: int) -> contextlib.AbstractContextManager[None]:
    """Limit memory to so many bytes more, unless BUNDLER_MEMORY_LIMIT sets a limit for the whole process."""
    return contextlib.nullcontext() if os.environ.get("BUNDLER_MEMORY_LIMIT") else bounded_memory(size)


def limit_run(multiplications: int) -> float:
    """Time limit in seconds for a run of so many multiplications. Loop bodies count once, so the minimum is large."""
    return min(FIXED_RUN_SECONDS, RUN_SECONDS + round(multiplications / MIN_MULTIPLICATIONS_PER_SECOND))


def describe_sizes(maker: Maker) -> str:
    """`batch=1, image[2]=64`, and how integers are generated if not in the usual way."""
    assigned = maker.assigned
    parts = [f"{item.label}={assigned[item.key]}" for item in free_dimensions(maker.signature)]
    how = {"implied": "", "bits": "integers of 0 and 1", "ones": "integers of 1"}[maker.integers]
    return ", ".join([*parts, *([how] if how else [])]) or "the model's fixed sizes"


def _list_tries(tries: list[Try]) -> Iterator[str]:
    """One line for each; sizes rejected with the same message share one."""
    reasons: dict[str, list[str]] = {}
    for item in tries:
        reasons.setdefault(item.reason, []).append(item.sizes)
    for reason, sizes in list(reasons.items())[:_MAX_LISTED_TRIES]:
        rest = f" and {len(sizes) - 1} more" if len(sizes) > 1 else ""
        yield f"{sizes[0]}{rest}: {reason}"
    if len(reasons) > _MAX_LISTED_TRIES:
        yield f"and {len(reasons) - _MAX_LISTED_TRIES} more"


def _describe_bytes(size: int) -> str:
    return f"{size >> 20} MiB" if size < 1 << 30 else f"{size / (1 << 30):.1f} GiB"


def _shorten(reason: str) -> str:
    """The runtime's messages contain names from the model."""
    first = visible(" ".join(reason.split()))
    return first if len(first) <= _MAX_REASON_LENGTH else first[:_MAX_REASON_LENGTH].rstrip() + " …"
