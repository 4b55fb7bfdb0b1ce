"""What `stamp_key` takes and makes."""

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
"""Facts: `key`, and the `value` that stands under it: the digest (SHA-256) of the model's files before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`key` is the metadata key that the provider reads (`COREML_CACHE_KEY`)."""

    key: str
