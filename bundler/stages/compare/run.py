"""Load the model as the bundle will, run the golden inputs, and measure the error of its outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnxruntime

from bundler.model.codec import decode, encode
from bundler.model.errors import StageError
from bundler.model.results import Comparison
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.onnxkit.golden import GoldenSet, read_golden
from bundler.onnxkit.golden_tally import GoldenTally
from bundler.onnxkit.running import RunError, count_lanes, run_in_lanes
from bundler.onnxkit.sessions import open_session, read_settings
from bundler.onnxkit.value_files import Value
from bundler.stages.compare.spec import Options


def run(request: StageRequest, report: Report) -> StageResult:
    """The comparison as facts. Raises `StageError` when the model does not load or does not run."""
    settings = read_settings(encode(decode(Options, dict(request.options))))
    golden, model = read_golden(request.input("golden")), request.input("model")
    report(0.0, "loading the model")
    session = open_session(model, settings, error=StageError, hint=_HINT)
    # A plugin's library, or the emulator in it, may not be thread-safe.
    lanes = 1 if settings.plugins or golden.state else count_lanes(settings, model)
    comparison = _compare(session, golden, lanes, report)
    return StageResult(facts=encode(comparison))


_HINT = "the step before wrote a model that its own runtime rejects; try a lower `optimization.level`"


def _compare(session: onnxruntime.InferenceSession, golden: GoldenSet, lanes: int, report: Report) -> Comparison:
    tally, total = GoldenTally(golden, (port.name for port in session.get_outputs())), len(golden)
    held: dict[str, Value] = {}
    feeds = _feed_stream(golden, held) if golden.state else (sample.inputs for sample in golden)
    for index, actual in enumerate(run_in_lanes(session, feeds, lanes)):
        report(index / total, f"sample {index + 1} of {total}")
        sample = golden.sample(index)
        if isinstance(actual, RunError):
            message = f"the model no longer runs on the golden sample {sample.name}"
            raise StageError(message, details=(str(actual),), hint=_HINT) from actual
        tally.add(sample, actual)
        held.update({taken: actual[given] for taken, given in golden.state.items() if given in actual})
    return tally.result()


def _feed_stream(golden: GoldenSet, held: Mapping[str, Value]) -> Iterator[Mapping[str, Value]]:
    """The inputs of each step: the first begins with the recorded state, all others have what the model itself gave as
    `held` when they are asked for, so that errors add up as they will for an application.
    """
    for sample in golden:
        yield {**sample.inputs, **held}
