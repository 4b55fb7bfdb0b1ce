"""Inputs, facts and options of the stage `record_golden`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bundler.model.golden_inputs import TriedDimension, Weakness
from bundler.model.reference import ReferenceFigures
from bundler.model.shapes import FixedShape, SizeRange
from bundler.model.signature import Dimension
from bundler.model.stage import StageSpec
from bundler.model.state import InitialFile, StateLink


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was recorded: `samples` counts them; `dimensions` are sizes of dynamic dimensions in the first seeded
    inputs, by symbol, and `shapes` are all of their shapes, by input; `tried_dimensions` are those that the search for
    seeded inputs tried (none for a user's samples). `initial` are the values from files that a stream begins with, by
    input. `contradicted` are true shapes of inputs and outputs that the model declares otherwise, by name.
    """

    samples: int
    synthetic: bool
    unstable_outputs: tuple[str, ...]
    non_finite_outputs: tuple[str, ...]
    dimensions: Mapping[str, int]
    tried_dimensions: tuple[TriedDimension, ...]
    references: tuple[ReferenceFigures, ...]
    weaknesses: tuple[Weakness, ...]
    initial: Mapping[str, InitialFile] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    contradicted: Mapping[str, tuple[Dimension, ...] | None] = field(default_factory=dict)


SPEC = StageSpec(
    name="record_golden",
    title="Record the golden set",
    inputs=("model", "original?", "samples?", "recorded?"),
    produces="golden",
    packages=("onnxruntime", "onnx", "numpy"),
    least_time=900.0,
    facts=Facts,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The role `samples` is the user's folder or file, or the index of a set that `prepare_data` wrote; `recorded` is a
    set that this stage recorded from the same model, of which samples are copied with their outputs.

    `seed` and `count` (a maximum: fewer for a large model) are for seeded inputs, when no samples are given, and so is
    `rounds`: some method loses precision, so that samples of several larger sizes come to them;
    `dimensions` gives dynamic dimensions a size by name, `shapes` those without a name (by input, None where nothing is
    fixed), and `ranges` bound open ones, by name or place; of given samples at most `max_samples` are used, spread
    evenly. A set that `travels` is part of every bundle: its samples are named by numbers, and with `alike` they are
    seeded ones, similar to those of `recorded` and equal to none. With `state` the samples are the first steps of one
    stream, without its inputs: each step's state is an output of the step before. A link's `file` is the role of the
    .npy file that it begins with. `renamed` are new names by those that the role `original` has: a model with other
    names than `model`, whose outputs are recorded.
    """

    seed: int = 0
    count: int = 8
    rounds: bool = False
    dimensions: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, FixedShape] = field(default_factory=dict)
    ranges: Mapping[str, SizeRange] = field(default_factory=dict)
    max_samples: int = 16
    travels: bool = True
    alike: bool = False
    state: tuple[StateLink, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
