"""Runs a script as somebody does who comes to it for the first time."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from docs.console.scripts import SCRIPTS

ROOT: Final = Path(__file__).resolve().parents[2]


class RecordError(Exception):
    """A command did not end as it should."""


def list_commands(name: str) -> tuple[str, ...]:
    """The commands of a script as a person in the development environment types them."""
    script = SCRIPTS[name]
    if not script.target:
        return script.commands
    command = ("make", "--dry-run", "--no-print-directory", "--old-file=.venv/.ready", script.target)
    done = subprocess.run(command, cwd=ROOT, env=describe_environment(), capture_output=True, text=True, check=True)
    found = re.split(r"(?<!\\)\n", done.stdout.replace(".venv/bin/", "").replace("\t", "    ").strip())
    return tuple(command for command in found if not command.startswith("echo "))


def record(name: str, look: Callable[[str, Path], None] | None = None) -> str:
    """Run a script in an empty folder and with an empty cache; its transcript. `look` is called with the name and the
    folder before that is removed. Raises `RecordError`.
    """
    script = SCRIPTS[name]
    with tempfile.TemporaryDirectory(prefix="console-") as folder:
        place = Path(folder)
        for part in ("examples", "Makefile"):
            (place / part).symlink_to(ROOT / part)
        before = list_commands(script.after) if script.after else ()
        for command in (*before, *script.setup):
            _run(command, place, describe_environment(place), 0)
        environment = describe_environment(place, place / script.path if script.path else None)
        outputs = [(command, _run(command, place, environment, script.code)) for command in list_commands(name)]
        if look:
            look(name, place)
    return "\n".join(f"$ {command}\n{output}" for command, output in outputs)


def _run(command: str, place: Path, environment: Mapping[str, str], code: int) -> str:
    done = subprocess.run(  # noqa: S602 - the commands are those of scripts.py and the Makefile
        command,
        shell=True,
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    if done.returncode != code:
        raise RecordError(f"{command}\n{done.stdout}\nended with {done.returncode}, not with {code}")
    return done.stdout


def describe_environment(place: Path | None = None, first: Path | None = None) -> dict[str, str]:
    """Ours without what changes the output: an outer make, colours, settings of the programs that are run."""
    dropped = ("MAKE", "MFLAGS", "PYTHON", "BUNDLER_", "CI", "FORCE_COLOR", "VIRTUAL_ENV")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    programs = [str(folder) for folder in (first, ROOT / ".venv" / "bin") if folder]
    kept |= {"PATH": os.pathsep.join([*programs, kept.get("PATH", "")]), "NO_COLOR": "1", "COLUMNS": "120"}
    kept |= {"PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if place is not None:
        kept |= {"BUNDLER_CACHE": str(place / "cache"), "BUNDLER_PREPARED": str(place / "prepared")}
    return kept | {"ORT_DISABLE_TELEMETRY": "1"}
