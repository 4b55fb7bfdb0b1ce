"""Folders as the Transformers library saves them, without the library: real enough to be looked at, not to be run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

CONFIG = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 4}


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> Path:
    """The format by hand: the header's length, the header, the numbers."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in tensors.items():
        end = len(data) + array.nbytes
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(data), end]}
        data += array.astype(np.float32).tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def write_folder(folder: Path, **config: Any) -> Path:
    """A folder with a configuration and one small file of weights."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {name: value for name, value in {**CONFIG, **config}.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(settings))
    write_safetensors(folder / "model.safetensors", {"a": np.ones((2, 3), np.float32)})
    return folder
