"""Inputs, facts and options of the stage `stamp_key`."""

from __future__ import annotations

from dataclasses import dataclass

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="stamp_key",
    title="Name the model for the device's cache",
    inputs=("model",),
    produces="model",
    packages=("onnx",),
    changes_model=True,
    least_time=300.0,
)
"""Facts: `key` and its `value`: the SHA-256 digest of the input model's files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`key` is the metadata key that the provider reads (`COREML_CACHE_KEY`)."""

    key: str
