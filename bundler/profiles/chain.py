"""Reads a profile file and all that it extends, and merges them, remembering which file each value came from."""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bundler.model.errors import ProfileError
from bundler.model.paths import real_path
from bundler.profiles.locations import describe_path, find_catalogue
from bundler.support.reads import announce_look

Key = tuple[str | int, ...]
"""A place in a profile: table keys and positions in arrays."""
_NOT_MERGED = ("extends", "id")
_OWN = ("serves", "refuses", "cautions")
LARGEST = 1_000_000
"""Bytes of a profile file; ours have about a thousand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layered:
    """Merged data. `origins` says for each leaf (an array is one) which file it came from, as messages show it;
    `files` are the chain, the user's own file first; `spellings` are values of overrides as they were typed.
    """

    data: dict[str, Any]
    origins: dict[Key, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    spellings: Mapping[Key, str] = field(default_factory=dict)

    def origin(self, key: Key) -> str:
        """The file that the value at `key` came from; of a table whose values are all of one, that; the user's own file
        for what no file has.
        """
        for length in range(len(key), 0, -1):
            if key[:length] in self.origins:
                return self.origins[key[:length]]
        below = {origin for known, origin in self.origins.items() if known[: len(key)] == key}
        if len(below) == 1:
            return below.pop()
        return self.files[0] if self.files else ""


def load_chain(path: Path) -> Layered:
    """`path` merged over all that it extends: tables merge key by key, every other value replaces.

    The id is never inherited: it is the file's own, or else the file's name. Nor is what a file says of other devices
    than its own (`serves`, `refuses`, `cautions`). Raises `ProfileError`.
    """
    files = list(_walk(path))
    data: dict[str, Any] = {}
    origins: dict[Key, str] = {}
    for file in reversed(files):
        left_out = _NOT_MERGED if file == files[0] else (*_NOT_MERGED, *_OWN)
        own = {key: value for key, value in read_profile(file).items() if key not in left_out}
        merge(data, own, origins, describe_path(file))
    head = read_profile(files[0])
    shown = tuple(describe_path(file) for file in files)
    origins[("id",)] = shown[0]
    return Layered(data={"id": head.get("id", path.stem), **data}, origins=origins, files=shown)


def merge(data: dict[str, Any], over: Mapping[str, Any], origins: dict[Key, str], origin: str, at: Key = ()) -> None:
    """Lay `over` onto `data` in place and note `origin` for each value that it brings."""
    for name, value in over.items():
        key = (*at, name)
        if isinstance(value, Mapping) and value:
            inner = data.get(name)
            data[name] = dict(inner) if isinstance(inner, Mapping) else {}
            merge(data[name], value, origins, origin, key)
        elif not (isinstance(value, Mapping) and isinstance(data.get(name), Mapping)):
            data[name] = value
            for stale in [known for known in origins if known[: len(key)] == key]:
                del origins[stale]
            origins[key] = origin


def read_profile(path: Path) -> dict[str, Any]:
    """The file's TOML, not to be changed. Raises `ProfileError` where it cannot be read."""
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        return _parse(content)
    except OSError as error:
        raise ProfileError(
            f"cannot read the profile {describe_path(path)}: {error.strerror or error}",
            hint="use the name of a target (`bundler targets list`) or the path of a TOML file",
        ) from error
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ProfileError(
            f"{describe_path(path)} is not valid TOML",
            details=(reason,),
            hint="`bundler targets new` writes a file to start from",
        ) from error


@functools.lru_cache(maxsize=512)  # the bases are read again and again; their content is never changed
def _parse(content: bytes) -> dict[str, Any]:
    if len(content) > LARGEST:
        raise ValueError(f"it has more than {LARGEST:,} bytes")
    return tomllib.loads(content.decode("utf-8"))


def _walk(path: Path) -> Iterator[Path]:
    """`path`, then the file that it extends, and so on. Raises `ProfileError` for a circle."""
    seen: list[Path] = []
    current: Path | None = path
    while current is not None:
        announce_look(current)  # a link on the way to it may lead elsewhere tomorrow
        real = real_path(current)
        if real in seen:
            circle = " → ".join(describe_path(file) for file in (*seen[seen.index(real) :], real))
            raise ProfileError(
                f"{describe_path(path)} extends itself", details=(circle,), hint="remove one `extends` of the circle"
            )
        seen.append(real)
        yield real
        current = _parent(real)


def _parent(path: Path) -> Path | None:
    extends = read_profile(path).get("extends")
    if extends is None:
        return None
    if not isinstance(extends, str) or "\0" in extends:
        raise ProfileError(
            f"{describe_path(path)}: extends: got {shorten(extends)}, expected a name or a relative path",
            hint="use the name of a base or target, or the relative path of a .toml file",
        )
    if extends.endswith(".toml"):
        return path.parent / extends
    return _named_parent(path, extends)


def _named_parent(path: Path, name: str) -> Path:
    catalogue = find_catalogue()
    # A folder's own bases come first, so that a package's targets do not depend on what else is installed.
    beside = [folder / f"{name}.toml" for folder in (path.parent / "_base", path.parent) if _is_plain(name)]
    for place in beside:
        announce_look(place)
    for candidate in (*beside, catalogue.bases.get(name), catalogue.targets.get(name)):
        if candidate is not None and real_path(candidate) != path and candidate.is_file():
            return candidate
    names = [*catalogue.bases, *catalogue.targets]
    close = difflib.get_close_matches(name, names, n=1)
    meant = f'; did you mean "{close[0]}"?' if close else ""
    raise ProfileError(
        f"{describe_path(path)}: extends: unknown base or target {shorten(name)}{meant}",
        details=(f"known: {', '.join(names)}",),
        hint="to extend your file, use its relative path, ending in .toml",
    )


def _is_plain(name: str) -> bool:
    return all(letter.isalnum() or letter in "-_" for letter in name)


def shorten(value: object, width: int = 60) -> str:
    """`value` as Python shows it, cut to `width`: safe to print whatever the file holds."""
    shown = f'"{value}"' if isinstance(value, str) and value.isprintable() and '"' not in value else ascii(_thaw(value))
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def _thaw(value: object) -> object:
    """Tuples as the arrays that they were in the file."""
    if isinstance(value, Mapping):
        return {key: _thaw(item) for key, item in value.items()}
    return [_thaw(item) for item in value] if isinstance(value, list | tuple) else value
