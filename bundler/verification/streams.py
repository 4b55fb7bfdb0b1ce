"""Whether a bundle's streams are those of its golden set: the same links, and the same initial values."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any, Final

from bundler.model.codec import parse_json
from bundler.model.confinement import find_inside
from bundler.model.runtime import RuntimeComponent
from bundler.model.state import StateLink
from bundler.support.remembered import read_bounded

INDEX: Final = "index.json"
MAX_INDEX_BYTES: Final = 256 << 20
MAX_VALUE_BYTES: Final = 1 << 30

_FLOATS: Final = {"float16": "<e", "float32": "<f", "float64": "<d"}
_INTEGERS: Final = {f"{sign}int{8 * size}": size for sign in ("", "u") for size in (1, 2, 4, 8)}
"""How a constant is written, by its type: the format of `struct`, or bytes. Of other types no constant is compared."""


def find_state_fault(root: Path, component: RuntimeComponent) -> str:
    """Why the state in `runtime.json` is not that of the golden set below the payload folder `root`; empty where it is.

    A stream that begins otherwise gives other outputs than those that were compared.
    """
    try:
        index = parse_json(read_bounded(find_inside(root, f"{component.golden}/{INDEX}"), MAX_INDEX_BYTES))
        if index.get("state", {}) != {link.input: link.output for link in component.state}:
            return "its state is not that of the golden set"
        different = [link.input for link in component.state if not _begins_so(root, component, link, index)]
    except (OSError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        return f"its golden set has no initial state that can be read ({type(error).__name__})"
    return f"the initial value of {different[0][:80]!r} is not that of the golden set" if different else ""


def _begins_so(root: Path, component: RuntimeComponent, link: StateLink, index: Any) -> bool:
    recorded = index["samples"][0]["inputs"][link.input]
    path = f"{component.golden}/{recorded['file']}"
    data = read_bounded(find_inside(root, path), MAX_VALUE_BYTES)
    if link.initial == "file":
        same = (link.file, list(link.shape)) == (path, recorded["shape"])
        return same and hashlib.sha256(data).hexdigest() == link.sha256
    if link.initial == "zeros":
        return not any(data)
    element = _write_constant(link.value, recorded["type"])
    return element is None or data == element * (len(data) // len(element))


def _write_constant(value: float, element_type: str) -> bytes | None:
    """One element as a golden set has it; None for a type that Python does not write."""
    if element_type in _INTEGERS:
        size = _INTEGERS[element_type]
        return (int(value) % (1 << 8 * size)).to_bytes(size, "little")
    form = _FLOATS.get(element_type)
    return None if form is None else struct.pack(form, value)
