"""What a server offers: files by their URL path, and handlers of what a page posts.

Only what was listed when the site was made can be asked for, by its exact path. No path is ever put together from a
request, so none can lead out of the folder, however it is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bundler.model.paths import real_path

INDEX = "index.html"

Content = Path | bytes
"""A file, opened when it is asked for, or what was made in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """`files` by URL path (decoded, beginning with a slash); `redirects` from one path to another. `posts` get the
    body of a POST; `held` are paths whose response never ends: they are called when the connection does.
    """

    files: Mapping[str, Content]
    headers: Mapping[str, str]
    redirects: Mapping[str, str] = field(default_factory=dict)
    posts: Mapping[str, Callable[[bytes], None]] = field(default_factory=dict)
    held: Mapping[str, Callable[[], None]] = field(default_factory=dict)

    def locate(self, path: str) -> tuple[str, Content] | None:
        """The file that `path` means, with its own path: a folder means its index page."""
        name = f"{path}{INDEX}" if path.endswith("/") else path
        content = self.files.get(name)
        return None if content is None else (name, content)


def list_folder(folder: Path, prefix: str = "/") -> dict[str, Content]:
    """Every regular file below `folder` by its URL path below `prefix`; no links, nothing that is hidden."""
    root = real_path(folder)
    return {prefix + path.relative_to(root).as_posix(): path for path in _walk(root)}


def decode_path(target: str) -> str | None:
    """The path of a request's target, decoded once; None when it is no text."""
    try:
        return unquote(urlsplit(target).path, errors="strict")
    except ValueError:
        return None


def _walk(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                yield Path(entry.path)
