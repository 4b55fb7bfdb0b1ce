"""Running a program on this machine: in a session and a home of its own, within limits, and with nothing of the user's
set-up. Every device whose programs are processes of this machine runs them so.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

from bundler.devices.contract import Command, Outcome
from bundler.environments.sandbox import Sandbox
from bundler.environments.variables import proof_environment
from bundler.execution.limits import bound_command, find_limits
from bundler.execution.temporary import temporary_folder
from bundler.model.paths import real_path
from bundler.support.processes import Child, await_end, end_session

OUTPUT_BYTES: Final = 16_000_000
"""Maximum bytes of a program's output that are read: a report has some kilobytes for each variant and output."""


def run_program(command: Command, sandbox: Sandbox | None = None) -> Outcome:
    """Run one command with a home of its own, a time limit, and no path to the rest of the machine; in a `sandbox` it
    sees what that shows.
    """
    with temporary_folder("proof") as home:
        began = time.perf_counter()
        argv = bound_command(command.argv, find_limits(Path(home)))
        if sandbox is not None:
            argv = sandbox.wrap(argv, writable=(Path(home), *command.writable))
        outcome = _run(argv, _isolate(command.environment, home), home, command.seconds)
        code, output, errors = outcome
        return Outcome(code=code, output=_hide_home(output, home), errors=errors, seconds=time.perf_counter() - began)


def _run(argv: tuple[str, ...], environment: dict[str, str], home: str, seconds: float) -> tuple[int | None, str, str]:
    """In a session of its own, so that a time-out ends its children too. Its output goes to files, not to memory."""
    with (
        tempfile.TemporaryFile(dir=home) as output,
        tempfile.TemporaryFile(dir=home) as errors,
        Child(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment, cwd=home) as process,
    ):
        code = None
        try:
            code = await_end(process, seconds)
        except subprocess.TimeoutExpired:
            end_session(process)
        except BaseException:
            end_session(process)
            raise
        return code, _read_end(output), _read_end(errors)


def _read_end(stream: IO[bytes]) -> str:
    """The end of it, where an error is."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - OUTPUT_BYTES))
    return stream.read(OUTPUT_BYTES).decode("utf-8", "replace")


def _isolate(extra: Mapping[str, str], home: str) -> dict[str, str]:
    """Nothing of the user's set-up: what works here works elsewhere."""
    return {
        **proof_environment(),
        "HOME": home,
        "TMPDIR": home,
        "USERPROFILE": home,
        "LOCALAPPDATA": home,
        "XDG_CACHE_HOME": os.path.join(home, "cache"),  # noqa: PTH118 (text for another process)
        "ORT_DISABLE_TELEMETRY": "1",
        **extra,
    }


def _hide_home(text: str, home: str) -> str:
    """Text or JSON in which the home of this run is `~`: the output goes into the manifest, which names no path of
    this machine.
    """
    for path in (home, str(real_path(Path(home)))):
        text = text.replace(json.dumps(path)[1:-1], "~")
    return text
