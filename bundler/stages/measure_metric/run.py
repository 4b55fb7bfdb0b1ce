"""Run the model as the bundle will, and have the user's own metric judge its answers and the untouched model's."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bundler.model.codec import decode
from bundler.model.errors import StageError, UsageError
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.stages.measure_metric.commands import check_command, measure, write_folders
from bundler.stages.measure_metric.samples import Samples, answer_with, recorded_answer
from bundler.stages.measure_metric.spec import Options
from bundler.workbench.golden import read_golden
from bundler.workbench.sessions import SessionSettings, open_session, read_settings
from bundler.workbench.user_code import open_function, show, told


def run(request: StageRequest, report: Report) -> StageResult:
    """`value` and `reference`. Raises `UsageError` or `StageError` where there is no number."""
    options = decode(Options, dict(request.options))
    if options.command:
        check_command(options.command)
    golden = read_golden(request.input("golden"))
    if not golden.entries:
        raise StageError("there are no samples to measure", hint="give some: --samples PATH")
    report(0.0, "opening the model")
    session = open_session(request.input("model"), _settings(options), error=StageError)
    own, reference = (
        Samples(golden, answer, _progress(report, half))
        for half, answer in ((0.0, answer_with(session)), (0.5, recorded_answer))
    )
    if options.command:
        value, at_best = _ask_command(options, own, request.output)
    else:
        value, at_best = _ask_function(request.input("metric"), options.python, own, reference)
    return StageResult(facts={"value": value, "reference": at_best, "samples": len(own)})


def _settings(options: Options) -> SessionSettings:
    names = ("providers", "session", "session_config", "disabled_optimizers")
    return read_settings({name: getattr(options, name) for name in names})


def _progress(report: Report, start: float) -> Callable[[int, int], None]:
    def tell(index: int, total: int) -> None:
        report(start + index / total / 2, f"sample {index + 1} of {total}")

    return tell


def _ask_command(options: Options, samples: Samples, output: Path) -> tuple[float, float]:
    """The folders lie where the executor clears them away."""
    folders = write_folders(samples, output)
    value = measure(options.command, folders, output)
    return value, measure(options.command, {**folders, "answers": folders["reference"]}, output)


def _ask_function(file: Path, name: str, own: Samples, reference: Samples) -> tuple[float, float]:
    with open_function(file, name) as function:
        return _call(function, file, own), _call(function, file, reference)


def _call(function: Callable[[Samples], Any], file: Path, samples: Samples) -> float:
    with told(file):
        found = function(samples)
    number = found.item() if hasattr(found, "item") and getattr(found, "size", 1) == 1 else found
    if _is_number(number) and math.isfinite(number):
        return float(number)
    raise UsageError(
        f"the metric in {show(file.name)} returned {_describe(found)}, not a number",
        hint="it takes the samples and returns one finite number; higher is better",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _describe(value: Any) -> str:
    if _is_number(value):
        return str(value)
    return "nothing" if value is None else f"a value of type {type(value).__name__}"
