"""When, where and with what something was measured."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("onnxruntime", "onnx", "numpy", "typer", "pydantic")
MEASURED = ("bundler", "templates", "targets")


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """`date` as ISO 8601 in UTC, to the minute. `loads` are the averages before and after, our own work counted in;
    `commit` is that of this repository, or nothing where it is none; it ends with `+` where what is
    measured was changed since.
    """

    date: str
    seconds: float
    loads: tuple[float, float]
    machine: str
    versions: Mapping[str, str]
    commit: str = ""

    def __str__(self) -> str:
        """The line of a section in RESULTS.md."""
        (before, after), when = self.loads, datetime.fromisoformat(self.date).strftime("%Y-%m-%d %H:%M UTC")
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        load = f"load average {before:.1f} before, {after:.1f} after"
        return f"*{when}, {self.seconds:.0f} s; {load}. {self.machine}; {versions}.*"


def describe_circumstances(loads: Sequence[float], seconds: float) -> Circumstances:
    """Those of a measurement that ends now and took `seconds`."""
    return Circumstances(
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"),
        seconds=seconds,
        loads=(loads[0], loads[1]),
        machine=f"{platform.system()} {platform.machine()}, {_processor()}, {os.cpu_count()} cores",
        versions={"Python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        commit=_describe_commit(),
    )


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or "unknown processor"
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else "unknown processor"


def _describe_commit() -> str:
    try:
        commit = _run_git("rev-parse", "--short", "HEAD").stdout.strip()
    except OSError:
        return ""
    changed = _run_git("diff", "--quiet", "HEAD", "--", *MEASURED).returncode
    return f"{commit}{'+' if commit and changed else ''}"


def _run_git(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(Path(__file__).parents[1]), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
