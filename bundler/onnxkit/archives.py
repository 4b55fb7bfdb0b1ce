"""NumPy's .npz archives, an array at once or one element of the first axis at a time."""

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

_MOST_EXPANSION = 1040
"""How many bytes one compressed byte can become: 1032 is the most of deflate."""
_MOST_ARRAYS = 1000
"""More inputs than a model has. Each is looked up in the archive's directory."""
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class ArchiveMember:
    """One array of an archive. Elements of its first axis are read one after the other, whatever its size."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self._opened = contextlib.ExitStack()
        self._stream: IO[bytes] | None = None
        self._whole: np.ndarray | None = None
        with _open(path, name) as stream:
            self.shape, self._dtype, self._start = _read_header(stream)
        self.size = math.prod(self.shape) * self._dtype.itemsize
        if self.size > _most_bytes(path, name):
            raise ValueError("it claims more than it can hold")

    def item(self, index: int) -> np.ndarray:
        """Element `index` of the first axis. Cheap when indices only grow. Raises `UsageError`."""
        if self._start is None:
            if self._whole is None:
                self._whole = read_archive(self._path)[self._name]
            return np.asarray(self._whole[index])
        start = self._start
        return guarded(self._path, lambda: self._read(index, start))

    def close(self) -> None:
        """Close the file, which stays open between items; the next item opens it again."""
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
            raise ValueError("it is cut off")
        return np.frombuffer(data, self._dtype).reshape(self.shape[1:])


def open_members(path: Path) -> dict[str, ArchiveMember]:
    """The arrays of an archive by name, none of them read. Raises `UsageError`."""
    return guarded(path, lambda: {name: ArchiveMember(path, name) for name in _names(path)})


def read_archive(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an archive by name. Raises `UsageError`."""
    return guarded(path, lambda: _load(path))


def guarded(path: Path, read: Callable[[], T]) -> T:
    """What `read` answers. Raises `UsageError` for what is no archive, or is damaged."""
    try:
        # NumPy would take anything else for a pickle, and advise to load it all the same.
        if not path.is_file() or not zipfile.is_zipfile(path):  # reading a pipe may never end
            raise zipfile.BadZipFile("it is no .npz archive, or only part of one")  # noqa: TRY301 - told as those below
        return read()
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error) as error:
        raise UsageError(
            f"the samples in {visible(path.name)} cannot be read",
            details=(str(error).partition("\n")[0],),
            hint="write it with numpy.savez; text must be saved as numpy.str_, not as Python objects",
        ) from error


def _load(path: Path) -> dict[str, np.ndarray]:
    # A header claims what it likes, and NumPy takes memory for it.
    _check_bytes(sum(ArchiveMember(path, name).size for name in _names(path)))
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _check_bytes(size: int) -> None:
    """Some kilobytes of an archive can become gigabytes. Raises `ValueError`."""
    if size > MAX_SAMPLE_BYTES:
        raise ValueError(
            f"one sample, or an array that does not lie sample by sample, takes {size:,} bytes, more than "
            f"{MAX_SAMPLE_BYTES:,}"
        )


def _names(path: Path) -> list[str]:
    with np.load(path, allow_pickle=False) as archive:
        names = list(archive.files)
    if len(names) > _MOST_ARRAYS:
        raise ValueError(f"it holds {len(names):,} arrays, more than {_MOST_ARRAYS:,}")
    return names


@contextlib.contextmanager
def _open(path: Path, name: str) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(path) as archive, archive.open(_find(archive, name)) as stream:
        yield stream


def _find(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    return archive.getinfo(name if name in archive.namelist() else f"{name}.npy")


def _most_bytes(path: Path, name: str) -> int:
    """No more than the archive's directory says, which must be what so many compressed bytes can become."""
    with zipfile.ZipFile(path) as archive:
        info = _find(archive, name)
    return min(info.file_size, min(info.compress_size, path.stat().st_size) * _MOST_EXPANSION)


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], int | None]:
    """Shape, type, and where the elements begin; None where they do not stand one sample after the other.

    Raises `ValueError` for what NumPy would read with a pickle only.
    """
    version = np.lib.format.read_magic(stream)
    header = _HEADERS.get(version)
    if header is None:
        raise ValueError("it holds records with names, or is of a newer format")
    shape, fortran, dtype = header(stream)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    return shape, dtype, None if fortran or not shape else stream.tell()
