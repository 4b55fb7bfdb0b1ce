"""Checks inputs against the signature: name, type, rank, fixed dimensions, and one size for each symbol."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .config import Port, describe_type
from .errors import InputError
from .storage import STORAGE


def match_names(ports: list[Port], values: Mapping[str, object]) -> list[object]:
    """`values` in the order of `ports`, by Python name or by the model's own; None for an optional one left out.

    Exactly the model's own names are taken as such: one may be the Python name of another. Raises `InputError` for a
    name that is unknown, missing or given twice, and for values without names.
    """
    if not hasattr(values, "keys"):
        raise InputError("inputs are given by name", hint=f"give a dictionary of {_list_names(ports)}")
    if values.keys() == {port.name for port in ports}:
        return [values[port.name] for port in ports]
    by_name = {name: port for port in reversed(ports) for name in (port.name, port.python_name)}
    found: dict[str, object] = {}
    for name, value in values.items():
        port = by_name.get(name)
        if port is None:
            raise _unknown(name, ports)
        if port.python_name in found:
            raise InputError(f"input {port.python_name!r} is given twice", why=f"once as {name!r}")
        found[port.python_name] = value
    return [found.get(port.python_name) for port in ports]


def check_values(ports: list[Port], values: Iterable[object]) -> None:
    """Raises `InputError` when a value does not match its port."""
    symbols: dict[str, tuple[int, str]] = {}
    for port, value in zip(ports, values, strict=True):
        if value is None:
            if not port.optional and port.kind != "optional":
                raise InputError(f"input {port.python_name!r} is missing", hint=f"give {describe_type(port.type)}")
        elif port.kind == "tensor":
            _check_tensor(port, value, symbols)


def _unknown(name: str, ports: list[Port]) -> InputError:
    from difflib import get_close_matches

    names = [port.python_name for port in ports]
    close = get_close_matches(str(name), names + [port.name for port in ports], n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the inputs are {_list_names(ports)}"
    return InputError(f"no input is named {name!r}", hint=hint)


def _list_names(ports: list[Port]) -> str:
    return ", ".join(port.python_name for port in ports) or "(none)"


def _check_tensor(port: Port, value: object, symbols: dict[str, tuple[int, str]]) -> None:
    if not isinstance(value, (np.ndarray, np.generic)):
        raise InputError(
            f"input {port.python_name!r} is not a NumPy array",
            why=f"it is a {type(value).__name__}",
            hint=f"give numpy.asarray(value, dtype={dtype_name(port)!r})",
        )
    if not _has_type(port, value):
        raise InputError(
            f"input {port.python_name!r} has type {value.dtype}, the model requires {port.element_type}",
            hint=f"convert it: value.astype({dtype_name(port)!r})",
        )
    _check_shape(port, value.shape, symbols)


def _has_type(port: Port, value: np.ndarray | np.generic) -> bool:
    if port.element_type == "str":
        return value.dtype.kind in "OUT"
    return value.dtype == np.dtype(dtype_name(port))


def dtype_name(port: Port) -> str:
    """NumPy's type for a tensor port. Types that NumPy lacks are passed as the integers that store their bits."""
    if port.element_type == "str":
        return "object"
    return STORAGE.get(port.element_type or "", ("",))[0] or port.element_type or "object"


def _check_shape(port: Port, shape: tuple[int, ...], symbols: dict[str, tuple[int, str]]) -> None:
    if port.shape is None:
        return
    if len(shape) != len(port.shape):
        raise _misshapen(port, shape, f"it has {len(shape)} dimensions, not {len(port.shape)}")
    for axis, (size, wanted) in enumerate(zip(shape, port.shape, strict=True)):
        if isinstance(wanted, str):
            first, owner = symbols.setdefault(wanted, (size, port.python_name))
            if first != size:
                raise _misshapen(port, shape, f"{wanted} is {size} here (axis {axis}) but {first} in {owner!r}")
        elif wanted is not None and wanted != size:
            raise _misshapen(port, shape, f"axis {axis} is {size}, not {wanted}", port.fixed.get(axis))


_FIXED_BY = {
    "target": "by the target that it was built for",
    "user": "when it was built",
    "model": "because the original model ran only at this size, among those tried",
}


def _option_for(fixed: dict[str, Any]) -> str:
    """The option that fixes another size: by its name, or by its input where it has no name."""
    places = [(port, f"{port}[{axis}]") for port, axes in fixed.get("axes", {}).items() for axis in axes]
    option, name, value = next(
        (("--shape", port, "SIZES") for port, label in places if label == fixed["name"]), ("--dim", fixed["name"], "N")
    )
    return f"{option} {shlex.quote(f'{name}={value}')}" if name.isprintable() else f"{option} NAME={value}"


def _misshapen(port: Port, shape: tuple[int, ...], why: str, fixed: dict[str, Any] | None = None) -> InputError:
    """With `fixed`, the original model leaves the size open, and this bundle does not."""
    hint = f"the model requires {describe_type(port.type)}"
    if fixed is not None:
        why += f"; this bundle was fixed to {fixed['name']!r} = {fixed['size']} {_FIXED_BY[fixed['by']]}"
        hint = "give that size"
        if fixed["by"] != "model":
            hint += f", or build the bundle again with {_option_for(fixed)}"
    return InputError(f"input {port.python_name!r} has shape {list(shape)}", why=why, hint=hint)
