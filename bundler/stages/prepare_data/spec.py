"""What `prepare_data` takes and makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bundler.model.shapes import FixedShape, SizeRange
from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="prepare_data",
    title="Prepare the data",
    inputs=("model", "data?", "tokenizer?", "held_out?"),
    produces="samples",
    packages=("numpy", "onnxruntime", "pillow", "soundfile", "tokenizers"),
)
"""Writes a set in the golden set's form, without outputs.

`data` is the user's file or folder; a function of an installed module and synthetic data have none. `tokenizer` is for
texts. `held_out` is another prepared set: what is equal to one of its samples is left out.

Facts: `kind`, `part`, `samples` (written), `total` (found; None where a function was not read to its end), `dropped`
(equal to held-out ones), `distinct` (different ones among those written), `synthetic`, `dimensions` (sizes that seeded
inputs took, by symbol), `constant_inputs` (the same value in all samples), `constant_samples` (how many hold one value
only), `preprocessing` (the filled record, or None).
"""

Kind = Literal["samples", "images", "audio", "text", "python", "synthetic"]
Part = Literal["all", "calibration", "held-out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`entry` is `FUNCTION` in the Python file `data`, or `package.module:FUNCTION`. `preprocessing` is the encoded
    declaration.

    `part` `held-out` takes one of every `every` samples, by the natural order of their names and at changing places,
    and `calibration` the others. `limit` samples at most are taken of those, spread evenly (of a function's the first;
    0: all).
    `dimensions` gives dynamic dimensions a size by name, `shapes` those without one; `ranges` bound open ones, by name
    or place. `allow_constant` takes samples that all hold one value,
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
