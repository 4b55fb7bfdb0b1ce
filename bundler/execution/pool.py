"""The parent's side of the pipe: worker processes that serve many requests, and whose crash does not affect bundler."""

from __future__ import annotations

import collections
import contextlib
import io
import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, TypedDict

from bundler.environments.registry import Environment
from bundler.environments.sandbox import Sandbox, own_folders, python_folders
from bundler.environments.variables import computing_environment
from bundler.execution.limits import MEMORY_VARIABLE, TIME_VARIABLE, find_limits
from bundler.execution.stage_sources import package_folder
from bundler.execution.temporary import temporary_folder
from bundler.model.codec import conforms, parse_json
from bundler.model.errors import EnvironmentMissingError, StageError
from bundler.model.stage import StageResult
from bundler.support.processes import Child, await_end, end_session, name_signal

WORKER = Path(__file__).with_name("worker.py")
LOG_BYTES = 1 << 20
"""Bytes of a worker's last output that are kept."""
MAX_UNREAD = 64 << 20
"""Maximum bytes of unread answers, and of one answer; a regular worker sends less."""
TAIL_LINES = 15
CLOSE_SECONDS = 2.0
PATIENCE = 1.0
"""Seconds to wait for a busy worker before another is started: starting one took 0.3 to 0.5 s, and on a busy machine,
where small steps take longer, twice that."""
Progress = Callable[[float, str], None]


class Worker:
    """One process in one environment. `call` may be used by one thread at a time, `kill` by any."""

    def __init__(self, environment: Environment, logs: Path, sandbox: Sandbox | None = None) -> None:
        self.environment = environment
        self.sandbox = sandbox
        self._logs = logs
        self._count = 0
        self._temporary = temporary_folder("worker")
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._sent = self._received = 0
        self._log: collections.deque[bytes] = collections.deque()
        self._closing = threading.Lock()
        self._process = self._start()
        self._threads = (self._follow(self._read_answers), self._follow(self._read_log))

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    @property
    def folder(self) -> Path:
        """Its own folder, removed by `close`: in a sandbox the only one that it may write to."""
        return Path(self._temporary.name)

    @property
    def pid(self) -> int:
        """The process number."""
        return self._process.pid

    def post(self, request: Mapping[str, Any]) -> int:
        """Send a request without waiting; returns its number. A dead worker is noticed by `wait`."""
        self._count += 1
        packages = {"bundler": str(package_folder("bundler")), **request.get("packages", {})}
        message = {**request, "id": self._count, "packages": packages}
        with contextlib.suppress(OSError, ValueError):
            self._requests.write(json.dumps(message) + "\n")
            self._requests.flush()
        return self._count

    def wait(self, number: int, title: str, time_limit: float, progress: Progress) -> dict[str, Any]:
        """The answer to request `number`: an `error`, or a `result` that is a `StageResult`.

        Raises `StageError` when the worker dies, sends an invalid answer, or `time_limit` seconds pass.
        """
        deadline = time.monotonic() + time_limit
        while True:
            message = self._receive(title, time_limit, deadline)
            if message["id"] != number:
                continue  # the answer to a request that only warmed the worker up
            if "progress" not in message:
                return message
            progress(message["progress"], message["text"])

    def _receive(self, title: str, time_limit: float, deadline: float) -> dict[str, Any]:
        left = deadline - time.monotonic()
        try:
            line = self._answers.get(timeout=max(0.0, left)) if left > 0 else b""
        except queue.Empty:
            left, line = 0.0, b""
        if left <= 0:
            self.kill()
            raise self._timed_out(title, time_limit)
        if line is None:
            raise self._crashed(title)
        self._received += len(line)
        message = _read_message(line)
        if message is None:
            self.kill()
            raise self._garbled(title)
        return message

    def kill(self) -> None:
        """End the process, and those that it started, at once."""
        self.end()
        self._reap(None)

    def end(self) -> None:
        """As `kill`, but keeps its folder, to which no process writes any more."""
        end_session(self._process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            await_end(self._process, CLOSE_SECONDS)

    def close(self) -> None:
        """Let the process end: it does so as soon as its requests are closed."""
        self._close_pipes()
        self._reap(CLOSE_SECONDS)

    def _start(self) -> subprocess.Popen[bytes]:
        flags = ["-P"] if self.environment.is_host else ["-I"]
        command = [str(self.environment.python), *flags, "-X", "utf8", str(WORKER)]
        try:
            process = self._open(command, computing_environment())
        except OSError as error:
            self._temporary.cleanup()
            raise EnvironmentMissingError(
                f"the interpreter of environment {self.environment.name} does not start: {error}",
                hint="run `bundler cache clear`, which makes bundler rebuild its environments; `bundler doctor` "
                "lists them",
            ) from error
        if process.stdin is not None:
            self._requests: IO[str] = io.TextIOWrapper(process.stdin, encoding="utf-8")
        return process

    def _open(self, command: list[str], environ: dict[str, str]) -> subprocess.Popen[bytes]:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command = [*command, *find_limits(self._logs).arguments] if os.name == "posix" else command
        return Child(self._confine(command), env={**environ, "TMPDIR": self._temporary.name}, **pipes)

    def _confine(self, command: list[str]) -> list[str]:
        if self.sandbox is None:
            return command
        shown = self.sandbox.showing((*own_folders(), *python_folders(self.environment.python)))
        return list(shown.wrap(command, writable=(self.folder,)))

    def _follow(self, target: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        return thread

    def _read_answers(self) -> None:
        stream = self._process.stdout
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                while line := stream.readline(MAX_UNREAD + 1):
                    self._sent += len(line)
                    if self._sent - self._received > MAX_UNREAD:
                        self._answers.put(_INVALID_MESSAGE)
                        break
                    self._answers.put(line)
            stream.close()
        self._answers.put(None)

    def _read_log(self) -> None:
        stream = self._process.stderr
        if stream is None:
            return
        kept = 0
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(stream.fileno(), 1 << 16):
                self._log.append(chunk)
                kept += len(chunk)
                while kept > LOG_BYTES:
                    kept -= len(self._log.popleft())
        stream.close()

    def _close_pipes(self) -> None:
        """Close them once: the thread that waits for an answer and one that kills may both call this."""
        with self._closing, contextlib.suppress(OSError, ValueError):
            self._requests.close()

    def _reap(self, patience: float | None) -> None:
        try:
            await_end(self._process, patience if patience is not None else CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            if patience is not None:
                self.kill()
        self._close_pipes()
        self._temporary.cleanup()

    def _crashed(self, title: str) -> StageError:
        self._reap(0.5)
        code = _signal_code(self._process.returncode, self.sandbox)
        killed = code is not None and code < 0 and name_signal(-code) == "SIGKILL"
        return StageError(
            f"stage {title} {_describe_end(code)}",
            details=self._evidence(),
            hint=_NO_MEMORY_HINT if killed else _CRASH_HINT,
        )

    def _timed_out(self, title: str, limit: float) -> StageError:
        return StageError(
            f"stage {title} did not finish within {limit:g} s and was terminated",
            details=self._evidence(),
            hint="a smaller model or fixed dimensions (`--dim`) may help; on a slow machine, raise the limit with "
            f"{TIME_VARIABLE}=SECONDS",
        )

    def _garbled(self, title: str) -> StageError:
        return StageError(
            f"stage {title} was terminated: its process sent an invalid response",
            details=self._evidence(),
            hint=_CRASH_HINT,
        )

    def _evidence(self) -> tuple[str, ...]:
        self._threads[1].join(0.5)  # what the ended process said last may not have been read yet
        data = b"".join(tuple(self._log))
        lines = data[-(1 << 14) :].decode("utf-8", "replace").splitlines()[-TAIL_LINES:]
        place = self._logs / f"{time.strftime('%Y%m%dT%H%M%S')}-{self.pid}.log"
        try:
            self._logs.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        except OSError:
            return tuple(lines)
        return (*lines, f"the worker's log: {place}")


class _Progress(TypedDict):
    id: int
    progress: float
    text: str


class _Result(TypedDict):
    id: int
    result: StageResult | None


class _Failure(TypedDict):
    id: int
    error: Mapping[str, Any]


_MESSAGES: Final = (_Progress, _Result, _Failure)
_INVALID_MESSAGE: Final = b"\n"


def _read_message(line: bytes) -> dict[str, Any] | None:
    """A worker's message; None for an invalid one, since a worker runs untrusted models."""
    try:
        message = parse_json(line)
    except ValueError:
        return None
    return message if any(conforms(kind, message) for kind in _MESSAGES) else None


_Wanted = tuple[Environment, Sandbox | None]
_Kind = tuple[Path, Sandbox | None]
"""Workers of one kind are interchangeable."""


def _kind_of(environment: Environment, sandbox: Sandbox | None) -> _Kind:
    return environment.python, sandbox


class WorkerPool:
    """Idle workers by environment. A lease starts a new one when none is idle."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._idle: dict[_Kind, list[Worker]] = {}
        self._all: set[Worker] = set()
        self._lock = threading.Lock()
        self._returned = threading.Condition(self._lock)

    def warm(self, environment: Environment, imports: Sequence[str], sandbox: Sandbox | None = None) -> None:
        """Start a worker that imports modules in the background."""
        worker = self._add((environment, sandbox))
        worker.post({"warm": list(imports)})
        self._give_back(worker)

    @contextlib.contextmanager
    def lease(
        self,
        environment: Environment,
        *,
        keep: bool = True,
        patience: float = PATIENCE,
        sandbox: Sandbox | None = None,
    ) -> Iterator[Worker]:
        """A living worker for one thread; idle again afterwards, unless it died or `keep` is false.

        If all workers of the environment are busy, waits up to `patience` seconds before another is started. A worker
        in a `sandbox` serves one lease only, so that no model can affect another step.
        """
        worker = self._take((environment, sandbox), patience)
        try:
            yield worker
        finally:
            if keep and sandbox is None and worker.alive:
                self._give_back(worker)
            else:
                self._drop(worker)

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            workers, self._all, self._idle = self._all, set(), {}
        for worker in workers:
            worker._close_pipes()  # noqa: SLF001 - all end at once
        for worker in workers:
            worker.close()

    def _take(self, wanted: _Wanted, patience: float) -> Worker:
        while True:
            worker = self._await_idle(_kind_of(*wanted), patience)
            if worker is None:
                return self._add(wanted)
            if worker.alive:
                return worker
            self._drop(worker)

    def _await_idle(self, kind: _Kind, patience: float) -> Worker | None:
        """An idle worker; while all are busy, waits up to `patience` seconds for one: loading the tools again takes
        longer than most steps.
        """
        with self._returned:
            if any(_kind_of(worker.environment, worker.sandbox) == kind for worker in self._all):
                self._returned.wait_for(lambda: self._idle.get(kind), patience)
            idle = self._idle.get(kind)
            return idle.pop() if idle else None

    def _add(self, wanted: _Wanted) -> Worker:
        environment, sandbox = wanted
        worker = Worker(environment, self._logs, sandbox)
        with self._lock:
            self._all.add(worker)
        return worker

    def _give_back(self, worker: Worker) -> None:
        with self._returned:
            self._idle.setdefault(_kind_of(worker.environment, worker.sandbox), []).append(worker)
            self._returned.notify()

    def _drop(self, worker: Worker) -> None:
        with self._lock:
            self._all.discard(worker)
        worker.close()


def _signal_code(code: int | None, sandbox: Sandbox | None) -> int | None:
    """The exit code as `subprocess` gives it: Bubblewrap reports a signal as a shell does, as 128 + its number."""
    return _SHELL_SIGNALS - code if sandbox and code is not None and code > _SHELL_SIGNALS else code


_SHELL_SIGNALS: Final = 128

_CRASH_HINT: Final = (
    "the model, or your code that the stage calls, triggers a defect in native code; `bundler "
    "doctor` shows the versions"
)

_NO_MEMORY_HINT: Final = (
    "free memory, run fewer steps at once (`--jobs 1`), build on a machine with more, or have a step refused earlier "
    f"with {MEMORY_VARIABLE}=SIZE"
)


def _describe_end(code: int | None) -> str:
    if code is None:
        return "ended without an answer"
    if code >= 0:
        return f"exited with code {code if code < 1 << 16 else hex(code)}"
    if name_signal(-code) == "SIGKILL":
        return "was killed by the system (SIGKILL), most likely because memory ran out"
    return f"crashed in native code ({name_signal(-code)})"
