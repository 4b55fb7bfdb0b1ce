"""Recordings in the formats that libsndfile reads: WAV, FLAC, Ogg and MP3."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import soundfile

from bundler.stages.prepare_data.dataset import UnreadableError
from bundler.stages.prepare_data.header_lengths import HEAD_BYTES, PatchedFile, has_more, patch_wav

_FORMATS: Final = ("WAV", "WAVEX", "RF64", "FLAC", "OGG", "MP3")
_UNKNOWN_LENGTHS: Final = (0, 0xFFFFFFFF)
"""Lengths in the header of a WAV file that was written to a pipe, when the real one was not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The contents of a file's header. `frames` are samples for each channel, `rate` is in Hz."""

    path: Path
    rate: int
    channels: int
    frames: int

    def read(self, count: int) -> np.ndarray:
        """The first `count` frames as float32, from -1 to 1: [frames, channels]. Raises `UnreadableError`."""
        with _opened(self.path) as sound:
            frames: np.ndarray = sound.read(count, dtype="float32", always_2d=True)
        if len(frames) != count:
            raise UnreadableError("it is truncated")
        if count == self.frames and has_more(self.path, count):
            raise UnreadableError(f"its header declares {count:,} samples, and it has more: write it again")
        return frames


def open_recording(path: Path) -> Recording:
    """The header of a file. Raises `UnreadableError`."""
    with _opened(path) as sound:
        if sound.format not in _FORMATS:
            raise UnreadableError(f"it is {sound.format}: {SUPPORTED}")
        return Recording(path=path, rate=sound.samplerate, channels=sound.channels, frames=sound.frames)


SUPPORTED: Final = "supported are WAV, FLAC, Ogg and MP3; `ffmpeg -i sound.m4a sound.wav` converts other formats"


@contextmanager
def _opened(path: Path) -> Iterator[soundfile.SoundFile]:
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
        _check_length(head, path.stat().st_size)
        with PatchedFile(path, patch_wav(head)) as patched, soundfile.SoundFile(patched) as sound:
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
