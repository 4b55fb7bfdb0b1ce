"""What the headers of recordings declare of their length, where libsndfile does not compare it with the file."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import soundfile

if TYPE_CHECKING:
    from typing_extensions import Buffer

HEAD_BYTES: Final = 1 << 16
"""Bytes in which the header of a WAV file ends."""

_TAG_BYTES: Final = 200
"""Bytes of an MP3 file's first frame in which the tag's counts stand."""
_FRAMES_AND_BYTES: Final = 3
"""The flags of a tag that counts both."""
_UNCOUNTED_BYTES: Final = 4096
"""Bytes that may follow those that a tag declares: a frame has at most 1,441, and some encoders omit the tag's own."""


class PatchedFile(io.FileIO):
    """A file in which the bytes at some places read as others."""

    def __init__(self, path: Path, patch: Mapping[int, int]) -> None:
        super().__init__(path)
        self._patch = patch

    def readinto(self, buffer: Buffer) -> int:
        """As a file, but for those bytes."""
        start = self.tell()
        count = super().readinto(buffer)
        read = memoryview(buffer).cast("B")
        for place, value in self._patch.items():
            if start <= place < start + count:
                read[place - start] = value
        return count


def patch_wav(head: bytes) -> dict[int, int]:
    """The length of a WAV file's samples, where it says 0, as the greatest number: libsndfile takes that for the rest
    of the file, and 0 for none.
    """
    place = 12
    while head[:4] == b"RIFF" and place + 8 <= len(head):
        name, length = struct.unpack_from("<4sI", head, place)
        if name == b"data":
            return {} if length else dict.fromkeys(range(place + 4, place + 8), 0xFF)
        place += 8 + length + length % 2
    return {}


def _patch_flac(head: bytes) -> dict[int, int]:
    """The count of samples in a FLAC file's header (36 bits, RFC 9639, section 8.2) as 0, which is unknown."""
    return {21: head[21] & 0xF0, **dict.fromkeys(range(22, 26), 0)}


def has_more(path: Path, frames: int) -> bool:
    """Whether there is sound behind the `frames` that the header of a FLAC or MP3 file declares. Raises `OSError`."""
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
        if head[:4] != b"fLaC":
            return _has_more_mp3(stream, head)
    with PatchedFile(path, _patch_flac(head)) as patched, soundfile.SoundFile(patched) as sound:
        try:
            sound.seek(frames)
        except soundfile.SoundFileError:
            return False
        return True


def _has_more_mp3(stream: BinaryIO, head: bytes) -> bool:
    """Whether frames or a header follow the bytes that a tag of LAME or Xing declares, as where files were joined."""
    start = 10 + sum((byte & 0x7F) << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=False))
    start = start if head[:3] == b"ID3" else 0
    stream.seek(start)
    frame = stream.read(_TAG_BYTES)
    place = max(frame.find(b"Xing"), frame.find(b"Info"))
    if place < 0 or place + 16 > len(frame):
        return False
    flags, _, size = struct.unpack_from(">3I", frame, place + 4)
    if flags & _FRAMES_AND_BYTES != _FRAMES_AND_BYTES:
        return False
    stream.seek(start + size)
    following = stream.read(_UNCOUNTED_BYTES)
    joined = following[:3] == b"ID3" or (following[:1] == b"\xff" and following[1:2] >= b"\xe0")
    return joined and len(following) == _UNCOUNTED_BYTES
