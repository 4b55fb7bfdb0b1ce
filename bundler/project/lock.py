"""`bundler.lock`: every version and digest that builds of a project download, and the tools that they were made with.

A JSON document with sorted keys. Each environment's pins are what pip and uv read, a line an entry; versions of bundler
and of the tools beside it are recorded because they decide a build's bytes as much as what is downloaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bundler import __version__
from bundler.environments.lockfiles import Lock, parse_lock, render_pins
from bundler.environments.registry import Environments, LockSource, host_version
from bundler.model.attempts import RecordedChoice
from bundler.model.codec import encode
from bundler.model.errors import DefectError, UsageError
from bundler.model.events import SILENT, Reporter
from bundler.support.files import replace_whole

LOCK_SCHEMA = 1
HOST_TOOLS = ("numpy", "onnx", "onnxruntime")
"""Packages beside bundler whose versions decide what stages write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockFile:
    """The content of `bundler.lock`. `tools` are versions by name, `environments` texts of pins by lock name.

    `decisions` are what was decided by measuring, by bundle and variant; a build repeats them from here.
    """

    tools: Mapping[str, str] = field(default_factory=dict)
    environments: Mapping[str, str] = field(default_factory=dict)
    decisions: Mapping[str, Mapping[str, RecordedChoice]] = field(default_factory=dict)


class _Document(BaseModel):
    """A lock as it is written."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    version: Literal[1] = Field(alias="schema")
    tools: dict[str, str]
    environments: dict[str, tuple[str, ...]]
    decisions: dict[str, dict[str, RecordedChoice]] = {}


def read_lock(path: Path) -> LockFile | None:
    """The lock at `path`, or None when there is none. Raises `UsageError` for one that cannot be used."""
    try:
        found = _Document.model_validate_json(path.read_bytes())
        texts = {name: "".join(f"{line}\n" for line in lines) for name, lines in found.environments.items()}
        for name, text in texts.items():
            parse_lock(name, text)
    except FileNotFoundError:
        return None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:200]
        raise _unusable(path, f"{where}: {first['msg']}" if where else first["msg"]) from error
    except (OSError, ValueError, DefectError) as error:
        raise _unusable(path, str(error)) from error
    return LockFile(tools=found.tools, environments=texts, decisions=found.decisions)


def write_lock(path: Path, lock: LockFile) -> None:
    """Write `lock` in one step; equal locks give equal bytes."""
    data = {
        "schema": LOCK_SCHEMA,
        "tools": dict(lock.tools),
        "environments": {name: text.splitlines() for name, text in lock.environments.items()},
        "decisions": encode(lock.decisions),
    }
    replace_whole(path, (json.dumps(data, indent=1, sort_keys=True) + "\n").encode())


def resolve_locks(
    wanted: Mapping[str, LockSource | None], environments: Environments, reporter: Reporter = SILENT
) -> LockFile:
    """A lock of everything in `wanted` (where locks come from, by their names). Raises `EnvironmentMissingError`."""
    found: dict[str, Lock] = {name: environments.lock_for(name, source, reporter) for name, source in wanted.items()}
    return LockFile(tools=current_tools(), environments={name: render_pins(lock.pins) for name, lock in found.items()})


def current_tools() -> dict[str, str]:
    """Versions of bundler and of the tools beside it."""
    found = {name: host_version(name) for name in HOST_TOOLS}
    return {"bundler": __version__, **{name: version for name, version in found.items() if version}}


def find_differences(lock: LockFile | None, current: LockFile) -> tuple[str, ...]:
    """What keeps `lock` from being up to date, a line each; empty when nothing does."""
    if lock is None:
        return ("bundler.lock is missing",)
    lines = [
        f"{name}: locked {lock.tools.get(name, 'nothing')}, here {version}"
        for name, version in current.tools.items()
        if lock.tools.get(name) != version
    ]
    lines += [f"{name}: not in the lock" for name in current.environments if name not in lock.environments]
    lines += [f"{name}: no longer needed" for name in lock.environments if name not in current.environments]
    return tuple(lines)


def _unusable(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path} cannot be used",
        details=(why,),
        hint="restore it from version control, or delete it and run `bundler lock`",
    )
