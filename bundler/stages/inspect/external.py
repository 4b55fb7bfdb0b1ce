"""Check external data: inside the model's folder, present, and long enough. Reports all problems at once."""

from __future__ import annotations

import errno
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final

from onnx import TensorProto

from bundler.model.errors import ModelError
from bundler.model.paths import real_path
from bundler.onnxkit.elements import element_of_onnx, storage_bytes
from bundler.onnxkit.placement_facts import limit_lines, tidy

_MAX_SHOWN: Final = 20
_MAX_LENGTH: Final = 400
"""Maximum number of characters of a line about one file: an invalid name may have thousands."""
_MIN_SPARSE: Final = 1 << 30
"""Bytes of external data from which a file is searched for holes: a smaller one costs little, whatever it holds."""
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")


_LINK: Final = " link, "
_REPLACE_LINKS: Final = (
    "copy the model's folder with `cp -rL FOLDER COPY`, which makes real files of links, "
    "and build the model in the copy"
)
_REPLACE_FILES: Final = (
    "put the complete data files into the folder of the model, or save the model again with "
    "onnx.save_model(…, save_as_external_data=True)"
)


def check_external_data(tensors: Iterable[TensorProto], folder: Path) -> tuple[str, ...]:
    """The relative paths of all external files, sorted. Raises `ModelError` with every problem."""
    external = [tensor for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL]
    locations = sorted({_entry(tensor, "location") for tensor in external})
    bad = {location: problem for location in locations if (problem := _location_problem(location, folder))}
    problems = list(bad.values())
    for tensor in external:
        problems += _repetition_problems(tensor)
        if _entry(tensor, "location") not in bad:
            problems += _extent_problems(tensor, folder)
    problems = problems or list(_hole_problems(external, folder))
    if problems:
        raise _refusal(problems)
    return tuple(str(PurePosixPath(location)) for location in locations)


def _read_number(text: str, other: int) -> int:
    """Digits only: Python's other forms (`1_0`, blanks, digits of other scripts) are read differently elsewhere."""
    if text and not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return int(text or other)


def _refusal(problems: list[str]) -> ModelError:
    return ModelError(
        "the model's external data cannot be used",
        details=limit_lines([tidy(problem, _MAX_LENGTH) for problem in problems], _MAX_SHOWN),
        hint=_REPLACE_LINKS if all(_LINK in problem for problem in problems) else _REPLACE_FILES,
    )


def _entry(tensor: TensorProto, key: str) -> str:
    return next((entry.value for entry in tensor.external_data if entry.key == key), "")


def _location_problem(location: str, folder: Path) -> str | None:
    if not location:
        return "a tensor does not name a file for its data"
    if _leaves(location):
        return f"{location!r} lies outside the model's folder"
    try:
        return _file_problem(location, folder)
    except OSError as error:
        return f"a path of {len(location)} characters cannot be read: {error.strerror}: {location!r}"


def _file_problem(location: str, folder: Path) -> str | None:
    path = folder / location
    if path.is_symlink() or not real_path(path).is_relative_to(real_path(folder)):
        return f"{location!r} is a symbolic link, or lies behind one, which the ONNX format forbids"
    if not path.is_file():
        return f"{location!r} is missing"
    if path.stat().st_nlink > 1:
        return f"{location!r} is a hard link, which the ONNX library does not read"
    return None


def _leaves(location: str) -> bool:
    """Whether a path leaves its folder on any system: a model is built here and used elsewhere."""
    kinds = (PurePosixPath(location), PureWindowsPath(location))
    return "\0" in location or any(path.anchor or ".." in path.parts for path in kinds)


def _repetition_problems(tensor: TensorProto) -> Iterator[str]:
    """Report keys with several entries: some readers use the first and others the last."""
    for key, count in Counter(entry.key for entry in tensor.external_data).items():
        if count > 1:
            yield f"tensor {tensor.name!r}: {key!r} is given {count} times, and tools differ in which one they read"


def _hole_problems(tensors: Sequence[TensorProto], folder: Path) -> Iterator[str]:
    """Report a file of which more than half was never written, as an interrupted download leaves it. A hole of any size
    costs nothing on the disk, and its own size in time and memory here.
    """
    by_file: dict[str, list[TensorProto]] = {}
    for tensor in tensors:
        by_file.setdefault(_entry(tensor, "location"), []).append(tensor)
    for location, inside in by_file.items():
        needed = sum(_length(tensor) for tensor in inside)
        if needed < _MIN_SPARSE or not hasattr(os, "SEEK_DATA"):
            continue
        with (folder / location).open("rb") as stream:
            missing = sum(_hole_bytes(stream.fileno(), tensor) for tensor in inside)
        if missing * 2 > needed:
            yield f"{location!r} is incomplete: {missing:,} of its {needed:,} bytes were never written (a sparse file)"


def _hole_bytes(file: int, tensor: TensorProto) -> int:
    """Bytes of the hole that a tensor begins with; systems without holes report data everywhere."""
    offset, length = _read_number(_entry(tensor, "offset"), 0), _length(tensor)
    try:
        return min(os.lseek(file, offset, os.SEEK_DATA) - offset, length)
    except OSError as error:
        return length if error.errno == errno.ENXIO else 0  # no data up to the end


def _length(tensor: TensorProto) -> int:
    return storage_bytes(element_of_onnx(tensor.data_type), math.prod(tensor.dims))


def _extent_problems(tensor: TensorProto, folder: Path) -> Iterator[str]:
    location = _entry(tensor, "location")
    needed = _length(tensor)
    try:
        offset, length = _read_number(_entry(tensor, "offset"), 0), _read_number(_entry(tensor, "length"), needed)
    except ValueError:
        yield f"tensor {tensor.name!r}: offset or length in {location!r} is not a number"
        return
    size = (folder / location).stat().st_size
    if offset < 0 or length < 0:
        yield f"tensor {tensor.name!r}: offset or length in {location!r} is negative"
    elif length != needed:
        yield f"tensor {tensor.name!r}: requires {needed} bytes and has {length} in {location!r}"
    elif offset + length > size:
        yield f"{location!r} is truncated: tensor {tensor.name!r} ends at byte {offset + length} of {size}"
