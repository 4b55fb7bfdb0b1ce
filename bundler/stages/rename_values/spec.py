"""Inputs, facts and options of the stage `rename_values`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="rename_values",
    title="Rename inputs, outputs and dimensions",
    inputs=("model",),
    produces="model",
    packages=("onnx",),
    changes_model=True,
    least_time=300.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`names` are the new names by the old ones, as `model.renaming.check_names` accepts them."""

    names: Mapping[str, str]
