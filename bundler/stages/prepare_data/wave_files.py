"""WAV files: whole numbers of 8 to 32 bits and floating-point numbers, plain or in the extensible form.

Python's own `wave` reads neither floating-point numbers nor, before 3.12, the extensible form.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import numpy as np

from bundler.stages.prepare_data.dataset import UnreadableError

_INTEGER, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_TYPES: Final = {
    (_INTEGER, 8): "u1",
    (_INTEGER, 16): "<i2",
    (_INTEGER, 24): "u1",
    (_INTEGER, 32): "<i4",
    (_FLOAT, 32): "<f4",
    (_FLOAT, 64): "<f8",
}
_MOST_CHANNELS: Final = 256
_MOST_CHUNKS: Final = 1000
_LEAST_FORMAT: Final = 16
_EXTENDED_FORMAT: Final = 26
_BITS_24: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveFile:
    """Where the samples of a file stand. `frames` are samples for each channel."""

    path: Path
    rate: int
    channels: int
    frames: int
    coding: int
    bits: int
    start: int

    def read(self, first: int, count: int) -> np.ndarray:
        """`count` frames from `first` as float32 from -1 to 1: [frames, channels]. Raises `UnreadableError`."""
        width = self.channels * self.bits // 8
        with self.path.open("rb") as stream:
            stream.seek(self.start + first * width)
            data = stream.read(count * width)
        if len(data) != count * width:
            raise UnreadableError("it is cut off")
        raw = np.frombuffer(data, _TYPES[self.coding, self.bits])
        return _to_float(raw, self.coding, self.bits).reshape(count, self.channels)


def _to_float(raw: np.ndarray, coding: int, bits: int) -> np.ndarray:
    if coding == _FLOAT:
        return raw.astype(np.float32)
    if bits == _BITS_24:
        parts = raw.reshape(-1, 3).astype(np.int32)
        raw = parts[:, 0] << 8 | parts[:, 1] << 16 | parts[:, 2] << 24
        bits = 32
    numbers = raw.astype(np.int16) - 128 if raw.dtype == np.uint8 else raw
    return (numbers / np.float64(1 << (bits - 1))).astype(np.float32)


def open_wave(path: Path) -> WaveFile:
    """What the file's header says. Raises `UnreadableError`."""
    try:
        with path.open("rb") as stream:
            return _read_header(path, stream)
    except OSError as error:
        raise UnreadableError(f"it cannot be read: {error.strerror or error}") from error
    except struct.error as error:
        raise UnreadableError("it is cut off") from error


def _read_header(path: Path, stream: IO[bytes]) -> WaveFile:
    size = path.stat().st_size
    if not size:
        raise UnreadableError("it is empty")
    head = stream.read(12)
    if head[:4] != b"RIFF" or head[8:] != b"WAVE":
        raise UnreadableError("it is no WAV file (`ffmpeg -i sound.flac sound.wav` converts others)")
    shape: tuple[int, int, int, int] | None = None
    for _ in range(_MOST_CHUNKS):
        header = stream.read(8)
        if len(header) < 8:  # noqa: PLR2004 - a name and a length of four bytes each
            break
        name, length = struct.unpack("<4sI", header)
        if name == b"fmt ":
            shape = _read_format(stream.read(min(length, 64)))
            stream.seek(max(length - 64, 0) + length % 2, 1)
        elif name == b"data" and shape is not None:
            return _place(path, shape, stream.tell(), length, size)
        else:
            stream.seek(length + length % 2, 1)
    raise UnreadableError("it has no samples: its header is damaged")


def _read_format(data: bytes) -> tuple[int, int, int, int]:
    """Coding, channels, rate, bits."""
    coding, channels, rate, _, _, bits = struct.unpack("<HHIIHH", data[:_LEAST_FORMAT])
    if coding == _EXTENSIBLE and len(data) >= _EXTENDED_FORMAT:
        (coding,) = struct.unpack("<H", data[24:_EXTENDED_FORMAT])
    if (coding, bits) not in _TYPES:
        raise UnreadableError(
            f"its coding ({coding}, {bits} bits) is not taken: it takes PCM and floating-point numbers"
        )
    if not 0 < channels <= _MOST_CHANNELS or not rate:
        raise UnreadableError(f"it claims {channels} channels at {rate} Hz")
    return coding, channels, rate, bits


def _place(path: Path, shape: tuple[int, int, int, int], start: int, length: int, size: int) -> WaveFile:
    coding, channels, rate, bits = shape
    width = channels * bits // 8
    # Who writes to a pipe cannot know the length, and says 0 or the greatest number.
    known = length if 0 < length < 0xFFFFFFFF - 44 else size - start
    if start + known > size:
        raise UnreadableError(f"it is cut off: {known:,} bytes of samples are announced, {size - start:,} are there")
    frames = known // width
    return WaveFile(path=path, rate=rate, channels=channels, frames=frames, coding=coding, bits=bits, start=start)
