"""The wheels of the bundles in a folder are the same files: each takes its space once.

A bundle is linked to its neighbours, never to the cache; where the file system copies on write, it shares blocks with
the cache instead and has files of its own. A shared file is read-only, its content is checked before each new link, and
where no link can be made there is a copy: names, bytes and modes of a bundle are the same in each case.
"""

from __future__ import annotations

import glob
import os
import shlex
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from bundler.emitters.python.wheels import Wheel
from bundler.emitters.writing import copy_file
from bundler.model.digests import digest_file
from bundler.support.files import clone_content

SHARED_MODE: Final = 0o444
"""Mode of a bundle's wheels, shared or not: who writes into one writes into all that share it."""


def place_wheel(wheel: Wheel, folder: Path, warn: Callable[[str], None]) -> None:
    """Put a wheel of the cache into `folder`, in a bundle whose neighbours may have the same one. `warn` gets a line
    for a neighbour's wheel that has its name and other content. Raises `StageError`.
    """
    target = folder / wheel.path.name
    with suppress(OSError):  # what the disk refuses, it refuses the copy, which says so
        folder.mkdir(parents=True, exist_ok=True)
        if clone_content(wheel.path, target):
            target.chmod(SHARED_MODE)
            return
        if any(_link(found, target) for found in _find_shared(wheel, target, warn)):
            return
    copy_file(wheel.path, target, SHARED_MODE)


def _find_shared(wheel: Wheel, target: Path, warn: Callable[[str], None]) -> Iterator[_Found]:
    """The same wheel in the bundles beside ours, each file once; its content was just read."""
    bundle = target.parents[1]
    known: dict[tuple[int, ...], list[Path]] = {}
    for path in sorted(bundle.parent.glob(f"*/{target.parent.name}/{glob.escape(target.name)}")):
        status = path.lstat()
        if _is_protected(status):
            known.setdefault(_identify(status), []).append(path)
    for identity, paths in known.items():
        if paths[0].lstat().st_size == wheel.size and digest_file(paths[0]) == wheel.sha256:
            yield _Found(paths[0], identity)
        else:
            warn(_describe_altered(paths))


def _describe_altered(paths: Sequence[Path]) -> str:
    """All bundles that have the file: it is wrong in each of them."""
    commands = ", ".join(f"`bundler verify {shlex.quote(str(path.parents[1]))} --digests-only`" for path in paths)
    return (
        f"{' and '.join(map(str, paths))} {'is' if len(paths) == 1 else 'are'} not the wheel of this name that was "
        f"fetched, so it is not shared: {commands} {'says' if len(paths) == 1 else 'say'} whether it was altered since"
    )


def _is_protected(status: os.stat_result) -> bool:
    """Whether it is ours and no process of another user can write into it, not even through a file that it opened when
    it still could: then its time of modification would move. What is still being written has another mode.
    """
    own = sys.platform == "win32" or status.st_uid == os.geteuid()
    return own and stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == SHARED_MODE


def _link(found: _Found, target: Path) -> bool:
    """Whether the file system has that link now, to the file that was read."""
    try:
        os.link(found.path, target, follow_symlinks=False)
    except OSError:  # it has no links, no more of this file, or lies in another file system
        return False
    if _identify(target.lstat()) == found.identity:
        return True
    target.unlink()
    return False


class _Found(NamedTuple):
    path: Path
    identity: tuple[int, ...]


def _identify(status: os.stat_result) -> tuple[int, ...]:
    """Without the time of change, which each link moves."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode, status.st_uid
