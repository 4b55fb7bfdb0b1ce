"""The trained sentence encoder of a package, in the graph that PyTorch's exporter writes, without PyTorch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from onnx import ModelProto

from tests.support.encoders import Shape, Writer

_WHERE = {
    "position": "embeddings.position_embeddings.",
    "type": "embeddings.token_type_embeddings.",
    "word": "embeddings.word_embeddings.",
    ".self.": ".attention.self.",
    ".out.": ".attention.output.dense.",
    ".attention.s": ".attention.output.LayerNorm.s",
    ".up.": ".intermediate.dense.",
    ".down.": ".output.dense.",
    ".output.s": ".output.LayerNorm.s",
    "embeddings.s": "embeddings.LayerNorm.s",
}
"""Parts of the writer's names, and what the package calls them."""


def trained_encoder(folder: Path) -> ModelProto:
    """ids, mask and types [batch, sequence] -> last_hidden_state [batch, sequence, width], of the folder of a model of
    BERT's kind: `config.json` and `model.safetensors`.
    """
    config = json.loads((folder / "config.json").read_text("utf-8"))
    shape = Shape(
        layers=config["num_hidden_layers"],
        width=config["hidden_size"],
        hidden=config["intermediate_size"],
        heads=config["num_attention_heads"],
        vocabulary=config["vocab_size"],
        positions=config["max_position_embeddings"],
    )
    return _TrainedWriter(shape=shape, trained=read_safetensors(folder / "model.safetensors")).make()


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The 32-bit tensors of a file: the length of a header, the header as JSON, then bytes."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    return {
        name: np.frombuffer(data[slice(*(start + end for end in entry["data_offsets"]))], "<f4").reshape(entry["shape"])
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


@dataclass
class _TrainedWriter(Writer):
    trained: Mapping[str, np.ndarray] = field(default_factory=dict)

    def draw(self, name: str, *shape: int, middle: float = 0.0) -> str:
        del middle
        values = self.trained[_name(name)]
        # A linear layer keeps its weights as [out, in], a product with a matrix wants [in, out].
        values = values if name in _WHERE or values.ndim == 1 else values.T
        assert values.shape == shape, name
        return self.keep(name, values)


def _name(name: str) -> str:
    if name in _WHERE:
        return f"{_WHERE[name]}weight"
    found = next(part for part in _WHERE if part in name and part not in ("position", "type", "word"))
    return name.replace(found, _WHERE[found]).replace("scale", "weight").replace("shift", "bias")
