"""Outputs by position and by name, the model's own names among them."""

from __future__ import annotations

from typing import Any


def find_output(outputs: Any, key: Any, names: tuple[str, ...]) -> Any:
    """`outputs[key]` of a named tuple: a position or slice, one of `names` (those of the model, in order), or an
    attribute's name. Where a name is both, it is that of the model. Raises `KeyError` for a name that is neither.
    """
    if not isinstance(key, str):
        return tuple.__getitem__(outputs, key)
    for known in (names, outputs._fields):
        if key in known:
            return tuple.__getitem__(outputs, known.index(key))
    raise KeyError(f"no output is named {key[:80]!r}; they are {', '.join(outputs._fields)}")
