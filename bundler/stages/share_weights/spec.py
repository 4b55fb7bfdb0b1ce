"""Inputs, facts and options of the stage `share_weights`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bundler.model.stage import StageSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedModel:
    """A model that was written: its `entry`, and all its `files`, the entry included, in the result's folder."""

    entry: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`models` are those that were written, by role; all others share nothing and stay as they are. `saved` are the
    bytes that are stored once instead of several times.
    """

    models: Mapping[str, SharedModel]
    saved: int


SPEC = StageSpec(
    name="share_weights",
    title="Store equal weights once",
    inputs=(),
    produces="model",
    packages=("onnx",),
    changes_model=True,
    least_time=300.0,
    facts=Facts,
)
"""Every input is a model, by any role. What is written has the same graphs and the same values of all tensors, which
the stage checks byte by byte: outputs need not be compared again.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`names` are the names of the files, without an ending, by role. Tensors of `threshold` bytes or more are shared
    where the same models have at least `minimum` bytes of them in common.
    """

    names: Mapping[str, str]
    threshold: int = 16_384
    minimum: int = 1_000_000
