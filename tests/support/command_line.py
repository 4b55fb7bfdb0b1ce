"""Runs the real command line in a process of its own, as a user does, and keeps what it said."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
PROGRAM = str(Path(sys.executable).with_name("bundler"))
NOT_OURS = ("CI", "FORCE_COLOR", "PYTHONPATH", "PYTEST_CURRENT_TEST")
ONE_PYTHON = f'python.versions=["{HERE}"]'
"""An override for bundles that need to run only here: a fourth of the download and of the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a finished process said."""

    command: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output; the test fails when there is anything else."""
        return json.loads(self.out)

    def expect(self, code: int) -> Answer:
        """Itself, when it ended with `code`; the assertion shows all that it said."""
        assert self.code == code, f"exit code {self.code}\n{' '.join(self.command)}\n{self.out}\n{self.err}"
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """The program with one cache. `env` is added to ours."""

    cache: Path
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None

    def run(self, *arguments: str | Path, timeout: float = 240) -> Answer:
        """Run `bundler ARGUMENTS` to its end."""
        command = self.command(arguments)
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=self.environment(), cwd=self.cwd, timeout=timeout
        )
        return Answer(command=command, code=done.returncode, out=done.stdout, err=done.stderr)

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start `bundler ARGUMENTS` in a process group of its own, as a shell does."""
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(
            self.command(arguments), env=self.environment(), cwd=self.cwd, start_new_session=True, **pipes
        )

    def command(self, arguments: Sequence[str | Path]) -> tuple[str, ...]:
        return (PROGRAM, *map(str, arguments))

    def environment(self) -> dict[str, str]:
        """Ours without what would change the output: no colours, no terminal, no CI, one cache."""
        ours = {key: value for key, value in os.environ.items() if key not in NOT_OURS}
        fixed = {"BUNDLER_CACHE": str(self.cache), "NO_COLOR": "1", "COLUMNS": "120", "ORT_DISABLE_TELEMETRY": "1"}
        return {**ours, **fixed, **self.env}

    def build(self, *arguments: str | Path) -> dict[str, Any]:
        """`bundler build ARGUMENTS --json` that must succeed; the only bundle of its document."""
        (bundle,) = self.build_all(*arguments)
        return bundle

    def build_all(self, *arguments: str | Path) -> list[dict[str, Any]]:
        """`bundler build ARGUMENTS --json` that must succeed; all bundles of its document."""
        document = self.run("build", *arguments, "--json").expect(0).document
        assert document["failures"] == []
        bundles: list[dict[str, Any]] = document["bundles"]
        return bundles


def normalise(text: str, folders: Mapping[str, Path]) -> str:
    """`text` with what varies from run to run replaced: folders by `<name>`, digests, process numbers and times."""
    for name, folder in sorted(folders.items(), key=lambda item: -len(str(item[1]))):
        text = text.replace(str(folder), f"<{name}>")
    text = re.sub(r"\b[0-9a-f]{16,64}\b", "<digest>", text)
    text = re.sub(r"\b\d+\.\d+ s\b", "<time> s", text)
    return text.replace(str(ROOT), "<repository>")


def list_all(folder: Path) -> list[str]:
    """Every entry below `folder`, hidden ones too: what a failed build may have left. Empty when it is not there."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def digest_folder(folder: Path) -> dict[str, str]:
    """SHA-256 and mode of every file by its path."""
    return {
        str(path.relative_to(folder)): f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mode:o}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def end_group(process: subprocess.Popen[str]) -> None:
    """Kill a started process and all that it started, at once."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
