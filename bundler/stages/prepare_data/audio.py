"""Recordings: read, mixed to one channel and resampled to the model's rate, one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from bundler.model.preprocessing import AudioDeclaration, AudioRecord, read_declaration
from bundler.model.signature import Port, Signature, describe_type
from bundler.onnxkit.elements import element_named
from bundler.onnxkit.value_files import Value
from bundler.stages.prepare_data.dataset import DataSet, UnreadableError, taker
from bundler.stages.prepare_data.folders import find_files
from bundler.stages.prepare_data.recordings import open_recording
from bundler.stages.prepare_data.resampling import needed_frames, resample
from bundler.stages.prepare_data.resolving import (
    check_filled,
    given_ports,
    is_float_port,
    make_constants,
    named_port,
    only_port,
    refuse,
)
from bundler.stages.prepare_data.spec import Options

MAX_FRAMES: Final = 100_000_000
"""Limit for recordings without a declared length: over an hour and a half at 16 kHz; 400 MB."""
_MAX_AXES: Final = 3


def open_audio(root: Path, signature: Signature, options: Options) -> DataSet:
    """The recordings in a folder and below, in the natural order of their names. Raises `UsageError`."""
    declaration = read_declaration(options.preprocessing)
    if not isinstance(declaration, AudioDeclaration):
        raise TypeError("the declaration is not for audio")
    record = resolve_audio(declaration, signature)
    constants = make_constants(record.constants, signature)
    found = find_files(root, "audio")

    def load(position: int) -> Mapping[str, Value]:
        return {record.input: load_audio(found.paths[position], record), **constants}

    return DataSet(total=len(found.paths), take=taker(found.names, load), record=record, notes=found.notes)


def resolve_audio(declaration: AudioDeclaration, signature: Signature) -> AudioRecord:
    """The complete record. Raises `UsageError` where the declaration does not fit the model's input."""
    port = _find_port(declaration, signature)
    shape = port.type.shape or (None, None)
    if not 1 <= len(shape) <= _MAX_AXES or any(isinstance(size, int) and size != 1 for size in shape[:-1]):
        raise refuse(f"{port.name!r} is {describe_type(port.type)}, and audio is one row of samples")
    fixed = shape[-1] if isinstance(shape[-1], int) else None
    if None not in (fixed, declaration.length) and fixed != declaration.length:
        raise refuse(f"length is {declaration.length}, and {port.name!r} is {describe_type(port.type)}")
    check_filled(signature, {port.name, *declaration.constants})
    return AudioRecord(
        input=port.name,
        dtype=port.type.element_type or "float32",
        rank=len(shape),
        sample_rate=declaration.sample_rate,
        mono=declaration.mono,
        resample=declaration.resample,
        length=fixed or declaration.length,
        normalise=declaration.normalise,
        constants=declaration.constants,
    )


def _find_port(declaration: AudioDeclaration, signature: Signature) -> Port:
    if declaration.input is None:
        ports = [port for port in given_ports(signature, declaration.constants) if is_float_port(port)]
        return only_port(ports, signature, "input", "audio")
    port = named_port(signature, declaration.input, "input")
    if not is_float_port(port):
        raise refuse(f"{port.name!r} is {describe_type(port.type)}, and audio consists of floating-point numbers")
    return port


def load_audio(path: Path, record: AudioRecord) -> np.ndarray:
    """The recording as model input. Raises `UnreadableError`."""
    found = open_recording(path)
    if not found.frames:
        raise UnreadableError("it has no samples")
    if found.rate != record.sample_rate and record.resample == "none":
        raise UnreadableError(
            f"it has {found.rate} Hz, and the model requires {record.sample_rate} Hz (resample is none)"
        )
    needed = found.frames
    if record.length is not None:
        needed = min(needed, needed_frames(record.length, found.rate, record.sample_rate))
    if needed * found.channels > MAX_FRAMES or needed * record.sample_rate > MAX_FRAMES * found.rate:
        raise UnreadableError(f"it has more than {MAX_FRAMES:,} samples; declare a length, or shorten it")
    frames = found.read(needed)
    single = frames[:, 0] if record.mono == "first" else frames.mean(axis=1, dtype=np.float32)
    values = resample(single, found.rate, record.sample_rate, record.resample)[: record.length]
    return _finish(_normalise(values, record), record)


def _normalise(values: np.ndarray, record: AudioRecord) -> np.ndarray:
    if record.normalise == "peak":
        peak = np.abs(values).max()
        return values / peak if peak else values
    if record.normalise == "standard":
        centred = values - values.mean(dtype=np.float64)
        deviation = centred.std(dtype=np.float64)
        scaled: np.ndarray = centred / deviation if deviation else centred
        return scaled.astype(np.float32)
    return values


def _finish(values: np.ndarray, record: AudioRecord) -> np.ndarray:
    if record.length is not None:
        values = np.pad(values, (0, record.length - len(values)))
    shape = (1,) * (record.rank - 1) + (len(values),)
    return np.ascontiguousarray(values, element_named(record.dtype).dtype).reshape(shape)
