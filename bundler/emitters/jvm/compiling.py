"""Compiles Kotlin, with a locked compiler that the user's own Java runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bundler.emitters.jvm.artifacts import COMPILER, COMPILER_LOCK
from bundler.emitters.jvm.maven import fetch_artifacts
from bundler.environments.registry import Environments
from bundler.environments.tools import ShutIn, run_tool
from bundler.execution.temporary import temporary_folder
from bundler.model.errors import EnvironmentMissingError, StageError
from bundler.model.events import Reporter
from bundler.toolchains.java import JAVA
from bundler.toolchains.registry import find_toolchain

JVM_TARGET: Final = "11"
"""Android's tools and every Java that is still maintained read classes of this version."""

_COMPILER: Final = "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"
_QUICK: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g")
"""The compiler runs for seconds: the second tier of Java's own compiler and parallel collectors cost more than they
gain (17.8 s to 9.8 s on two cores, measured).
"""

_RULES: Final = ("-no-stdlib", "-no-reflect", "-Werror", "-jvm-target", JVM_TARGET)
_LIBRARY: Final = "-Xexplicit-api=strict"
"""What is public says so, with its type: for code that others build on."""

_SECONDS: Final = 600.0
_LAST_LINES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """What to compile: `sources` against `libraries`; `module` is Kotlin's name for the result. It sees what is
    internal in the classes of `friends`.
    """

    sources: Sequence[Path]
    libraries: Sequence[Path]
    module: str
    friends: Sequence[Path] = ()


def compile_kotlin(
    work: Compilation, folder: Path, environments: Environments, reporter: Reporter, rules: Sequence[str] = (_LIBRARY,)
) -> None:
    """Write the classes into `folder`. Raises `EnvironmentMissingError` without Java or the compiler, and `StageError`
    with the compiler's own words where the sources do not compile.
    """
    java = find_toolchain(JAVA.name)
    lock = environments.lock_for(COMPILER_LOCK, COMPILER, reporter)
    compiler = fetch_artifacts(lock, environments, reporter)
    reporter.say("compiling the loader and the classes of the bundle")
    command = (
        *(str(java.program), *_QUICK, "-cp", _join(compiler.values()), _COMPILER, *_RULES, *rules),
        *((f"-Xfriend-paths={','.join(map(str, work.friends))}",) if work.friends else ()),
        *("-module-name", work.module, "-cp", _join((*work.libraries, *work.friends)), "-d", str(folder)),
        *map(str, work.sources),
    )
    with temporary_folder("compiler") as home:
        try:
            run_tool(command, "compile the bundle", "the Kotlin compiler", ShutIn(home=Path(home), seconds=_SECONDS))
        except EnvironmentMissingError as error:
            raise StageError(error.message, details=error.details[-_LAST_LINES:]) from error


def _join(paths: Iterable[Path]) -> str:
    return os.pathsep.join(map(str, paths))
