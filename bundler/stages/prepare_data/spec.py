"""Inputs, facts and options of the stage `prepare_data`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bundler.model.shapes import FixedShape, SizeRange
from bundler.model.stage import StageSpec

Kind = Literal["samples", "images", "audio", "text", "python", "synthetic"]
Part = Literal["all", "calibration", "held-out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was found of the data, of which `samples` were written.

    `total` is None where a function was not read to its end. `dropped` counts samples equal to held-out ones,
    `distinct` the different ones among those written. `dimensions` are sizes of seeded inputs, by symbol.
    `preprocessing` is the complete record. `constant_inputs` hold the same value in all samples, `constant_samples`
    counts samples with one value only.
    """

    kind: Kind
    part: Part
    samples: int
    total: int | None
    dropped: int
    synthetic: bool
    dimensions: Mapping[str, int]
    preprocessing: Mapping[str, Any] | None
    distinct: int
    constant_inputs: tuple[str, ...]
    constant_samples: int


SPEC = StageSpec(
    name="prepare_data",
    title="Prepare the data",
    inputs=("model", "data?", "tokenizer?", "held_out?"),
    produces="samples",
    packages=("numpy", "onnxruntime", "pillow", "soundfile", "tokenizers"),
    facts=Facts,
)
"""Writes a set in the golden set's form, without outputs.

`data` is the user's file or folder; a function of an installed module and synthetic data have none. `tokenizer` is for
texts. `held_out` is another prepared set: samples equal to one of its samples are skipped.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`entry` is `FUNCTION` in the Python file `data`, or `package.module:FUNCTION`. `preprocessing` is the encoded
    declaration.

    `part` `held-out` selects one of every `every` samples in the natural order of their names, at a changing position
    in each block, and `calibration` the others. At most `limit` of those are used, spread evenly (of a function the
    first; 0: all).
    `dimensions` gives dynamic dimensions a size by name, `shapes` those without a name; `ranges` bound open ones, by
    name or place. `allow_constant` accepts samples that all hold one value,
    or NaN, which give no range to calibrate with. `seed` and `count` are for synthetic data.
    """

    kind: Kind
    entry: str = ""
    preprocessing: Mapping[str, Any] = field(default_factory=dict)
    part: Part = "all"
    every: int = 5
    limit: int = 0
    dimensions: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, FixedShape] = field(default_factory=dict)
    ranges: Mapping[str, SizeRange] = field(default_factory=dict)
    allow_constant: bool = False
    seed: int = 1
    count: int = 16
