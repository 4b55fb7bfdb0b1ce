"""Find toolchains by name. Built-in and foreign ones register alike, as entry points. None of bundler's own stages
compiles native code yet: its own toolchains are those of bundles in Kotlin.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bundler.environments.survey import ToolStatus
from bundler.environments.tools import ShutIn, run_tool
from bundler.model.errors import DefectError, EnvironmentMissingError
from bundler.model.registered import find_registered, registered_names

GROUP = "bundler.toolchains"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""Maven colours its version even where nobody sees it."""

ANSWER_SECONDS = 60.0
"""A compiler states its version in milliseconds; one behind a wrapper may be downloaded first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """A compiler, or another program that is no Python package. `program` is searched on the PATH.

    It is started once with each of the `questions`; the first line of the first answer is its version, and all answers
    together identify it. `hint` says how to install it.
    """

    name: str
    program: str
    hint: str
    questions: tuple[tuple[str, ...], ...] = (("--version",),)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundToolchain:
    """A toolchain of this machine: its program, its version in its own words, and the SHA-256 of all its answers."""

    name: str
    program: Path
    version: str
    digest: str


def find_toolchain(name: str) -> FoundToolchain:
    """The toolchain on this machine. Raises `EnvironmentMissingError` where it is missing or does not start."""
    toolchain = _load_toolchain(name)
    program = shutil.which(toolchain.program)
    if program is None:
        raise EnvironmentMissingError(
            f"the toolchain {name} is missing: {toolchain.program} is not on the PATH", hint=toolchain.hint
        )
    answers = [_ask(toolchain, program, question) for question in toolchain.questions]
    digest = hashlib.sha256("\0".join(answers).encode()).hexdigest()
    lines = (_COLOUR.sub("", line).strip() for line in answers[0].splitlines())
    version = next((line for line in lines if line), "")
    return FoundToolchain(name=name, program=Path(program), version=version, digest=digest)


def survey_toolchains() -> tuple[ToolStatus, ...]:
    """The registered toolchains, for `bundler doctor`."""
    return tuple(_examine(name) for name in registered_names(GROUP))


def _examine(name: str) -> ToolStatus:
    try:
        found = find_toolchain(name)
    except EnvironmentMissingError as error:
        detail, hint = error.message, error.hint
        return ToolStatus(name=f"toolchain {name}", found=False, version=None, detail=detail, hint=hint)
    return ToolStatus(name=f"toolchain {name}", found=True, version=found.version, detail=str(found.program), hint=None)


def _load_toolchain(name: str) -> Toolchain:
    point = find_registered(GROUP, name)
    if point is None:
        known = ", ".join(registered_names(GROUP)) or "none"
        raise EnvironmentMissingError(
            f"no toolchain is named {name!r}", hint=f"install the package that provides it; installed here: {known}"
        )
    toolchain = point.load()
    if not isinstance(toolchain, Toolchain) or toolchain.name != name or not toolchain.questions:
        raise DefectError(f"the entry point of toolchain {name!r} is not a Toolchain of that name with questions")
    return toolchain


def _ask(toolchain: Toolchain, program: str, question: tuple[str, ...]) -> str:
    """What it answers, in no language but its own: it sees neither the user's settings nor the locale."""
    doing = f"ask the toolchain {toolchain.name} for its version"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        shut_in = ShutIn(home=Path(home), seconds=ANSWER_SECONDS)
        try:
            return run_tool((program, *question), doing, toolchain.program, shut_in)
        except EnvironmentMissingError as error:
            raise EnvironmentMissingError(error.message, hint=toolchain.hint, details=error.details) from error
