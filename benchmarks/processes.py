"""Processes as a user starts them: how long they take, and how much memory they and their children hold."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PYTHON = sys.executable
BUNDLER = str(Path(sys.executable).with_name("bundler"))
CHILDREN = Path(__file__).parent / "children"
SAMPLING_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """`seconds` by the wall, `cpu_seconds` of the process and of the children that it waited for."""

    seconds: float
    cpu_seconds: float
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """Bytes, each the greatest seen. `shared_out` divides shared pages among their users (PSS) and sums over the tree;
    `own` is its part that no file backs; `largest` is the greatest resident size of one process.
    """

    shared_out: int
    own: int
    largest: int
    seconds: float


class CommandError(Exception):
    """A command that was to be measured failed. `reason` is what it called its error, else its last line."""

    def __init__(self, command: Sequence[str], code: int, said: str) -> None:
        super().__init__(f"{' '.join(command)} ended with {code}\n{said}")
        lines = [line.strip() for line in said.splitlines() if line.strip()][::-1]
        reported = next((line for line in lines if line.startswith("error:")), "")
        self.reason = reported or next((line for line in lines if not line.startswith(("hint:", "next:"))), "")


def run_timed(command: Sequence[str], env: Mapping[str, str] | None = None) -> Ran:
    """Run `command` to its end. Raises `CommandError` with what it said."""
    before = os.times()
    began = time.perf_counter()
    done = subprocess.run(list(command), capture_output=True, text=True, check=False, env=_environment(env))
    seconds = time.perf_counter() - began
    after = os.times()
    if done.returncode:
        raise CommandError(command, done.returncode, f"{done.stdout}\n{done.stderr}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Ran(seconds=seconds, cpu_seconds=cpu, output=done.stdout)


def run_child(name: str, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Ran:
    """Run one of our own scripts in a fresh interpreter."""
    return run_timed([PYTHON, str(CHILDREN / name), *map(str, arguments)], env)


def watch_memory(command: Sequence[str], env: Mapping[str, str] | None = None) -> Peak:
    """Run `command` and look at the memory of its tree all the while (Linux). Raises `CommandError`."""
    peaks = [0, 0, 0]
    began = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(list(command), stdout=said, stderr=said, env=_environment(env)) as process:
            while process.poll() is None:
                peaks = [max(pair) for pair in zip(peaks, _weigh_tree(process.pid), strict=True)]
                time.sleep(SAMPLING_SECONDS)
        if process.returncode:
            said.seek(0)
            raise CommandError(command, process.returncode, said.read().decode(errors="replace"))
    return Peak(shared_out=peaks[0], own=peaks[1], largest=peaks[2], seconds=time.perf_counter() - began)


def _environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    """As a user has it: no variable that changes how Python starts (one that forbids byte code, say) goes along."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**plain, "ORT_DISABLE_TELEMETRY": "1", **(extra or {})}


def _weigh_tree(root: int) -> tuple[int, int, int]:
    weights = [_weigh(process) for process in _list_tree(root)]
    shared_out, own, resident = (sum(column) for column in zip(*weights, strict=True)) if weights else (0, 0, 0)
    return shared_out, own, max((weight[2] for weight in weights), default=resident)


def _list_tree(root: int) -> list[int]:
    """`root` and its descendants; workers lead sessions of their own, so the parents' lists are followed."""
    found = [root]
    for process in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{process}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def _weigh(process: int) -> tuple[int, int, int]:
    """Bytes of PSS, of its anonymous part, and of the resident set; zeros for a process that has ended."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return (0, 0, 0)
    fields = {line.split(":")[0]: line.split()[1] for line in text.splitlines()[1:]}
    return tuple(int(fields.get(name, "0")) * 1024 for name in ("Pss", "Pss_Anon", "Rss"))  # type: ignore[return-value]
