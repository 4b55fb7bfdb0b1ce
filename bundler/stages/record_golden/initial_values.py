"""What a stream begins with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bundler.model.errors import UsageError
from bundler.model.signature import Port, Signature, describe_type
from bundler.model.state import StateLink
from bundler.onnxkit.archives import read_header
from bundler.onnxkit.elements import element_named
from bundler.onnxkit.equality import value_is_finite
from bundler.onnxkit.fitting import adopt_types, sample_problems
from bundler.onnxkit.value_files import Value


def make_initial(port: Port, link: StateLink, files: Mapping[str, Path]) -> Value:
    """The initial value of a state, whose sizes are fixed but for the axis along which it grows; `files` are those of
    initial values, by role.

    Raises `UsageError` for a file that is no array, or does not fit the input.
    """
    if link.initial == "file":
        return _read_fitting(files[link.file], port)
    sizes = (0 if axis == link.grows else size for axis, size in enumerate(port.type.shape or ()))
    shape = tuple(size for size in sizes if isinstance(size, int))
    return np.full(shape, link.value).astype(element_named(port.type.element_type or "").dtype)


def _read_fitting(path: Path, port: Port) -> Value:
    try:
        array = _read_array(path)
    except (OSError, ValueError, EOFError) as error:
        raise _refuse(port, str(error).partition("\n")[0]) from error
    signature = Signature(inputs=(port,), outputs=())
    values = adopt_types({port.name: array}, signature)
    for problem in sample_problems(values, signature):
        raise _refuse(port, problem)
    if not value_is_finite(values[port.name]):
        raise _refuse(port, "it holds NaN or infinity")
    return values[port.name]


def _read_array(path: Path) -> np.ndarray:
    """In this machine's byte order. A header can declare any size, and NumPy would allocate it."""
    with path.open("rb") as stream:
        shape, kind, _ = read_header(stream)
        if math.prod(shape) * kind.itemsize != path.stat().st_size - stream.tell():
            raise ValueError("it does not have the size that its header declares")
    array: np.ndarray = np.load(path, allow_pickle=False)
    return np.asarray(array, array.dtype.newbyteorder("="), order="C")


def _refuse(port: Port, why: str) -> UsageError:
    return UsageError(
        f"the initial value of state {port.name[:80]!r} cannot be used",
        details=(why,),
        hint=f"write it with numpy.save: numbers of the type {describe_type(port.type)}",
    )
