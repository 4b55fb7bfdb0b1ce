"""Answers a command again, word for word, where nothing changed since it was answered: without loading what it takes.

An answer is kept in the cache, under a digest of all that a process is given (arguments, environment, folder, user,
interpreter, machine), with the states of all that it read. It is kept only of a call that found everything up to date,
and any doubt means that the command is run.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TextIO

from bundler import __version__
from bundler.model.digests import digest_json
from bundler.model.paths import real_path, user_path
from bundler.support.files import replace_whole
from bundler.support.reads import Found, Reads, State, state_of
from bundler.support.remembered import mark_used, recall, seal

COMMANDS: Final = (["build"], ["plan"], ["targets", "list"])
_OPTIONS: Final = ("--on", "--measure", "--sandbox", "--cache-readonly", "--help", "-h")
"""With these a command depends on more than files, or has more to do."""
_VARIABLES: Final = ("BUNDLER_SANDBOX", "BUNDLER_CACHE_READONLY")
"""Those options, given in the environment."""
_LIGHT: Final = frozenset({"cli", "model", "support"})
"""The rooms that are loaded here; they read nothing."""
_SHELL_VARIABLES: Final = frozenset({"_", "OLDPWD", "SHLVL"})
"""What a shell keeps for itself in the environment: it differs from call to call."""
_KEPT: Final = 50
"""Answers that are kept; the oldest go when another is added."""
_SETTLE_NS: Final = 100_000_000
"""As `bundler.execution.identity.SETTLE_NS`, without loading that room."""
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_DONE: Final = re.compile(r"(?<=: done after )[^(]*(?= \(\d+ of \d+)")
"""How long a build among several took."""
_SECONDS: Final = "\0"
"""In kept text, which has no control characters: where the time that the command took is printed."""


Printed = list[tuple[bool, str]]
"""Each text that a command printed, and whether it went to standard error."""


@dataclass(slots=True, kw_only=True)
class _Call:
    """The call of this process."""

    root: Path
    about: str
    reads: Reads
    printed: Printed = field(default_factory=list)


_calls: list[_Call] = []
"""This process's call, if its answer may be kept."""


def find_answer() -> Printed | None:
    """The kept answer; None where the command must be run, which is then noted."""
    began = time.perf_counter()
    _calls.clear()  # of a program that calls us twice, the second call is not noted
    if not _is_fresh():
        return None
    try:
        root = _find_cache(sys.argv[1:])
        if root is None:
            return None
        about = digest_json(_describe_process())
        answer = _recall(root, about)
    except (OSError, RuntimeError):  # a folder that is gone, a user without a home, a link to itself
        return None
    if answer is None:
        _calls.append(_Call(root=root, about=about, reads=Reads()))
        return None
    for name in answer["contents"]:
        mark_used(Path(name))
    seconds = repr(time.perf_counter() - began)
    return [(err, text.replace(_SECONDS, seconds)) for err, text in answer["printed"]]


def note_printed(text: str, *, err: bool) -> None:
    """Note what the command prints, to print it again."""
    for call in _calls:
        call.printed.append((err, text))


def forget_answer() -> None:
    """Keep no answer of this call: what it prints differs from call to call."""
    _calls.clear()


def keep_answer(outputs: Sequence[Path] = (), seconds: Sequence[float] = ()) -> None:
    """Keep what was printed as the answer to the same call; for commands that found everything up to date. `outputs`
    are folders that they would have written to, and `seconds` times in their JSON: another call takes its own.
    """
    for call in _calls:
        with contextlib.suppress(OSError, RuntimeError):  # a full or read-only disk, a folder that we may not look into
            _keep(call, outputs, seconds)
    _calls.clear()


def _keep(call: _Call, outputs: Sequence[Path], seconds: Sequence[float]) -> None:
    root = call.root
    places = (root / "tmp", root / "journal", *filter(None, [sys.pycache_prefix]))
    passing = tuple(f"{place}{os.sep}" for place in places)
    found = call.reads.find(f"{root / 'records'}{os.sep}", passing, _SETTLE_NS)
    printed = [(err, _DONE.sub("0 s", _blank_seconds(text, seconds))) for err, text in call.printed]
    whole = sum(text.count(_SECONDS) for _, text in printed) == len(seconds)
    if found is None or not whole or not (root / "CACHEDIR.TAG").is_file() or _has_plugins():
        return
    answer = {
        "files": found.files,
        "contents": found.contents,
        "outputs": {str(path): _rights_of(path) for path in (root, root / "tmp", *outputs) if path.exists()},
        "printed": printed,
    }
    _write(root, _place(root, call.about), seal(answer, call.about))


def _is_fresh() -> bool:
    """Whether this process has read nothing yet: what it read before is not known."""
    loaded = [name.split(".") for name in sys.modules if name.startswith("bundler.")]
    return all(name[1] in _LIGHT for name in loaded) and "bundler.cli.application" not in sys.modules


def _find_cache(arguments: Sequence[str]) -> Path | None:
    """The folder of the cache, by these arguments; None where no answer is kept: a shared cache, an option of those
    above, a system whose files have no change time.
    """
    flags = [argument.partition("=")[0] for argument in arguments]
    kept = any(list(arguments[: len(command)]) == command for command in COMMANDS)
    named = [number for number, flag in enumerate(flags) if flag == "--cache"]
    if not kept or sys.platform == "win32" or {*flags} & {*_OPTIONS} or {*os.environ} & {*_VARIABLES} or len(named) > 1:
        return None
    place = os.environ.get("BUNDLER_CACHE", "")
    for number in named:
        inline = arguments[number].partition("=")[2]
        place = inline or "".join(arguments[number + 1 : number + 2])
    if "://" in place:
        return None
    if not place:
        import platformdirs  # noqa: PLC0415 - needed only for the default

        place = platformdirs.user_cache_dir("bundler")
    return user_path(place).absolute()


def _place(root: Path, about: str) -> Path:
    return root / "answers" / f"{about}.json"


def _describe_process() -> Mapping[str, Any]:
    """All that a process is given, except files."""
    variables = {name: value for name, value in os.environ.items() if name not in _SHELL_VARIABLES}
    return {
        "version": __version__,
        "arguments": [sys.argv, sys.orig_argv],
        "environment": variables,
        "folder": os.getcwd(),  # noqa: PTH109 - text is what is needed
        "python": [sys.executable, sys.version, sys.path, list(sys.flags)],
        "machine": list(os.uname()),
        "user": [os.getuid(), os.geteuid(), os.getgid(), os.getegid(), *os.getgroups()],
        "outputs": [_describe_output(stream) for stream in (sys.stdout, sys.stderr)],
    }


def _describe_output(stream: TextIO) -> list[Any]:
    """Its encoding and, of a terminal, its size."""
    size = os.get_terminal_size(stream.fileno()) if stream.isatty() else None
    return [stream.encoding, stream.errors, size]


def _is_private(path: Path) -> bool:
    """Whether only this user writes to it."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_WRITE and not stat.S_ISLNK(status.st_mode)


def _recall(root: Path, about: str) -> Mapping[str, Any] | None:
    """The kept answer, if it holds."""
    path = _place(root, about)
    if not all(map(_is_private, (real_path(root), path.parent, path))):
        return None
    answer = recall(path, about)
    try:
        return answer if _holds(answer) else None
    except (LookupError, TypeError, ValueError, AttributeError):  # of other code with this version
        return None


def _holds(answer: Mapping[str, Any]) -> bool:
    """Whether nothing changed since, and what would be written to takes it."""
    return (
        all(_rights_of(Path(name)) == rights for name, rights in answer["outputs"].items())
        and Found(files=answer["files"], contents=answer["contents"]).is_same()
        and all(_can_encode(err, text) for err, text in answer["printed"])
    )


def _rights_of(path: Path) -> State:
    """Who owns a folder, who may write to it, and whether we can; not when it last changed."""
    state = state_of(str(path))
    return state and [*state[:3], *state[6:8], os.access(path, os.W_OK | os.X_OK)]


def _write(root: Path, path: Path, data: bytes) -> None:
    """Write it, and remove the oldest: only where nobody else can have put a link to another folder."""
    if not _is_private(real_path(root)):
        return
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if not _is_private(path.parent):
        return
    for older in sorted(path.parent.glob("*.json"), key=lambda older: older.stat().st_mtime)[: -_KEPT + 1]:
        older.unlink(missing_ok=True)
    replace_whole(path, data, mode=0o600)


def _blank_seconds(text: str, seconds: Sequence[float]) -> str:
    """A bundle's time in the document of `bundler build --json`, at the start of its line: no text in it breaks one."""
    for value in seconds:
        text = text.replace(f'\n      "seconds": {json.dumps(value)},\n', f'\n      "seconds": {_SECONDS},\n')
    return text


def _has_plugins() -> bool:
    """Whether other packages extend bundler: what they look at is not known."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - only where an answer is kept

    found = entry_points()
    own = [point for group in found.groups if group.startswith("bundler.") for point in found.select(group=group)]
    return any(not point.value.startswith("bundler.") for point in own)


def _can_encode(err: bool, text: str) -> bool:  # noqa: FBT001 - as it is kept
    stream = sys.stderr if err else sys.stdout
    try:
        text.encode(stream.encoding, stream.errors or "strict")
    except UnicodeEncodeError:
        return False
    return True
