"""The input of a metric: samples with inputs, reference and outputs, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import onnxruntime

from bundler.model.errors import StageError
from bundler.onnxkit.golden import GoldenSet
from bundler.onnxkit.golden import Sample as Recorded
from bundler.onnxkit.running import RunError, run_session
from bundler.onnxkit.value_files import Value

ComputeOutputs = Callable[[Recorded], Mapping[str, Value]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One call: `reference` are the original model's outputs, `answers` those of the model to be measured."""

    name: str
    inputs: Mapping[str, Value]
    reference: Mapping[str, Value]
    answers: Mapping[str, Value]


class Samples:
    """An iterable that can be iterated several times; the model runs during the iteration. `len` counts the samples.

    Samples that are steps of a stream are answered with the state that the model's own answer before left, so that
    errors add up; their `inputs` have the original model's.
    """

    def __init__(self, golden: GoldenSet, compute: ComputeOutputs, progress: Callable[[int, int], None]) -> None:
        self._golden, self._compute, self._progress = golden, compute, progress

    def __len__(self) -> int:
        return len(self._golden)

    def __iter__(self) -> Iterator[Sample]:
        held: dict[str, Value] = {}
        for index, recorded in enumerate(self._golden):
            self._progress(index, len(self))
            answers = self._compute(replace(recorded, inputs={**recorded.inputs, **held}))
            held = {taken: answers[given] for taken, given in self._golden.state.items() if given in answers}
            yield Sample(name=recorded.name, inputs=recorded.inputs, reference=recorded.outputs, answers=answers)


def outputs_of_session(session: onnxruntime.InferenceSession) -> ComputeOutputs:
    """Outputs of a session. Raises `StageError` where it rejects a sample."""

    def compute(sample: Recorded) -> Mapping[str, Value]:
        try:
            return run_session(session, sample.inputs)
        except RunError as error:
            raise StageError(
                f"the model no longer runs on the sample {sample.name!r}",
                details=(str(error),),
                hint="an earlier step changed the model's inputs",
            ) from error

    return compute


def recorded_outputs(sample: Recorded) -> Mapping[str, Value]:
    """The original model's own outputs."""
    return sample.outputs
