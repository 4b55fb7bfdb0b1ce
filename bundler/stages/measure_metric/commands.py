"""A metric that is a program: folders are its input, a number its output."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from bundler.model.errors import StageError, UsageError
from bundler.stages.measure_metric.archives import file_name, write_archive
from bundler.stages.measure_metric.samples import Samples
from bundler.stages.measure_metric.spec import COMMAND_SECONDS
from bundler.support.processes import run_process
from bundler.support.text import visible

_MAX_TAIL_BYTES: Final = 65_536
"""Bytes from the end of a program's output that are read."""
_MAX_TAIL_LINES: Final = 8
_MAX_WIDTH: Final = 200
_LAST: Final = "the last line on its standard output must be the number alone; higher is better"


def check_command(command: Sequence[str]) -> None:
    """Raise `UsageError` for a command that does not use the outputs."""
    if not any("{answers}" in argument for argument in command[1:]):
        hint = "give `{answers}` as an argument: it is replaced by the folder with one .npz file per sample"
        raise UsageError("the metric's command does not use the model's outputs", hint=hint)


def write_folders(samples: Samples, folder: Path) -> dict[str, Path]:
    """The folders that a command reads, by placeholder; only one sample is in memory at a time."""
    folders = {name: folder / name for name in ("inputs", "reference", "answers")}
    for place in folders.values():
        place.mkdir()
    taken: set[str] = set()
    for position, sample in enumerate(samples):
        name = file_name(position, sample.name)
        if name.lower() in taken:
            name = f"{position:05d}-{name}"
        taken.add(name.lower())
        for kind, place in folders.items():
            write_archive(place / f"{name}.npz", getattr(sample, kind))
    return folders


def measure(command: Sequence[str], folders: Mapping[str, Path], logs: Path) -> float:
    """The number that the program prints. Raises `StageError`."""
    filled = [_fill(argument, folders) for argument in command]
    with (logs / "stdout").open("w+b") as output, (logs / "stderr").open("w+b") as errors:
        code = _run(filled, output, errors)
        said, complained = _tail(output), _tail(errors)
    if code != 0:
        raise StageError(
            f"the metric's command {visible(command[0])} ended with exit code {code}",
            details=tuple((complained or said)[-_MAX_TAIL_LINES:]),
            hint="it must end with exit code 0; run it yourself for its full output",
        )
    return _read_number(command[0], said)


def _fill(argument: str, folders: Mapping[str, Path]) -> str:
    for name, place in folders.items():
        argument = argument.replace(f"{{{name}}}", str(place))
    return argument


def _run(command: Sequence[str], output: IO[bytes], errors: IO[bytes]) -> int:
    try:
        done = run_process(command, seconds=COMMAND_SECONDS, stdout=output, stderr=errors)
    except subprocess.TimeoutExpired as error:
        raise StageError(
            f"the metric's command {visible(command[0])} was stopped after {COMMAND_SECONDS:.0f} s",
            hint="give fewer samples, or a faster program",
        ) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        hint = "it is started without a shell, from the folder that bundler runs in; give the program's path"
        raise StageError(f"the metric's command {visible(command[0])} cannot be started: {why}", hint=hint) from error
    return int(done.returncode)


def _tail(stream: IO[bytes]) -> list[str]:
    """The last lines that are not blank."""
    size = stream.seek(0, 2)
    stream.seek(max(0, size - _MAX_TAIL_BYTES))
    text = stream.read().decode("utf-8", "replace")
    return [visible(line.strip())[:_MAX_WIDTH] for line in text.splitlines() if line.strip()]


def _read_number(program: str, said: Sequence[str]) -> float:
    last = said[-1] if said else ""
    try:
        value = float(last)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        found = f"its last line is {last!r}" if last else "it printed nothing"
        raise StageError(f"the metric's command {visible(program)} printed no number", details=(found,), hint=_LAST)
    return value
