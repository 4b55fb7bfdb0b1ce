"""Run the model as the bundle will, and apply the user's own metric to its outputs and the original model's."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from bundler.model.codec import decode, encode
from bundler.model.errors import StageError
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.golden import read_golden
from bundler.onnxkit.sessions import open_session, read_settings
from bundler.onnxkit.user_code import open_function
from bundler.onnxkit.user_metrics import call_metric, check_metric
from bundler.stages.measure_metric.commands import check_command, measure, write_folders
from bundler.stages.measure_metric.control import swap_files, swapped_outputs
from bundler.stages.measure_metric.samples import Samples, outputs_of_session, recorded_outputs
from bundler.stages.measure_metric.spec import Facts, Options


def run(request: StageRequest, report: Report) -> StageResult:
    """`value` and `reference`. Raises `UsageError` or `StageError` when there is no number."""
    options = decode(Options, dict(request.options))
    if options.command:
        check_command(options.command)
    golden = read_golden(request.input("golden"))
    if not golden.entries:
        raise StageError("there are no samples to measure", hint="give some: --samples PATH")
    report(0.0, "loading the model")
    settings = read_settings({name: getattr(options, name) for name in _SESSION})
    session = open_session(request.input("model"), settings, error=StageError)
    own, reference, swapped = (
        Samples(golden, compute, partial(_report_sample, report, step))
        for step, compute in enumerate((outputs_of_session(session), recorded_outputs, swapped_outputs(golden)))
    )
    if options.command:
        value, at_best, notes = _measure_command(options, own, request.output)
    else:
        value, at_best, notes = _measure_function(request.input("metric"), options.python, (own, reference, swapped))
    return StageResult(facts=encode(Facts(value=value, reference=at_best, samples=len(own))), notes=notes)


_SESSION = ("providers", "session", "session_config", "disabled_optimizers")
"""The options that say how the session is created."""
_STEPS = 3
"""The metric is computed for the model's outputs, the recorded ones, and those of other samples."""
_Measured = tuple[float, float, tuple[Note, ...]]


def _report_sample(report: Report, step: int, index: int, total: int) -> None:
    report((step + index / total) / _STEPS, f"sample {index + 1} of {total}")


def _measure_command(options: Options, samples: Samples, output: Path) -> _Measured:
    """Create the folders where the executor removes them."""
    folders = write_folders(samples, output)
    value, at_best = (
        measure(options.command, {**folders, "answers": folders[name]}, output) for name in ("answers", "reference")
    )

    def measure_control() -> float:
        swapped = swap_files(folders["reference"], output / "swapped")
        return measure(options.command, {**folders, "answers": swapped}, output)

    return value, at_best, check_metric(measure_control, at_best, len(samples))


def _measure_function(file: Path, name: str, samples: tuple[Samples, Samples, Samples]) -> _Measured:
    own, reference, swapped = samples
    with open_function(file, name) as function:
        value, at_best = call_metric(function, file, own), call_metric(function, file, reference)
        return value, at_best, check_metric(lambda: call_metric(function, file, swapped), at_best, len(own))
