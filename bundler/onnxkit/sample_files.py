"""A user's samples, one at a time: .npz files, ONNX test_data_set_* folders, or a set that a stage wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import OptionalProto, SequenceProto, TensorProto, numpy_helper

from bundler.model.errors import UsageError
from bundler.model.signature import Port, Signature, ValueType
from bundler.onnxkit.archives import ArchiveMember, open_members, read_archive
from bundler.onnxkit.golden import INDEX, read_golden
from bundler.onnxkit.value_files import MAX_SAMPLE_BYTES, Value
from bundler.support.text import visible

_MAX_SAMPLES = 10_000_000
"""More samples are a damaged or hostile header."""
_DIGITS = re.compile(r"([0-9]{1,4000})")
"""Longer rows of digits cannot be converted by Python."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSet:
    """Samples by name, in order. `read` returns one by its position; `seed` is that of a prepared synthetic set."""

    names: Sequence[str]
    read: Callable[[int], dict[str, Value]]
    seed: int | None = None
    close: Callable[[], None] = lambda: None


def open_samples(path: Path, signature: Signature) -> SampleSet:
    """The samples at `path`, of which only names and sizes are read so far. Raises `UsageError`.

    A folder of .npz files (one per sample), a folder of ONNX test_data_set_* folders or one of those, one .npz whose
    arrays have a leading sample axis, or the `index.json` of a set that a stage wrote.
    """
    if path.is_file() and path.suffix == ".npz":
        return open_archive(path, signature)
    if path.is_file() and path.name == INDEX:
        golden = read_golden(path)
        names = [visible(str(entry["name"])) for entry in golden.entries]
        return SampleSet(names=names, read=lambda position: dict(golden.sample(position).inputs), seed=golden.seed)
    if not path.is_dir():
        hint = "--samples accepts a folder of .npz files, a folder of ONNX test_data_set_* folders, or one .npz file"
        raise UsageError(f"{visible(path.name)} is neither a folder of samples nor an .npz file", hint=hint)
    if re.match(r"test_data_set_\d+$", path.name):
        return _folder_set([path], lambda item: _read_test_set(item, signature))
    sets = sorted(path.glob("test_data_set_*"), key=natural_order)
    archives = sorted((item for item in path.glob("*.npz") if not item.name.startswith(".")), key=natural_order)
    if sets:
        return _folder_set(sets, lambda item: _read_test_set(item, signature))
    return _folder_set(archives, lambda item: dict(read_archive(item)))


def _folder_set(paths: Sequence[Path], read: Callable[[Path], dict[str, Value]]) -> SampleSet:
    names = [visible(path.stem if path.suffix == ".npz" else path.name) for path in paths]
    return SampleSet(names=names, read=lambda position: read(paths[position]))


def natural_order(path: Path) -> tuple[tuple[int, str], ...]:
    """Key for sorting `set_10` after `set_9`; the same on every file system."""
    return natural_key(path.name)


def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """As `natural_order`, for a name. Digits of other scripts sort as letters."""
    return tuple((int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in _DIGITS.split(name))


def open_archive(path: Path, signature: Signature) -> SampleSet:
    """One archive: the first axis of every array counts the samples, unless all arrays fit one sample."""
    members = open_members(path)
    if _is_one_sample(members, signature):
        return SampleSet(names=[visible(path.stem)], read=lambda _: dict(read_archive(path)))
    lengths = {name: member.shape[0] if member.shape else None for name, member in members.items()}
    if len(set(lengths.values())) > 1 or None in lengths.values():
        listed = tuple(f"{name!r}: {'a scalar' if length is None else length}" for name, length in lengths.items())
        raise UsageError(
            f"the arrays in {visible(path.name)} do not have the same number of samples",
            details=listed,
            hint="the first axis of every array counts the samples; the other axes are those of one model input",
        )
    total = next(iter(lengths.values()), 0) or 0
    if total > _MAX_SAMPLES:
        raise UsageError(f"{visible(path.name)} declares {total:,} samples", hint="check how it was written")
    names = [f"{visible(path.stem)}-{index:03d}" for index in range(total)]

    def read(index: int) -> dict[str, Value]:
        return {name: member.item(index) for name, member in members.items()}

    def close() -> None:
        for member in members.values():
            member.close()

    return SampleSet(names=names, read=read, close=close)


def _is_one_sample(members: Mapping[str, ArchiveMember], signature: Signature) -> bool:
    ranks = {port.name: len(port.type.shape) for port in signature.inputs if port.type.shape is not None}
    return bool(members) and all(ranks.get(name) == len(member.shape) for name, member in members.items())


def _read_test_set(folder: Path, signature: Signature) -> dict[str, Value]:
    """`input_N.pb` by position: inputs that must be given come first, as in ONNX's own test runner."""
    ports = [port for port in signature.inputs if not port.optional] + [p for p in signature.inputs if p.optional]
    files = sorted(folder.glob("input_*.pb"), key=natural_order)
    if len(files) > len(ports):
        hint = "`bundler inspect MODEL` shows the model's inputs"
        raise UsageError(f"{folder.name} has {len(files)} inputs, and the model has {len(ports)}", hint=hint)
    return {port.name: _read_proto(file, port) for port, file in zip(ports, files, strict=False)}


def _read_proto(path: Path, port: Port) -> Value:
    try:
        if not path.is_file():
            raise ValueError("it is not a regular file")  # noqa: TRY301 - reported as those below; reading a pipe may never end
        if path.stat().st_size > MAX_SAMPLE_BYTES:
            raise ValueError(f"it is larger than {MAX_SAMPLE_BYTES:,} bytes")  # noqa: TRY301 - as above
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
    """Text of a TensorProto is bytes; the runtime requires str."""
    if array.dtype.kind not in "OS":
        return array
    texts = [item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in array.reshape(-1)]
    return np.array(texts, dtype=object).reshape(array.shape)
