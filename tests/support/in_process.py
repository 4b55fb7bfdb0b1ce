"""The command line inside the test's own process, with workers that stay: for many calls of which each ends soon.

What a process of its own shows besides (how it starts, signals, a closed pipe) is for tests that start one.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from bundler import cli
from bundler.execution import executor
from bundler.execution.pool import WorkerPool
from bundler.execution.temporary import offer_scratch
from tests.support.command_line import Answer, CommandLine

Settings = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A folder that workers use for as long as they live."""

    folder: Path


class KeptWorkers(WorkerPool):
    """Workers that outlive the command that asked for them."""

    def __init__(self, logs: Path, room: Room) -> None:
        super().__init__(logs)
        self._room = room

    def warm(self, *wanted: Any) -> None:
        """Nothing, but for the first command."""
        if not self._all:
            super().warm(*wanted)

    def close(self) -> None:
        """Nothing: the next command goes on with them."""

    def end(self) -> None:
        super().close()

    def _add(self, wanted: Any) -> Any:
        with offer_scratch(lambda: self._room):  # type: ignore[arg-type, return-value]
            return super()._add(wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm(CommandLine):
    """The program without a process of its own. Workers are kept for each cache and set of variables."""

    room: Path
    kept: dict[tuple[Path, Settings], KeptWorkers] = field(default_factory=dict)

    def run(self, *arguments: str | Path, timeout: float = 240) -> Answer:
        """Run `bundler ARGUMENTS` to its end; the test's own limit bounds its time."""
        del timeout
        command = self.command(arguments)
        out, err = _text("strict"), _text("backslashreplace")
        with self._set_up(command), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = _end(cli.main)
        return Answer(command=command, code=code, out=_read(out), err=_read(err))

    def close(self) -> None:
        """End all workers."""
        while self.kept:
            self.kept.popitem()[1].end()

    @contextlib.contextmanager
    def _set_up(self, command: tuple[str, ...]) -> Iterator[None]:
        environment = self.environment()
        with contextlib.ExitStack() as stack, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stack.enter_context(contextlib.chdir(self.cwd or Path.cwd()))
            stack.enter_context(_replaced(environment))
            stack.enter_context(_patched(sys, "argv", list(command)))
            stack.enter_context(_patched(executor, "WorkerPool", lambda logs: self._find_workers(logs, environment)))
            yield

    def _find_workers(self, logs: Path, environment: Mapping[str, str]) -> KeptWorkers:
        key = (logs, frozenset(environment.items()))
        if key not in self.kept:
            self.kept[key] = KeptWorkers(logs, Room(folder=self.room))
        return self.kept[key]


def _end(main: Callable[[], NoReturn]) -> int:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        main()
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(bool(error.code))
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _text(errors: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)


def _read(stream: io.TextIOWrapper) -> str:
    stream.flush()
    data: bytes = stream.buffer.getvalue()  # type: ignore[attr-defined]
    return data.decode("utf-8")


@contextlib.contextmanager
def _replaced(environment: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    _set_environment(environment)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(environment: Mapping[str, str]) -> None:
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)


@contextlib.contextmanager
def _patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
