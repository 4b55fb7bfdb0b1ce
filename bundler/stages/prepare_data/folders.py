"""Files of one kind in a user's folder, in natural order; other files are reported, not silently skipped."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bundler.model.errors import UsageError
from bundler.model.stage import Note
from bundler.onnxkit.sample_files import natural_key
from bundler.support.text import visible

SUFFIXES: Final = {
    "images": frozenset(
        {".jpg", ".jpeg", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm"}
    ),
    "audio": frozenset({".wav", ".wave", ".flac", ".ogg", ".mp3"}),
    "text": frozenset({".txt", ".jsonl"}),
}
_SYSTEM: Final = frozenset({"thumbs.db", "desktop.ini", "__macosx"})
"""Files that operating systems create in folders; hidden files (`.DS_Store`) are skipped as well."""
_MAX_LISTED = 5
_NOUNS: Final = {"images": "images", "audio": "audio files", "text": "text files"}
_HINTS: Final = {
    "images": "supported are JPEG, PNG, WebP, BMP, GIF, TIFF and PNM",
    "audio": "supported are WAV, FLAC, Ogg and MP3; `ffmpeg -i sound.m4a sound.wav` converts other formats",
    "text": "supported are .txt with one text per line, and .jsonl with one object per line",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The files of a kind, each with its path relative to the folder."""

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    notes: tuple[Note, ...]


def find_files(root: Path, kind: str) -> Found:
    """All files of `kind` in the folder `root` and below (or `root` itself). Raises `UsageError` for none."""
    walked = [(root.name, root)] if root.is_file() else list(_walk(root))
    walked.sort(key=lambda item: (natural_key(item[0]), item[0]))
    paths = [(path, name) for name, path in walked if path.suffix.lower() in SUFFIXES[kind]]
    others = [name for name, path in walked if path.suffix.lower() not in SUFFIXES[kind] and not _is_ours(path, root)]
    if not paths:
        what = f"there are no {_NOUNS[kind]} in {visible(root.name)}"
        raise UsageError(what, details=_count_suffixes(others), hint=_HINTS[kind])
    return Found(
        paths=tuple(path for path, _ in paths),
        names=tuple(visible(name) for _, name in paths),
        notes=_left_out(others, kind),
    )


def _walk(root: Path) -> Iterator[tuple[str, Path]]:
    """Files by name below `root`; links to folders are not followed, so that the walk ends."""
    for folder, folders, files in os.walk(root, onerror=_raise_unreadable):
        folders[:] = sorted(name for name in folders if _is_shown(name))
        for name in files:
            if _is_shown(name):
                path = Path(folder, name)
                _check_kind(path, name)
                yield path.relative_to(root).as_posix(), path


def _check_kind(path: Path, name: str) -> None:
    """Raise `UsageError` for a pipe, a socket or a device, which may never end. Broken links are reported later."""
    if path.exists() and not path.is_file():
        raise UsageError(f"{visible(name)} is not a regular file", hint="remove it from the data folder")


def _raise_unreadable(error: OSError) -> None:
    raise UsageError(
        f"a data folder cannot be read: {visible(Path(str(error.filename)).name)}",
        details=(error.strerror or str(error),),
        hint="check its permissions",
    ) from error


def _is_shown(name: str) -> bool:
    return not name.startswith(".") and name.lower() not in _SYSTEM


def _is_ours(path: Path, root: Path) -> bool:
    return path.parent == root and path.suffix.lower() in (".toml", ".json")


def _count_suffixes(names: list[str]) -> tuple[str, ...]:
    if not names:
        return ("it is empty",)
    counts = Counter(Path(name).suffix.lower() or "no suffix" for name in names)
    return (
        "it holds " + ", ".join(f"{count} of {visible(suffix)}" for suffix, count in counts.most_common(_MAX_LISTED)),
    )


def _left_out(names: list[str], kind: str) -> tuple[Note, ...]:
    if not names:
        return ()
    text = f"skipped, because they are not {_NOUNS[kind]}: {list_some(list(map(visible, names)))}"
    return (Note(text=text, level="warning", names_samples=True),)


def list_some(names: Sequence[str]) -> str:
    """The first names, and the number of further ones."""
    rest = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {rest} more" if rest > 0 else "")
