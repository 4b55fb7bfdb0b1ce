"""Recordings in the formats that libsndfile reads: WAV, FLAC, Ogg and MP3."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import soundfile

from bundler.stages.prepare_data.dataset import UnreadableError

if TYPE_CHECKING:
    from typing_extensions import Buffer

_FORMATS: Final = ("WAV", "WAVEX", "RF64", "FLAC", "OGG", "MP3")
_UNKNOWN_LENGTHS: Final = (0, 0xFFFFFFFF)
"""Lengths in the header of a WAV file that was written to a pipe, when the real one was not known."""


_HEAD: Final = 1 << 16
"""Bytes in which the header of a WAV file ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The contents of a file's header. `frames` are samples for each channel, `rate` is in Hz."""

    path: Path
    rate: int
    channels: int
    frames: int

    def read(self, count: int) -> np.ndarray:
        """The first `count` frames as float32, from -1 to 1 where the file holds integers: [frames, channels].

        Raises `UnreadableError`.
        """
        with _opened(self.path) as sound:
            frames: np.ndarray = sound.read(count, dtype="float32", always_2d=True)
        if len(frames) != count:
            raise UnreadableError("it is truncated")
        return frames


def open_recording(path: Path) -> Recording:
    """The header of a file. Raises `UnreadableError`."""
    with _opened(path) as sound:
        if sound.format not in _FORMATS:
            raise UnreadableError(f"it is {sound.format}: {SUPPORTED}")
        return Recording(path=path, rate=sound.samplerate, channels=sound.channels, frames=sound.frames)


SUPPORTED: Final = "supported are WAV, FLAC, Ogg and MP3; `ffmpeg -i sound.m4a sound.wav` converts others"


class _PipedFile(io.FileIO):
    """A file in which the length of a WAV file's samples, where it says 0, reads as the greatest number: libsndfile
    takes that for the rest of the file, and 0 for none.
    """

    _length: int | None = None

    def find_length(self, head: bytes) -> None:
        """Look for such a length in the beginning of the file."""
        place = 12
        while head[:4] == b"RIFF" and place + 8 <= len(head):
            name, length = struct.unpack_from("<4sI", head, place)
            if name == b"data":
                self._length = None if length else place + 4
                return
            place += 8 + length + length % 2

    def readinto(self, buffer: Buffer) -> int:
        """As a file, but for that length."""
        start = self.tell()
        count = super().readinto(buffer)
        if self._length is not None:
            read = memoryview(buffer).cast("B")
            for place in range(max(self._length, start), min(self._length + 4, start + count)):
                read[place - start] = 0xFF
        return count


@contextmanager
def _opened(path: Path) -> Iterator[soundfile.SoundFile]:
    try:
        with _PipedFile(path) as stream:
            head = stream.read(_HEAD)
            _check_length(head, path.stat().st_size)
            stream.find_length(head)
            stream.seek(0)
            with soundfile.SoundFile(stream) as sound:
                yield sound
    except OSError as error:
        raise UnreadableError(f"it cannot be read: {error.strerror or error}") from error
    except soundfile.SoundFileError as error:
        words = str(getattr(error, "error_string", error)).rstrip(".")
        raise UnreadableError(f"it cannot be decoded ({words}): {SUPPORTED}") from error


def _check_length(head: bytes, size: int) -> None:
    """Check for truncation, because libsndfile reads a WAV file without its end. Raises `UnreadableError`."""
    if not size:
        raise UnreadableError("it is empty")
    if head[:4] != b"RIFF" or len(head) < 8:  # noqa: PLR2004 - a name and a length of four bytes each
        return
    (length,) = struct.unpack("<I", head[4:8])
    if length not in _UNKNOWN_LENGTHS and size < length + 8:
        raise UnreadableError(f"it is truncated: its header declares {length + 8:,} bytes, it has {size:,}")
