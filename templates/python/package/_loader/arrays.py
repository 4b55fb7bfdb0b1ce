"""Reads and writes arrays for the command line. Pickles are never read, because they can contain code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from .config import Port, describe_type
from .errors import InputError


def read_inputs(arguments: Sequence[str], ports: list[Port]) -> dict[str, Any]:
    """Inputs by name from `FILE.npz`, `NAME=FILE.npy`, or one `FILE.npy` for a model with one input.

    Raises `InputError` when a file cannot be read or does not say which input it is for.
    """
    found: dict[str, Any] = {}
    for argument in arguments:
        if argument.endswith(".npz"):
            found.update(_read_npz(argument))
            continue
        name, separator, path = argument.rpartition("=")
        if not separator and len(ports) != 1:
            raise InputError(f"{argument!r} does not name its input", hint=f"write {ports[0].python_name}={argument}")
        found[name if separator else ports[0].python_name] = _load(path)
    return {name: _as_strings(value) for name, value in found.items()}


def _read_npz(path: str) -> dict[str, Any]:
    with _load(path) as archive:
        return {name: archive[name] for name in archive.files}


def _load(path: str) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}", hint="give a file from numpy.savez or numpy.save") from error
    except (OSError, ValueError) as error:
        hint = "give a file from numpy.savez or numpy.save"
        raise InputError(f"cannot read {path}", why=str(error), hint=hint) from error


def _as_strings(value: np.ndarray) -> np.ndarray:
    """Strings as objects, as the runtime requires; files have them with a fixed width."""
    return value.astype(object) if value.dtype.kind == "U" else value


def write_outputs(path: str, ports: Sequence[Port], results: list[Any]) -> None:
    """Write tensors by Python name; a sequence or a map becomes its JSON text."""
    arrays = {port.python_name: _as_array(value) for port, value in zip(ports, results, strict=True)}
    try:
        with open(path, "wb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]  # its other keywords are flags
    except OSError as error:
        raise InputError(f"cannot write {path}", why=str(error), hint="choose another place") from error


def _as_array(value: Any) -> np.ndarray:
    if not isinstance(value, np.ndarray):
        return np.array(json.dumps(_as_plain(value)))
    return value.astype(str) if value.dtype.kind == "O" else value


def show_outputs(ports: Sequence[Port], results: list[Any]) -> None:
    """Print each output: its type, then its values, shortened when there are many."""
    for port, value in zip(ports, results, strict=True):
        print(f"{port.python_name}: {describe_type(port.type)}")
        text = np.array2string(value, threshold=40) if isinstance(value, np.ndarray) else json.dumps(_as_plain(value))
        print("  " + text.replace("\n", "\n  "))


def _as_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _as_plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_plain(item) for item in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
