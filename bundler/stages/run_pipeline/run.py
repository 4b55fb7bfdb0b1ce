"""Run a pipeline over the original models and over a bundle's, sample by sample, and compare what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from bundler.model.codec import decode, encode
from bundler.model.errors import BundlerError, StageError, UsageError
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.user_code import open_function, report_user_errors
from bundler.onnxkit.user_metrics import call_metric, check_metric, find_opposite
from bundler.stages.run_pipeline.answers import Difference, Tolerance, compare_answers, read_answer
from bundler.stages.run_pipeline.bundles import Bundle, open_bundle
from bundler.stages.run_pipeline.control import find_unnoticed
from bundler.stages.run_pipeline.samples import Answered, list_samples, read_sample
from bundler.stages.run_pipeline.spec import Facts, Options
from bundler.support.text import visible

MAX_DIFFERENCES: Final = 5
"""Differences that the facts name."""

_MISSING: Final = 'name its package in the project file: pipeline = { …, requires = ["PACKAGE"] }'

Answer = Callable[[Bundle, Path], Any]


def run(request: StageRequest, report: Report) -> StageResult:
    """How many answers are equal. Raises `UsageError` for a function that fails, or answers otherwise each time, or the
    same whatever the models answer, and `StageError` for one that fails with the bundle's models alone.
    """
    options = decode(Options, dict(request.options))
    file = request.input("function")
    samples = list_samples(request.input("samples"))
    report(0.0, "loading the models")
    original = open_bundle(options.components, request.inputs, "original", as_given=True)
    shipped = open_bundle(options.components, request.inputs, "model", as_given=False)
    tolerance = Tolerance(absolute=options.absolute, relative=options.relative)
    with open_function(file, options.entry, _MISSING) as function:
        answer: Answer = partial(_answer, function, file)
        _check_repeatable(answer, file, original, samples[0])
        answered = tuple(_answer_all(answer, original, shipped, samples, report))
        report(1.0, "checking that each model makes a difference")
        unnoticed = find_unnoticed(partial(answer, original), original, answered, tolerance)
    uncalled = tuple(name for name in unnoticed if not any(one.calls[name] for one in answered))
    if len(unnoticed) == len(options.components):
        raise _checks_nothing(file, uncalled, unnoticed)
    facts = replace(
        _compare_all(answered, tolerance),
        uncalled=uncalled,
        unnoticed=tuple(name for name in unnoticed if name not in uncalled),
    )
    if not options.metric:
        return StageResult(facts=encode(facts))
    facts, notes = _measure(request.input("metric"), options.metric, answered, facts)
    return StageResult(facts=encode(facts), notes=notes)


def _answer_all(
    answer: Answer, original: Bundle, shipped: Bundle, samples: Sequence[Path], report: Report
) -> Iterator[Answered]:
    for index, sample in enumerate(samples):
        report(index / len(samples), f"sample {index + 1} of {len(samples)}")
        before = {name: component.calls for name, component in original.components.items()}
        reference = answer(original, sample)
        calls = {name: component.calls - before[name] for name, component in original.components.items()}
        yield Answered(path=sample, reference=reference, answer=_answer_shipped(answer, shipped, sample), calls=calls)


def _answer(function: Callable[[Bundle, Any], Any], file: Path, bundle: Bundle, sample: Path) -> Any:
    with report_user_errors(file, missing=_MISSING):
        found = function(bundle, read_sample(sample))
        answer = read_answer(found)  # calls methods of what the function returned
    if answer is None:
        raise UsageError(
            f"the pipeline in {visible(file.name)} returned nothing for {visible(sample.name)}",
            hint="return what your application uses: text, numbers, lists, dictionaries or arrays",
        )
    return answer


def _answer_shipped(answer: Answer, bundle: Bundle, sample: Path) -> Any:
    try:
        return answer(bundle, sample)
    except BundlerError as error:
        raise StageError(
            f"the pipeline runs with the original models, but fails with the models of the bundle: {error.message}",
            details=error.details,
            hint="an output changed so much that the pipeline cannot use it; choose another precision",
        ) from error


def _check_repeatable(answer: Answer, file: Path, bundle: Bundle, sample: Path) -> None:
    """Raise `UsageError` for a function whose answers could not be compared with anything."""
    first, second = (answer(bundle, sample) for _ in range(2))
    found = next(compare_answers(first, second, Tolerance(absolute=0.0, relative=0.0)), None)
    if found is not None:
        raise UsageError(
            f"the pipeline in {visible(file.name)} gives a different answer each time for {visible(sample.name)}",
            details=(f"{found.place or 'the answer'}: {found.text}",),
            hint="seed its random numbers, and do not return times",
        )


def _checks_nothing(file: Path, uncalled: Sequence[str], unnoticed: Sequence[str]) -> UsageError:
    altered = ", ".join(name for name in unnoticed if name not in uncalled)
    lines = (
        f"it did not call {', '.join(uncalled)}" if uncalled else "",
        f"reversed, negated or zero outputs of {altered} changed none of its answers" if altered else "",
    )
    return UsageError(
        f"the pipeline in {visible(file.name)} returns the same answers for any outputs of the models: it checks "
        "none of them",
        details=tuple(filter(None, lines)),
        hint="return values that depend on the models' outputs, and narrow pipeline.absolute and pipeline.relative",
    )


def _compare_all(answered: Sequence[Answered], tolerance: Tolerance) -> Facts:
    found = [list(compare_answers(one.reference, one.answer, tolerance)) for one in answered]
    counted = [list(_describe(one, differences)) for one, differences in zip(answered, found, strict=True)]
    return Facts(
        samples=len(answered),
        equal=sum(not lines for lines in counted),
        max_absolute=max((item.size for differences in found for item in differences), default=0.0),
        differences=tuple(line for lines in counted for line in lines)[:MAX_DIFFERENCES],
    )


def _describe(one: Answered, differences: Sequence[Difference]) -> Iterator[str]:
    yield from (f"{visible(one.name)}{item.place}: {item.text}" for item in differences if item.counts)


def _measure(file: Path, entry: str, answered: Sequence[Answered], facts: Facts) -> tuple[Facts, tuple[Note, ...]]:
    """The user's metric of the answers, of the original models' own, and of those of other samples."""
    count = len(answered)
    best = [replace(one, answer=one.reference) for one in answered]
    swapped = [
        replace(one, answer=answered[find_opposite(place, count)].reference) for place, one in enumerate(answered)
    ]
    with open_function(file, entry, _MISSING) as metric:
        value, at_best = call_metric(metric, file, answered), call_metric(metric, file, best)
        notes = check_metric(lambda: call_metric(metric, file, swapped), at_best, count)
    return replace(facts, value=value, reference=at_best), notes
