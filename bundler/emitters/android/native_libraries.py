"""Native libraries in an archive for Android: of the phone's instruction set, and loadable where a page has 16 KB.

Only headers are read (System V ABI, "Object Files"), and no number in them is believed before it is compared with the
size of the file: an archive can be anybody's.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from bundler.model.errors import VerificationError
from bundler.support.text import describe_fault

PAGE: Final = 16384
"""Bytes that segments of a 64-bit library must be aligned to (Android's documentation, "Support 16 KB page sizes")."""

_MACHINES: Final = {"arm64-v8a": (64, 183), "x86_64": (64, 62), "armeabi-v7a": (32, 40)}
"""Bits and `e_machine` of each ABI: EM_AARCH64, EM_X86_64, EM_ARM."""

_FOLDERS: Final = ("jni", "lib")
"""Of an AAR and of an APK, above the ABI."""

_MAGIC: Final = b"\x7fELF"
_LITTLE: Final = 1
_LOAD: Final = 1
_IDENTITY: Final = 16
_HEADERS: Final = {1: (32, struct.Struct("<HHIIIIIHHH")), 2: (64, struct.Struct("<HHIQQQIHHH"))}
"""By class: bits, and the fields from `e_type` to `e_phnum`."""

_SEGMENTS: Final = {32: struct.Struct("<IIIIIIII"), 64: struct.Struct("<IIQQQQQQ")}
"""One program header, which begins with `p_type` and ends with `p_align`."""

_BROKEN: Final = (OSError, ValueError, KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeLibrary:
    """What the headers of one library say. `alignment` is the least of its segments that are loaded, in bytes; `size`
    is that of the file, without compression.
    """

    name: str
    size: int
    bits: int
    machine: int
    alignment: int


def check_libraries(archive: Path, abi: str) -> tuple[NativeLibrary, ...]:
    """The libraries of an AAR or an APK, by name. Raises `VerificationError` with all that is wrong with them."""
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = [entry for entry in opened.infolist() if _is_library(entry.filename)]
            found = [_examine(opened, entry, abi) for entry in entries]
    except _BROKEN as error:
        raise _refuse(archive, [describe_fault(error)]) from error
    problems = [problem for problem in found if isinstance(problem, str)]
    if problems:
        raise _refuse(archive, problems)
    libraries = (library for library in found if isinstance(library, NativeLibrary))
    return tuple(sorted(libraries, key=lambda library: library.name))


def _refuse(archive: Path, problems: list[str]) -> VerificationError:
    return VerificationError(
        f"{archive.name} has native libraries that do not suit the target",
        details=tuple(problems),
        hint="use another version of the package that contains them",
    )


def _is_library(name: str) -> bool:
    return name.endswith(".so") and name.partition("/")[0] in _FOLDERS


def _examine(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, abi: str) -> NativeLibrary | str:
    """The library, or what is wrong with it."""
    if entry.filename.split("/")[1:-1] != [abi]:
        return f"{entry.filename}: it is not for {abi}"
    try:
        with archive.open(entry) as file:
            library = read_library(file, entry.filename, entry.file_size)
    except _BROKEN as error:
        return f"{entry.filename}: {error}"
    if (library.bits, library.machine) != _MACHINES[abi]:
        return f"{entry.filename}: its code is for another processor (machine {library.machine}, {library.bits} bits)"
    if library.bits == 64 and library.alignment < PAGE:  # noqa: PLR2004 (as the table has it)
        return f"{entry.filename}: a segment is aligned to {library.alignment} bytes (min {PAGE}, the size of a page)"
    return library


def read_library(file: IO[bytes], name: str, size: int) -> NativeLibrary:
    """The headers of the ELF file `name` of `size` bytes. Raises `ValueError` where they are none, or lead out."""
    identity = file.read(_IDENTITY)
    if len(identity) != _IDENTITY or identity[:4] != _MAGIC or identity[5] != _LITTLE or identity[4] not in _HEADERS:
        raise ValueError("it is not a native library")
    bits, header = _HEADERS[identity[4]]
    fields = header.unpack(_read(file, header.size))
    machine, start, length, count = fields[1], fields[4], fields[8], fields[9]
    segment = _SEGMENTS[bits]
    if length != segment.size or start + length * count > size or start < _IDENTITY + header.size:
        raise ValueError("its program headers are missing")
    file.seek(start)
    rows = [segment.unpack(_read(file, segment.size)) for _ in range(count)]
    loaded = [row[-1] for row in rows if row[0] == _LOAD]
    if not loaded:
        raise ValueError("it has no segment to load")
    if any(value & (value - 1) for value in loaded):
        raise ValueError("the alignment of a segment is not a power of two")
    return NativeLibrary(name=name, size=size, bits=bits, machine=machine, alignment=min(loaded))


def _read(file: IO[bytes], size: int) -> bytes:
    found = file.read(size)
    if len(found) != size:
        raise ValueError("it ends too early")
    return found
