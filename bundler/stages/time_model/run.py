"""Run two models alternately on the same inputs, so that other load on the machine slows both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import onnxruntime

from bundler.model.codec import decode, encode
from bundler.model.errors import StageError
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.onnxkit.golden import read_golden
from bundler.onnxkit.running import RunError, make_caller, run_session
from bundler.onnxkit.sessions import open_session, read_settings
from bundler.onnxkit.value_files import Value
from bundler.stages.time_model.spec import Facts, Options

_MAX_SAMPLES: Final = 4
"""Different inputs to run on; all of them stay in memory."""
_ROUND_SECONDS: Final = 0.02
"""A round repeats each model's call until this has passed, so that the clock's resolution does not matter."""
_MIN_ROUNDS, _MAX_ROUNDS = 7, 200
_WARM_UP: Final = 3
_STEADY_SHARE: Final = 0.06
"""Width of the interval, as a share of the ratio, from which more rounds change nothing: the median is known to 1 %."""
_SLOWER: Final = 1.03
"""From this ratio on, a model that is slower in nine of ten rounds is no faster, however many follow."""

Call = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one call: by the clock, and of all processors together."""

    wall: float
    processor: float


Round = tuple[Cost, Cost]
"""What the model and the baseline took for the same feed."""


def run(request: StageRequest, report: Report) -> StageResult:
    """The times as facts. Raises `StageError` when one of the models does not load or run."""
    options = decode(Options, dict(request.options))
    golden = read_golden(request.input("golden"))
    feeds = [sample.inputs for sample in golden.first(_MAX_SAMPLES)]
    report(0.0, "loading both models")
    model = open_session(request.input("model"), read_settings(options.session), error=StageError)
    baseline = open_session(request.input("baseline"), read_settings(options.baseline_session), error=StageError)
    rounds = _take_turns(_calls(model, feeds), _calls(baseline, feeds), options.seconds, report)
    return StageResult(facts=encode(_summarize(rounds)))


def _calls(session: onnxruntime.InferenceSession, feeds: Sequence[Mapping[str, Value]]) -> list[Call]:
    """A call for each feed. Raises `StageError` when the session fails on one."""
    for feed in feeds:
        try:
            run_session(session, feed)
        except RunError as error:
            raise StageError("the model does not run on the golden samples", details=(str(error),)) from error
    return [make_caller(session, feed) for feed in feeds]


def _take_turns(model: Sequence[Call], baseline: Sequence[Call], seconds: float, report: Report) -> list[Round]:
    """Rounds on one feed after the other, until the ratio is known or `seconds` have passed."""
    pairs = list(zip(model, baseline, strict=True))
    for one, two in (pairs * _WARM_UP)[: max(_WARM_UP, len(pairs))]:
        one()
        two()
    slowest = max(_time(call, 1).wall for call in pairs[0])
    repeats = max(1, round(_ROUND_SECONDS / max(slowest, 1e-9)))
    rounds: list[Round] = []
    began = time.perf_counter()
    while len(rounds) < _MAX_ROUNDS and not _is_known(rounds):
        share = (time.perf_counter() - began) / seconds
        if share >= 1 and len(rounds) >= _MIN_ROUNDS:
            break
        report(min(share, 1.0), f"round {len(rounds) + 1}")
        rounds.append(_take_turn(*pairs[len(rounds) % len(pairs)], repeats, first=len(rounds) % 2 == 0))
    return rounds


def _take_turn(model: Call, baseline: Call, repeats: int, *, first: bool) -> Round:
    """Whether the model is `first` alternates: the first one finds the caches that the other left."""
    one = _time(model if first else baseline, repeats)
    two = _time(baseline if first else model, repeats)
    return (one, two) if first else (two, one)


def _time(call: Call, repeats: int) -> Cost:
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        call()
    return Cost((time.perf_counter() - wall) / repeats, (time.process_time() - processor) / repeats)


def _is_known(rounds: Sequence[Round]) -> bool:
    if len(rounds) < _MIN_ROUNDS:
        return False
    low, middle, high = _spread(rounds)
    return low > _SLOWER or high - low <= _STEADY_SHARE * middle


def _spread(rounds: Sequence[Round]) -> tuple[float, float, float]:
    """The 10th percentile, median and 90th percentile of the ratio."""
    ratios = sorted(model.wall / baseline.wall for model, baseline in rounds)
    return ratios[len(ratios) // 10], statistics.median(ratios), ratios[-1 - len(ratios) // 10]


def _summarize(rounds: Sequence[Round]) -> Facts:
    low, ratio, high = _spread(rounds)
    return Facts(
        seconds=statistics.median(model.wall for model, _ in rounds),
        baseline_seconds=statistics.median(baseline.wall for _, baseline in rounds),
        ratio=ratio,
        low=low,
        high=high,
        processor_ratio=statistics.median(
            model.processor / max(baseline.processor, 1e-9) for model, baseline in rounds
        ),
        rounds=len(rounds),
    )
