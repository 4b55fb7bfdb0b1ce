"""Digests of values: the same for values with equal names, types, shapes and bits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from bundler.onnxkit.elements import element_of_array
from bundler.onnxkit.value_files import Value, to_storage


def digest_values(values: Mapping[str, Value]) -> bytes:
    """The digest of all inputs, or all outputs, of one run."""
    digest = hashlib.sha256()
    for name in sorted(values):
        _feed(digest, name)
        _feed_value(digest, values[name])
    return digest.digest()


def digest_each(values: Mapping[str, Value]) -> dict[str, bytes]:
    """The digest of each value, by its name."""
    return {name: digest_values({name: value}) for name, value in values.items()}


def _feed(digest: Any, text: object) -> None:
    data = str(text).encode("utf-8", "surrogatepass")
    digest.update(len(data).to_bytes(8, "little") + data)


def _feed_value(digest: Any, value: Value) -> None:
    if isinstance(value, np.ndarray):
        element = element_of_array(value)
        _feed(digest, f"{element.name}{value.shape}")
        if element.name == "str":
            for item in value.reshape(-1):
                _feed(digest, item)
        else:
            digest.update(to_storage(value, element))
    elif isinstance(value, list):
        _feed(digest, f"sequence {len(value)}")
        for item in value:
            _feed_value(digest, item)
    else:
        _feed(digest, sorted(value.items(), key=str) if isinstance(value, dict) else "none")
