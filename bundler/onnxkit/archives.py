"""NumPy's .npz archives, read one array or one element of the first axis at a time."""

from __future__ import annotations

import contextlib
import math
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from bundler.model.errors import UsageError
from bundler.onnxkit.value_files import MAX_SAMPLE_BYTES
from bundler.support.text import visible

T = TypeVar("T")

_MAX_EXPANSION = 1040
"""Maximum ratio of decompressed to compressed bytes: 1032 for deflate."""
_MAX_ARRAYS = 1000
"""More inputs than a model has. Each is looked up in the archive's directory."""
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class ArchiveMember:
    """One array of an archive. Elements of its first axis are read one after another, whatever its size."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self._opened = contextlib.ExitStack()
        self._stream: IO[bytes] | None = None
        self._whole: np.ndarray | None = None
        with _open(path, name) as stream:
            self.shape, self._dtype, self._start = read_header(stream)
        self.size = math.prod(self.shape) * self._dtype.itemsize
        if self.size > _most_bytes(path, name):
            raise ValueError("it declares more than it can hold")

    def item(self, index: int) -> np.ndarray:
        """Element `index` of the first axis. Cheap for increasing indices. Raises `UsageError`."""
        if self._start is None:
            if self._whole is None:
                self._whole = read_archive(self._path)[self._name]
            return np.asarray(self._whole[index])
        start = self._start
        return guarded(self._path, lambda: self._read(index, start))

    def close(self) -> None:
        """Close the file, which stays open between items; the next item reopens it."""
        self._opened.close()
        self._stream, self._whole = None, None

    def _read(self, index: int, start: int) -> np.ndarray:
        if self._stream is None:
            self._stream = self._opened.enter_context(_open(self._path, self._name))
        size = math.prod(self.shape[1:]) * self._dtype.itemsize
        _check_bytes(size)
        self._stream.seek(start + index * size)
        data = self._stream.read(size)
        if len(data) != size:
            raise ValueError("it is truncated")
        return np.frombuffer(data, self._dtype).reshape(self.shape[1:])


def open_members(path: Path) -> dict[str, ArchiveMember]:
    """The arrays of an archive by name, without reading them. Raises `UsageError`."""
    return guarded(path, lambda: {name: ArchiveMember(path, name) for name in _names(path)})


def read_archive(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an archive by name. Raises `UsageError`."""
    return guarded(path, lambda: _load(path))


def guarded(path: Path, read: Callable[[], T]) -> T:
    """The result of `read`. Raises `UsageError` for a file that is not an archive, or is damaged."""
    try:
        # NumPy would treat any other file as a pickle, and suggest to load it anyway.
        if not path.is_file() or not zipfile.is_zipfile(path):  # reading a pipe may never end
            raise zipfile.BadZipFile("it is not an .npz archive, or it is truncated")  # noqa: TRY301 - reported as those below
        return read()
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error) as error:
        hint = "write it with numpy.savez; text must be saved as numpy.str_, not as Python objects"
        details = (str(error).partition("\n")[0],)
        raise UsageError(f"the samples in {visible(path.name)} cannot be read", details=details, hint=hint) from error


def _load(path: Path) -> dict[str, np.ndarray]:
    # A header can declare any size, and NumPy allocates it.
    _check_bytes(sum(ArchiveMember(path, name).size for name in _names(path)))
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _check_bytes(size: int) -> None:
    """Reject huge arrays: some kilobytes of an archive can expand to gigabytes. Raises `ValueError`."""
    if size > MAX_SAMPLE_BYTES:
        raise ValueError(
            f"one sample, or an array without a leading sample axis, has {size:,} bytes, more than {MAX_SAMPLE_BYTES:,}"
        )


def _names(path: Path) -> list[str]:
    with np.load(path, allow_pickle=False) as archive:
        names = list(archive.files)
    if len(names) > _MAX_ARRAYS:
        raise ValueError(f"it holds {len(names):,} arrays, more than {_MAX_ARRAYS:,}")
    return names


@contextlib.contextmanager
def _open(path: Path, name: str) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(path) as archive, archive.open(_find(archive, name)) as stream:
        yield stream


def _find(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    return archive.getinfo(name if name in archive.namelist() else f"{name}.npy")


def _most_bytes(path: Path, name: str) -> int:
    """The size in the archive's directory, limited to what so many compressed bytes can expand to."""
    with zipfile.ZipFile(path) as archive:
        info = _find(archive, name)
    return min(info.file_size, min(info.compress_size, path.stat().st_size) * _MAX_EXPANSION)


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], int | None]:
    """Shape, type, and the offset of the elements (None where not contiguous). Raises `ValueError` for pickles."""
    version = np.lib.format.read_magic(stream)
    header = _HEADERS.get(version)
    if header is None:
        raise ValueError("it holds named records, or has a newer format")
    shape, fortran, dtype = header(stream)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if math.prod(shape) and not dtype.itemsize:  # of which some bytes can declare any number
        raise ValueError("it has elements of no size")
    return shape, dtype, None if fortran or not shape else stream.tell()
