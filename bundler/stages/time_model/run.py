"""Run two models alternately on the same inputs, so that other load on the machine slows both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
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
_MIN_ROUNDS, _MAX_ROUNDS = 5, 200
_WARM_UP: Final = 3

Call = Callable[[], None]
Round = tuple[float, float]
"""Seconds that the model and the baseline took for all feeds."""


def run(request: StageRequest, report: Report) -> StageResult:
    """The times as facts. Raises `StageError` when one of the models does not load or run."""
    options = decode(Options, dict(request.options))
    golden = read_golden(request.input("golden"))
    feeds = [sample.inputs for sample in golden.first(_MAX_SAMPLES)]
    report(0.0, "loading both models")
    model = open_session(request.input("model"), read_settings(options.session), error=StageError)
    baseline = open_session(request.input("baseline"), read_settings(options.baseline_session), error=StageError)
    rounds = _take_turns(_caller(model, feeds), _caller(baseline, feeds), options.seconds, report)
    return StageResult(facts=encode(_summarize(rounds, len(feeds))))


def _caller(session: onnxruntime.InferenceSession, feeds: Sequence[Mapping[str, Value]]) -> Call:
    """A call that runs the session on all feeds once. Raises `StageError` when the session fails on one."""
    for feed in feeds:
        try:
            run_session(session, feed)
        except RunError as error:
            raise StageError("the model does not run on the golden samples", details=(str(error),)) from error
    calls = [make_caller(session, feed) for feed in feeds]

    def call() -> None:
        for one in calls:
            one()

    return call


def _take_turns(model: Call, baseline: Call, seconds: float, report: Report) -> list[Round]:
    for _ in range(_WARM_UP):
        model()
        baseline()
    repeats = max(1, round(_ROUND_SECONDS / max(_time(model, 1), _time(baseline, 1), 1e-9)))
    rounds: list[Round] = []
    began = time.perf_counter()
    while len(rounds) < _MAX_ROUNDS:
        share = (time.perf_counter() - began) / seconds
        if share >= 1 and len(rounds) >= _MIN_ROUNDS:
            break
        report(min(share, 1.0), f"round {len(rounds) + 1}")
        first = len(rounds) % 2 == 0  # alternate: the first one finds the caches that the other left
        one = _time(model if first else baseline, repeats)
        two = _time(baseline if first else model, repeats)
        rounds.append((one, two) if first else (two, one))
    return rounds


def _time(call: Call, repeats: int) -> float:
    began = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - began) / repeats


def _summarize(rounds: Sequence[Round], feeds: int) -> Facts:
    ratios = sorted(model / baseline for model, baseline in rounds)
    return Facts(
        seconds=statistics.median(model for model, _ in rounds) / feeds,
        baseline_seconds=statistics.median(baseline for _, baseline in rounds) / feeds,
        ratio=statistics.median(ratios),
        low=ratios[len(ratios) // 10],
        high=ratios[-1 - len(ratios) // 10],
        rounds=len(ratios),
    )
