"""Run a pipeline over the original models and over a bundle's, sample by sample, and compare what it answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from bundler.model.codec import decode, encode
from bundler.model.errors import BundlerError, StageError, UsageError
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.onnxkit.user_code import open_function, report_user_errors
from bundler.stages.run_pipeline.answers import Tolerance, compare_answers, read_answer
from bundler.stages.run_pipeline.bundles import open_bundle
from bundler.stages.run_pipeline.spec import Facts, Options
from bundler.support.text import visible

MAX_DIFFERENCES: Final = 5
"""Differences that the facts name."""

Function = Callable[[SimpleNamespace, Any], Any]


def run(request: StageRequest, report: Report) -> StageResult:
    """How many answers are equal. Raises `UsageError` for a function that fails or answers otherwise each time, and
    `StageError` for one that fails with the bundle's models alone.
    """
    options = decode(Options, dict(request.options))
    file = request.input("function")
    samples = _list_samples(request.input("samples"))
    report(0.0, "loading the models")
    original = open_bundle(options.components, request.inputs, "original", as_given=True)
    shipped = open_bundle(options.components, request.inputs, "model", as_given=False)
    tolerance = Tolerance(absolute=options.absolute, relative=options.relative)
    equal, largest, differences = 0, 0.0, list[str]()
    with open_function(file, options.entry) as function:
        _check_repeatable(function, file, original, samples[0])
        for index, sample in enumerate(samples):
            report(index / len(samples), f"sample {index + 1} of {len(samples)}")
            reference = _call(function, file, original, sample)
            answer = _call_shipped(function, file, shipped, sample)
            found = list(compare_answers(reference, answer, tolerance))
            largest = max((largest, *(item.size for item in found)))
            counted = [f"{visible(sample.name)}{item.place}: {item.text}" for item in found if item.counts]
            equal += not counted
            differences += counted
    facts = Facts(
        samples=len(samples), equal=equal, max_absolute=largest, differences=tuple(differences[:MAX_DIFFERENCES])
    )
    return StageResult(facts=encode(facts))


def _list_samples(folder: Path) -> tuple[Path, ...]:
    """The files of the folder, by name. Raises `UsageError` where there are none."""
    found = tuple(path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith("."))
    if not found:
        raise UsageError("there are no samples for the pipeline", hint="put a file for each into the folder")
    return found


def _call(function: Function, file: Path, bundle: SimpleNamespace, sample: Path) -> Any:
    with report_user_errors(file):
        found = function(bundle, _read_sample(sample))
    if found is None:
        raise UsageError(
            f"the pipeline in {visible(file.name)} returned nothing for {visible(sample.name)}",
            hint="return what your application uses: text, numbers, lists, dictionaries or arrays",
        )
    return read_answer(found)


def _read_sample(path: Path) -> Any:
    if path.suffix != ".npz":
        return path
    try:
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)
    except (OSError, ValueError) as error:
        raise UsageError(f"the sample {visible(path.name)} cannot be read: {visible(str(error))}") from error


def _call_shipped(function: Function, file: Path, bundle: SimpleNamespace, sample: Path) -> Any:
    try:
        return _call(function, file, bundle, sample)
    except BundlerError as error:
        raise StageError(
            f"the pipeline answers with the original models, and fails with those of the bundle: {error.message}",
            details=error.details,
            hint="an output changed so much that the pipeline cannot use it; choose another precision",
        ) from error


def _check_repeatable(function: Function, file: Path, bundle: SimpleNamespace, sample: Path) -> None:
    """Raise `UsageError` for a function whose answers could not be compared with anything."""
    first, second = (_call(function, file, bundle, sample) for _ in range(2))
    found = next(compare_answers(first, second, Tolerance(absolute=0.0, relative=0.0)), None)
    if found is not None:
        raise UsageError(
            f"the pipeline in {visible(file.name)} answers otherwise each time it gets {visible(sample.name)}",
            details=(f"{found.place or 'the answer'}: {found.text}",),
            hint="seed its random numbers, and leave times out of what it returns",
        )
