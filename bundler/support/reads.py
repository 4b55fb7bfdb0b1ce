"""What this process reads, and whether it is still the same: for answers that are given again while nothing changed.

Python announces each file that is opened and each folder that is listed (PEP 578). Code that only looks at a path, and
decides by what it finds, announces that with `announce_look`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

State = list[Any] | None
"""Mode, owner, group, size, modification and change time (ns), inode and device, then, for a link, the same of what it
leads to; None where nothing is."""

_LOOK = "bundler.look"
_LEFT = frozenset(
    {"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec", "os.spawn", "os.system"}
    | {"socket.connect", "socket.getaddrinfo"}
)
"""A process or a connection: what comes of it depends on more than files."""
_CHANGES = frozenset(
    {"os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink"}
)
"""A run that changes something is none to repeat."""
_WRITES = os.O_WRONLY | os.O_RDWR
_PATHS = (str, bytes, os.PathLike)
_PASSING = frozenset({"/dev/null", "/dev/urandom", "/dev/tty"})
_KERNEL = ("/proc/", "/sys/")
"""What is read there changes without a change of times, or leads elsewhere (`/proc/self/cwd`)."""
_BYTE_CODE = re.compile(r"(?:^|/)__pycache__/[^/]+\.pyc(?:\.\d+)?$")


def announce_look(path: str | os.PathLike[str]) -> None:
    """Say that a decision depends on what is, or is not, at `path`."""
    sys.audit(_LOOK, path)


def state_of(path: str) -> State:
    """What changes whenever the file at `path` does."""
    try:
        status = os.lstat(path)
        link = stat.S_ISLNK(status.st_mode)
        return [*_list_state(status), *(_list_state(os.stat(path)) if link else ())]  # noqa: PTH116 - thousands of them
    except (OSError, ValueError):
        return None


def content_of(path: str) -> State:
    """The same without the times, and the SHA-256 of the content: for small files whose times move with each use."""
    state = state_of(path)
    try:
        with open(path, "rb") as stream:  # noqa: PTH123 - as above
            return state and [*_without_times(state), hashlib.file_digest(stream, "sha256").hexdigest()]
    except OSError:
        return None


def _list_state(status: os.stat_result) -> list[int]:
    owner = [status.st_mode, status.st_uid, status.st_gid]
    return [*owner, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]


def _without_times(state: list[Any]) -> list[Any]:
    return state[:4] + state[6:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The states of all that a process read; of `contents`, by content."""

    files: dict[str, State]
    contents: dict[str, State]

    def is_same(self) -> bool:
        """Whether all is as it was."""
        return all(state_of(name) == state for name, state in self.files.items()) and all(
            content_of(name) == state for name, state in self.contents.items()
        )


class Reads:
    """Notes what the process reads from now on. `began` is the time of that, in ns."""

    def __init__(self) -> None:
        self.began = time.time_ns()
        self._seen: dict[str, State] = {}
        self._walked: dict[str, None] = {}
        self._looked: dict[str, None] = {}
        self._written: dict[str, None] = {}
        self._left = self._ended = False
        sys.addaudithook(self._note)

    def find(self, contents: str, passing: tuple[str, ...], settle: int) -> Found | None:
        """The states of all that was read, of what was walked, and of all loaded modules; those below `contents` by
        content, and none of those below `passing`, which every run writes.

        None where the answer cannot be given again: a process was started, a connection opened, something written
        elsewhere, a copy below `passing` looked at, or a file changed since we began, or so few ns (`settle`) before
        that its next change may bear the same time.
        """
        self._ended = True
        looks_at_copies = any(_is_passing(name, passing) for name in self._looked)
        if self._left or looks_at_copies or not all(_may_write(name, passing) for name in self._written):
            return None
        seen = {name: state for name, state in self._seen.items() if not _is_passing(name, passing)}
        by_content = {name for name in seen if name.startswith(contents)}
        files = {name: state for name, state in seen.items() if name not in by_content}
        for name in (*self._list_walked(passing), *_list_modules()):
            files.setdefault(name, state_of(name))
        found = Found(files=files, contents={name: content_of(name) for name in by_content})
        latest = max((max(state[4:6] + state[12:14]) for state in files.values() if state), default=0)
        same = all(_is_content(seen[name], state) for name, state in found.contents.items())
        settled = latest + settle < self.began
        return found if same and settled and found.is_same() else None

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook: it must not raise, and cannot be removed."""
        if self._ended:
            return
        if event in _LEFT:
            self._left = True
        elif event in _CHANGES or (event == "open" and (arguments[2] or 0) & _WRITES):
            paths = arguments[:1] if event == "open" else arguments[:2]
            self._written |= {os.fsdecode(path): None for path in paths if isinstance(path, _PATHS)}
        elif event in {_LOOK, "open", "os.listdir", "os.scandir"}:
            self._see("." if arguments[0] is None else arguments[0], event)

    def _see(self, path: Any, event: str) -> None:
        """Keep its state before it is read."""
        if not isinstance(path, _PATHS):
            return
        name = os.fsdecode(path)
        if name.startswith(_KERNEL):
            self._left = True
        if name not in self._seen:
            self._seen[name] = state_of(name)
        if event == "os.scandir":
            self._walked[name] = None
        elif event == _LOOK:
            self._looked[name] = None

    def _list_walked(self, passing: tuple[str, ...]) -> Iterator[str]:
        for folder in self._walked:
            if not _is_passing(folder, passing):
                with contextlib.suppress(OSError), os.scandir(folder) as entries:
                    yield from (entry.path for entry in entries if not _is_passing(entry.path, passing))


def _is_passing(name: str, passing: tuple[str, ...]) -> bool:
    """Byte code is written by whoever compiles it first, and is that of a module whose file is noted."""
    return name in _PASSING or f"{name}{os.sep}".startswith(passing) or _BYTE_CODE.search(name) is not None


def _may_write(name: str, passing: tuple[str, ...]) -> bool:
    return _is_passing(name, passing) or name.endswith(f"{os.sep}__pycache__")


def _list_modules() -> Iterator[str]:
    """The files of all loaded modules, and the folders that they are found in: a new package, or another version of
    one, changes its folder.
    """
    yield from (path or os.curdir for path in sys.path)
    yield sys.executable
    for module in tuple(sys.modules.values()):
        file = vars(module).get("__file__")
        if isinstance(file, str):
            yield file


def _is_content(before: State, content: State) -> bool:
    return before == content or (before is not None and content is not None and _without_times(before) == content[:-1])
