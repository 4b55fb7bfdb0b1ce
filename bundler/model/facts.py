"""Facts about a model, found by the `inspect` stage without running it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from bundler.model.signature import Port, Signature, find_mask

MAX_METADATA_BYTES: Final = 1 << 20
"""Maximum size of a model's metadata in UTF-8. Loaders read it with `runtime.json` at each start. The largest of 105
models in 37 public packages has 74,955 bytes: the alphabet of PP-OCRv6's recogniser in rapidocr 3.10.0. Others have
a few kilobytes.
"""


def metadata_bytes(metadata: Mapping[str, str]) -> int:
    """The size of keys and values in UTF-8; JSON may hold lone surrogates, which count as they are escaped there."""
    return sum(len(text.encode("utf-8", "backslashreplace")) for entry in metadata.items() for text in entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The properties of a model that planning and messages use.

    `operators` counts nodes by qualified name (`Conv`, `com.microsoft.Gelu`), subgraphs and functions included.
    `file_bytes` is the ONNX file alone, `external_bytes` its external data, `weight_bytes` all initializers and
    constants. `peak_memory_bytes` is an estimate: weights plus the largest sum of live activations at batch size one;
    None where shapes are unknown. `generated_bytes` are constants that the graph generates instead of storing them (a
    network published without weights). `external_sizes` are the bytes of each of the `external_files` when the model
    was checked. `metadata` are the entries of `metadata_props`; `masks` the inputs of integers that the graph takes for
    masks; `doubles` are the first values that are float64. `uneven_convolutions` counts convolutions whose numbers of
    channels `bundler.providers.webgpu` describes.
    """

    name: str
    ir_version: int
    opsets: Mapping[str, int]
    producer: str
    signature: Signature
    operators: Mapping[str, int]
    node_count: int
    parameter_count: int
    file_bytes: int
    weight_bytes: int
    external_bytes: int
    external_files: tuple[str, ...]
    custom_domains: tuple[str, ...]
    random_operators: tuple[str, ...]
    control_flow: bool
    quantized: bool
    peak_memory_bytes: int | None
    generated_bytes: int = 0
    external_sizes: tuple[int, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    masks: tuple[str, ...] = ()
    uneven_convolutions: int = 0
    doubles: tuple[str, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Bytes of the model file and its external data together."""
        return self.file_bytes + self.external_bytes

    def is_mask(self, port: Port) -> bool:
        """Whether ones in this input let everything through, by its name or by its use."""
        return bool(find_mask(port.name, port.type.element_type)) or port.name in self.masks

    def has_operator(self, *names: str) -> bool:
        """Whether any of the operators occurs."""
        return any(name in self.operators for name in names)
