"""Finds the modules that a module imports statically, directly and indirectly."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from bundler.model.errors import DefectError
from bundler.support.data import data_root

ENTRY = "index.js"
"""The module that a page imports."""

SEVERAL = "loader/several.js"
"""The module that only bundles of several components have."""

STREAM = "loader/stream.js"
"""The module that only bundles with state have."""

_NAMED = ("loader/browser.js", "loader/errors.js", "loader/index.js")
"""What the entry imports for its own use; that of several components, its module in place of the last."""

_IMPORT = re.compile(
    r"""^\s*(?:import\s*|(?:import|export)\s[^"'=();]*?\bfrom\s*)["'](\.{1,2}/[^"']+)["']""", re.MULTILINE
)


def find_modules(folder: Path, entry: str) -> tuple[str, ...]:
    """The modules of the bundle that `entry` imports statically, itself first, as paths in `folder`."""
    found: dict[str, None] = {}
    waiting = [entry]
    while waiting:
        path = waiting.pop(0)
        if path not in found:
            found[path] = None
            waiting += _read_imports(folder, path)
    return tuple(found)


@functools.cache
def list_loader_modules(*, several: bool, streams: bool) -> tuple[str, ...]:
    """The loader's modules that every visitor needs, but for those that the entry itself names; paths in the bundle."""
    source = data_root("templates") / "web" / "package"
    named = (*_NAMED[:-1], SEVERAL) if several else _NAMED
    entries = (*named, STREAM) if streams else named
    found = {path for entry in entries for path in find_modules(source, entry)}
    return tuple(sorted(found - set(named)))


def _read_imports(folder: Path, path: str) -> Iterator[str]:
    try:
        text = (folder / path).read_text("utf-8")
    except FileNotFoundError:
        raise DefectError(f"the template lacks {path}, which another module imports") from None
    for target in _IMPORT.findall(text):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
