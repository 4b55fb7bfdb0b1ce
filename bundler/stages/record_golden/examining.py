"""Find what the inputs of a golden set do not test, and choose the samples that run twice."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from onnx import ModelProto

from bundler.model.fixing import Fixing
from bundler.model.golden_inputs import TriedDimension, Weakness
from bundler.model.signature import Signature
from bundler.model.stage import Note
from bundler.onnxkit.branches import Branch, has_branches, name_condition, untaken_branches
from bundler.onnxkit.fixed_models import fix_model
from bundler.onnxkit.seeded_sets import MAX_SET_MULTIPLICATIONS
from bundler.onnxkit.structure import iterate_nodes
from bundler.onnxkit.value_files import Value
from bundler.onnxkit.weaknesses import describe_branches, describe_repeated, describe_sizes
from bundler.onnxkit.workload import count_multiplications

Samples = Sequence[Mapping[str, Value]]


def weaknesses_of(
    model: Path,
    structure: ModelProto,
    signature: Signature,
    samples: Samples,
    tried: Sequence[TriedDimension] = (),
    *,
    fixing: Fixing,
) -> Iterator[Weakness]:
    """Dimensions of one size, branches that no sample takes, and outputs that repeat an input."""
    yield from describe_sizes(signature, samples, tried)
    yield from describe_repeated(structure)
    if has_branches(structure):
        yield from describe_branches(_keep_open(untaken_branches(model, samples), structure, fixing))


def _keep_open(untaken: tuple[Branch, ...] | None, structure: ModelProto, fixing: Fixing) -> tuple[Branch, ...] | None:
    """Without the branches that no call can take at the fixed sizes: the bundle does not have them."""
    if not untaken:
        return untaken
    fixed = ModelProto()
    fixed.CopyFrom(structure)
    fix_model(fixed, fixing)
    nodes = {name_condition(node) for node in iterate_nodes(fixed) if node.op_type == "If"}
    return tuple(branch for branch in untaken if branch.node in nodes)


def choose_repeated(structure: ModelProto, samples: Samples, *, draws: bool) -> Collection[int]:
    """The samples that run twice: all when that is cheap or the model draws random numbers, else three."""
    count = len(samples)
    if draws or count * _multiplications(structure, samples) <= MAX_SET_MULTIPLICATIONS:
        return range(count)
    return {0, count // 2, count - 1}


def count_largest(structure: ModelProto, samples: Samples) -> int:
    """Multiplications of one run on the largest sample."""
    sizes = [sum(value.size for value in values.values() if isinstance(value, np.ndarray)) for values in samples]
    return _multiplications(structure, (samples[sizes.index(max(sizes))],))


def _multiplications(structure: ModelProto, samples: Samples) -> int:
    shapes = {name: value.shape for name, value in samples[0].items() if isinstance(value, np.ndarray)}
    return count_multiplications(structure, shapes)


def describe_only_sizes(tried: Sequence[TriedDimension]) -> Iterator[Note]:
    """Report the dynamic dimensions at which the model runs in one size only, which the bundle must fix."""
    fixed = [item for item in tried if item.only_size is not None]
    if not fixed:
        return
    sizes = ", ".join(f"{item.label}={item.only_size}" for item in fixed)
    others = "; ".join(f"{item.label}: {', '.join(str(entry.size) for entry in item.refused)}" for item in fixed)
    yield Note(text=f"the model runs only at {sizes} (rejected: {others})", level="warning")
