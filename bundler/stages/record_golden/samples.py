"""Read a user's samples: folders of .npz, ONNX test_data_set_* folders, one .npz with a leading sample axis."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import OptionalProto, SequenceProto, TensorProto, numpy_helper

from bundler.model.errors import UsageError
from bundler.model.signature import Port, Signature, ValueType
from bundler.workbench.value_files import Value

Samples = list[tuple[str, dict[str, Value]]]


def read_samples(path: Path, signature: Signature, limit: int) -> tuple[Samples, int]:
    """The first `limit` samples by name, and how many there are. Raises `UsageError`."""
    if path.is_file() and path.suffix == ".npz":
        return _split_archive(path, signature, limit)
    if not path.is_dir():
        raise UsageError(
            f"{path.name} is neither a folder of samples nor an .npz file",
            hint="--samples takes a folder of .npz files, a folder of ONNX test_data_set_* folders, or one .npz file",
        )
    if re.match(r"test_data_set_\d+$", path.name):
        return [(path.name, _read_test_set(path, signature))], 1
    sets = sorted(path.glob("test_data_set_*"), key=_natural_order)
    archives = sorted(path.glob("*.npz"), key=_natural_order)
    if sets:
        return [(item.name, _read_test_set(item, signature)) for item in sets[:limit]], len(sets)
    return [(item.stem, dict(_read_archive(item))) for item in archives[:limit]], len(archives)


def _natural_order(path: Path) -> tuple[Any, ...]:
    """`set_10` comes after `set_9`; the same on every file system."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name))


def _read_archive(path: Path) -> dict[str, np.ndarray]:
    try:
        # NumPy would take anything else for a pickle, and advise to load it all the same.
        if not zipfile.is_zipfile(path):
            raise zipfile.BadZipFile("it is no .npz archive, or only part of one")  # noqa: TRY301 - told as those below
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise UsageError(
            f"the samples in {path.name} cannot be read",
            details=(str(error).partition("\n")[0],),
            hint="write it with numpy.savez; text must be saved as numpy.str_, not as Python objects",
        ) from error


def _split_archive(path: Path, signature: Signature, limit: int) -> tuple[Samples, int]:
    """One archive: the first axis of every array counts the samples, unless all arrays fit one sample as they are."""
    arrays = _read_archive(path)
    if _is_one_sample(arrays, signature):
        return [(path.stem, dict(arrays))], 1
    lengths = {name: len(array) if array.ndim else None for name, array in arrays.items()}
    if len(set(lengths.values())) > 1 or None in lengths.values():
        listed = tuple(f"{name!r}: {'a scalar' if length is None else length}" for name, length in lengths.items())
        raise UsageError(
            f"the arrays in {path.name} do not have the same number of samples",
            details=listed,
            hint="the first axis of every array counts the samples; the rest is what the model takes for one call",
        )
    total = next(iter(lengths.values()), 0) or 0
    return [(f"{path.stem}-{index:03d}", _take(arrays, index)) for index in range(min(total, limit))], total


def _take(arrays: Mapping[str, np.ndarray], index: int) -> dict[str, Value]:
    return {name: np.asarray(array[index]) for name, array in arrays.items()}


def _is_one_sample(arrays: Mapping[str, np.ndarray], signature: Signature) -> bool:
    ranks = {port.name: len(port.type.shape) for port in signature.inputs if port.type.shape is not None}
    return bool(arrays) and all(ranks.get(name) == array.ndim for name, array in arrays.items())


def _read_test_set(folder: Path, signature: Signature) -> dict[str, Value]:
    """`input_N.pb` by position: inputs that must be given first, as ONNX's own test runner counts them."""
    ports = [port for port in signature.inputs if not port.optional] + [p for p in signature.inputs if p.optional]
    files = sorted(folder.glob("input_*.pb"), key=_natural_order)
    if len(files) > len(ports):
        raise UsageError(
            f"{folder.name} has {len(files)} inputs, and the model takes {len(ports)}",
            hint="`bundler inspect MODEL` shows what the model takes",
        )
    return {port.name: _read_proto(file, port) for port, file in zip(ports, files, strict=False)}


def _read_proto(path: Path, port: Port) -> Value:
    try:
        return _decode(path.read_bytes(), port.type)
    except (DecodeError, ValueError, TypeError, onnx.checker.ValidationError) as error:
        raise UsageError(
            f"{path.parent.name}/{path.name} cannot be read as a value for the input {port.name!r}",
            details=(str(error).partition("\n")[0],),
            hint="the files input_N.pb hold one TensorProto, SequenceProto or OptionalProto each, in the inputs' order",
        ) from error


def _decode(data: bytes, kind: ValueType) -> Value:
    if kind.kind == "sequence":
        return _own_list(numpy_helper.to_list(SequenceProto.FromString(data)))
    if kind.kind == "optional":
        found = numpy_helper.to_optional(OptionalProto.FromString(data))
        return _own_list(found) if isinstance(found, list) else found
    return _own_array(numpy_helper.to_array(TensorProto.FromString(data)))


def _own_list(items: list[Any]) -> list[Any]:
    return [_own_list(item) if isinstance(item, list) else _own_array(item) for item in items]


def _own_array(array: np.ndarray) -> np.ndarray:
    """Text of a TensorProto is bytes; the runtime wants str."""
    if array.dtype.kind not in "OS":
        return array
    texts = [item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in array.reshape(-1)]
    return np.array(texts, dtype=object).reshape(array.shape)
