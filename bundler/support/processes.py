"""The one door through which processes are started. Each ends with this process, however that ends, and takes all that
it started along.

It is in a session of its own, beside a shell that waits for the end of a pipe from us. The system closes that pipe when
we are gone, or when the process was waited for; then the shell kills its session. So nothing that we start can remain.
Windows has no sessions: there, only what we kill ourselves ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

_GUARD: Final = (
    'if [ -r "/dev/fd/$1" ]; then ({ while read _; do :; done <"/dev/fd/$1"; kill -9 0; } >/dev/null 2>&1 &); fi; '
    'shift; exec "$@"'
)
"""Becomes the program; the shell beside it is no child of it, which it might wait for."""

_running: weakref.WeakSet[Child] = weakref.WeakSet()


class Child(subprocess.Popen[Any]):
    """A process that ends with this one. Takes what `subprocess.Popen` takes, and raises `OSError` as that does."""

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        self._lifeline = -1
        self._closing = threading.Lock()
        if os.name != "posix":
            super().__init__(command, creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0), **options)
        else:
            _check_program(command[0], options.get("env") or os.environ)
            ours, self._lifeline = os.pipe()
            try:
                guarded = ("/bin/sh", "-c", _GUARD, "sh", str(ours), *command)
                super().__init__(guarded, start_new_session=True, pass_fds=(ours,), **options)
            except BaseException:
                self._release()
                raise
            finally:
                os.close(ours)
        _running.add(self)

    def poll(self) -> int | None:
        """Its exit code, None while it runs. What it started and left behind ends with it."""
        return self._release_after(super().poll())

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended. Raises `TimeoutExpired`."""
        code = super().wait(timeout)
        self._release()
        return code

    def _release_after(self, code: int | None) -> int | None:
        if code is not None:
            self._release()
        return code

    def _release(self) -> None:
        """Let the shell beside it end, and whatever else is in the session."""
        with self._closing:
            if self._lifeline >= 0:
                os.close(self._lifeline)
                self._lifeline = -1


def _check_program(program: str, environment: Any) -> None:
    """Raise `OSError` for a program that cannot be started: the shell would say so in its own words."""
    if shutil.which(program, path=environment.get("PATH", os.defpath)) is None:
        code = errno.EACCES if Path(program).exists() else errno.ENOENT
        raise OSError(code, os.strerror(code), program)


def run_process(
    command: Sequence[str], *, data: bytes | str | None = None, seconds: float | None = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end; `data` is its standard input (None: nothing). Its outputs are kept unless `options` say
    where they go. Raises `OSError` where it does not start, and `TimeoutExpired` after so many `seconds`, once it and
    all that it started have been killed.
    """
    given = subprocess.DEVNULL if data is None else subprocess.PIPE
    outputs = {name: options.pop(name, subprocess.PIPE) for name in ("stdout", "stderr")}
    with Child(command, stdin=given, **outputs, **options) as process:
        try:
            output, errors = process.communicate(data, timeout=seconds)
        except BaseException:
            end_session(process)
            raise
        return subprocess.CompletedProcess(command, process.returncode, output, errors)


def end_all() -> None:
    """Kill all that this process has started and not yet waited for."""
    for process in tuple(_running):
        end_session(process)


def await_end(process: subprocess.Popen[Any], seconds: float) -> int:
    """The exit code of a process, once it has ended. Raises `TimeoutExpired` after so many `seconds`.

    As `process.wait`, which with a limit polls every 50 ms; on Linux the end is noticed at once.
    """
    if sys.platform == "linux" and process.returncode is None:
        with contextlib.suppress(OSError):  # a kernel before 5.3, or one more file than may be open
            handle = os.pidfd_open(process.pid)
            try:
                ended = select.poll()
                ended.register(handle, select.POLLIN)
                seconds = 0.0 if ended.poll(seconds * 1000) else 0.001
            finally:
                os.close(handle)
    return process.wait(seconds)


def end_session(process: subprocess.Popen[Any]) -> None:
    """Kill a process, and all that is in its session."""
    if sys.platform == "win32":
        subprocess.run(("taskkill", "/F", "/T", "/PID", str(process.pid)), capture_output=True, check=False)
    elif process.returncode is None:  # else the number may be another's by now
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def bounded_memory(size: int) -> Iterator[None]:
    """Limit what this process allocates meanwhile to so many bytes more. Linux alone has such a limit."""
    if sys.platform != "linux":
        yield
        return
    import resource  # noqa: PLC0415 - not on Windows

    limits = resource.getrlimit(resource.RLIMIT_DATA)
    status = Path("/proc/self/status").read_text("utf-8")
    bound = int(status.partition("VmData:")[2].split()[0]) * 1024 + size
    kept = [limit for limit in limits if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(bound, *kept) if kept else bound, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, limits)


def name_signal(number: int) -> str:
    """`SIGKILL`, or `signal 35` where Python has no name for it, as for real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
