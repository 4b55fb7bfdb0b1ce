"""Find weaknesses of a golden set that come from its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from onnx import ModelProto

from bundler.model.free_dimensions import FreeDimension, free_dimensions
from bundler.model.golden_inputs import TriedDimension, Weakness
from bundler.model.signature import Signature
from bundler.onnxkit.branches import Branch
from bundler.onnxkit.seeded_sets import SeededSet
from bundler.onnxkit.value_files import Value

MIN_SAMPLES: Final = 8
"""With fewer samples the spread of the figures is uncertain."""
MAX_LISTED_BRANCHES: Final = 8
_BILLION: Final = 1e9

SYNTHETIC: Final = Weakness(kind="synthetic", name="", text="the inputs are synthetic: seeded values, not real data")

Inputs = Mapping[str, Value]


def describe_seeded(found: SeededSet) -> Iterator[Weakness]:
    """Weaknesses of a set with seeded inputs."""
    yield SYNTHETIC
    count = len(found.samples)
    if count < found.wanted:
        work = f"{found.multiplications / _BILLION:.1f} billion multiplications"
        cost = f"{work} and {found.sample_bytes / 1e6:.1f} MB of inputs and outputs"
        text = f"{_count(count)} instead of {found.wanted}: one run of the model costs {cost}"
        yield Weakness(kind="few-samples", name="", text=text)


def describe_count(count: int) -> Iterator[Weakness]:
    """A weakness if a user's set is small."""
    if count < MIN_SAMPLES:
        judge = "judges" if count == 1 else "judge"
        text = f"{_count(count)} {judge} the model; with {MIN_SAMPLES} or more the figures show their spread"
        yield Weakness(kind="few-samples", name="", text=text)


def _count(count: int) -> str:
    return f"{count} sample{'' if count == 1 else 's'}"


def describe_sizes(
    signature: Signature, samples: Iterable[Inputs], tried: Sequence[TriedDimension]
) -> Iterator[Weakness]:
    """The free dimensions that have one size in all samples."""
    kept = list(samples)
    refused = {item.label: item.refused for item in tried}
    for item in free_dimensions(signature):
        sizes = {size for values in kept for size in _sizes_of(item, values)}
        if len(sizes) != 1:
            continue
        others = ", ".join(str(entry.size) for entry in refused.get(item.label, ()))
        why = f"the model rejected {others}" if others else "no other size was compared"
        text = f"{item.label} is {min(sizes)} in all samples: {why}"
        yield Weakness(kind="one-size", name=item.label, text=text)


def _sizes_of(item: FreeDimension, values: Inputs) -> Iterator[int]:
    value = values.get(item.port)
    for array in value if isinstance(value, list) else [value]:
        if isinstance(array, np.ndarray) and array.ndim > item.axis:
            yield array.shape[item.axis]


def describe_repeated(model: ModelProto) -> Iterator[Weakness]:
    """The outputs that repeat an input beside new values, as a decoder's keys and values do."""
    producers = {name: node for node in model.graph.node for name in node.output}
    inputs = {item.name for item in model.graph.input} - {item.name for item in model.graph.initializer}
    for output in model.graph.output:
        node = producers.get(output.name)
        repeated = [name for name in node.input if name in inputs] if node and node.op_type == "Concat" else []
        if repeated:
            what = f"output {output.name!r} repeats input {repeated[0]!r}"
            text = f"{what}, so an error in the rest of it counts little"
            yield Weakness(kind="repeats-input", name=output.name, text=text)


def describe_branches(untaken: Sequence[Branch] | None) -> Iterator[Weakness]:
    """The branches that no sample took."""
    if untaken is None:
        text = "the branches that the model took could not be determined"
        yield Weakness(kind="branches-not-followed", name="", text=text)
    for branch in (untaken or ())[:MAX_LISTED_BRANCHES]:
        text = f"no sample took the {branch.side} branch of the condition {branch.node}"
        yield Weakness(kind="branch-not-taken", name=branch.node, text=text)
    rest = len(untaken or ()) - MAX_LISTED_BRANCHES
    if rest > 0:
        yield Weakness(kind="branch-not-taken", name="", text=f"no sample took {rest} more branches of conditions")
