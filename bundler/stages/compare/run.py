"""Open the model as the bundle will, run the golden inputs, and measure how far its answers are from theirs."""

from __future__ import annotations

from collections.abc import Mapping

import onnxruntime

from bundler.model.codec import decode, encode
from bundler.model.errors import StageError
from bundler.model.results import Comparison
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.stages.compare.metrics import Tally
from bundler.stages.compare.spec import Options
from bundler.workbench.golden import GoldenSet, Sample, read_golden
from bundler.workbench.running import RunError, run_session
from bundler.workbench.sessions import REFERENCE, SessionSettings, open_session
from bundler.workbench.value_files import Value


def run(request: StageRequest, report: Report) -> StageResult:
    """The comparison as facts. Raises `StageError` when the model does not open or does not run."""
    settings = _settings(decode(Options, dict(request.options)))
    golden = read_golden(request.input("golden"))
    report(0.0, "opening the model")
    session = open_session(request.input("model"), settings, error=StageError, hint=_HINT)
    comparison = _compare(session, golden, report)
    return StageResult(facts=encode(comparison))


_HINT = "the step before wrote a model that its own runtime refuses; a lower `optimization.level` may help"


def _settings(options: Options) -> SessionSettings:
    given = (options.providers, options.session, options.session_config, options.disabled_optimizers)
    if not any(given):
        return REFERENCE
    return SessionSettings(
        providers=tuple((name, dict(values)) for name, values in options.providers),
        session=options.session,
        session_config=options.session_config,
        disabled_optimizers=options.disabled_optimizers,
    )


def _compare(session: onnxruntime.InferenceSession, golden: GoldenSet, report: Report) -> Comparison:
    tallies: dict[str, Tally] = {}
    total = len(golden.entries)
    for index in range(total):
        report(index / total, f"sample {index + 1} of {total}")
        sample = golden.sample(index)
        actual = _run_sample(session, sample)
        for name, reference in sample.outputs.items():
            tally = tallies.setdefault(name, Tally(name=name, stable=name not in golden.unstable_outputs))
            _add(tally, reference, actual, sample.name)
    return Comparison(outputs=tuple(tally.result() for tally in tallies.values()), samples=total)


def _add(tally: Tally, reference: Value, actual: Mapping[str, Value], sample: str) -> None:
    if tally.name in actual:
        tally.add(reference, actual[tally.name], sample)
    else:
        tally.reject("the model has no such output any more")


def _run_sample(session: onnxruntime.InferenceSession, sample: Sample) -> dict[str, Value]:
    try:
        return run_session(session, sample.inputs)
    except RunError as error:
        raise StageError(
            f"the model no longer runs on the golden sample {sample.name}", details=(str(error),), hint=_HINT
        ) from error
