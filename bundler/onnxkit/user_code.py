"""Load and call a function in a user's Python file, and report its errors with the lines of the user's code."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from bundler.model.errors import BundlerError, UsageError
from bundler.model.paths import real_path
from bundler.support.text import visible

_MODULE: Final = "_bundler_user_code"
_MAX_LINES: Final = 12
_MAX_LENGTH: Final = 300
_MISSING_HINT: Final = "it runs in bundler's environment: install the packages that it imports there"
_FAILED_HINT: Final = "this is your code: correct it, and run the command again"


class StopError(BaseException):
    """Ends a call of the user's code from within. No `Exception`: the user's code catches these."""


@contextlib.contextmanager
def open_function(file: Path | None, entry: str, missing: str = _MISSING_HINT) -> Iterator[Callable[..., Any]]:
    """The function that `entry` names: `function` of `file`, or `package.module:function` (whose file is `file`, or
    None for an installed one). It may import modules beside it (beside its topmost package). Afterwards all modules
    from there are unloaded, so that the next call reads the files again. Raises `UsageError`, with the hint `missing`
    where a module is not installed.
    """
    module, _, name = entry.rpartition(":")
    with _importable(file, module):
        with report_user_errors(file, entry, missing):
            loaded = _load(file, module)
        found = getattr(loaded, name, None)
        if not callable(found):
            place = "package.module:function" if module else "file.py:function"
            raise UsageError(
                f"there is no function {name!r} in {visible(file.name if file else module)}", hint=f"name it as {place}"
            )
        yield found


@contextlib.contextmanager
def report_user_errors(file: Path | None, entry: str = "", missing: str = _MISSING_HINT) -> Iterator[None]:
    """Turn any error of the user's code into a `UsageError`, those that are no `Exception`, too."""
    try:
        yield
    except (BundlerError, StopError):
        raise
    except BaseException as error:
        lines = tuple(_own_lines(error))
        if isinstance(error, GeneratorExit) and not lines:  # not the user's: a generator of ours is closed
            raise
        raise UsageError(
            f"{visible(file.name if file else entry)} failed with {describe(error)}",
            details=lines,
            hint=missing if isinstance(error, ImportError) else _FAILED_HINT,
        ) from error


@contextlib.contextmanager
def _importable(file: Path | None, module: str) -> Iterator[None]:
    if file is None:
        yield
        return
    depth = module.count(".") + (file.name == "__init__.py") if module else 0
    place, before, writes = str(file.parents[depth]), set(sys.modules), sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # leave nothing beside the user's files
    # A module that the user names comes first. Otherwise the user's folder is last: modules beside the file must not
    # replace libraries of the environment.
    sys.path.insert(0 if module else len(sys.path), place)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes
        with contextlib.suppress(ValueError):
            sys.path.remove(place)
        for name in set(sys.modules) - before:
            origin = getattr(sys.modules[name], "__file__", None)
            ours = origin and Path(origin).is_relative_to(place) and "site-packages" not in Path(origin).parts
            if name == _MODULE or ours:
                del sys.modules[name]


def _load(file: Path | None, module: str) -> ModuleType:
    if file is None or module:
        return importlib.import_module(module)
    spec = importlib.util.spec_from_file_location(_MODULE, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{visible(file.name)} is not a Python file", hint="name it as file.py:function")
    made = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = made  # dataclasses and pickles look their module up
    spec.loader.exec_module(made)
    return made


def describe(error: BaseException) -> str:
    """`ValueError: its text`, the first line of it."""
    text = str(error).strip().partition("\n")[0][:_MAX_LENGTH]
    return visible(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _own_lines(error: BaseException) -> list[str]:
    """The traceback without bundler's frames."""
    ours = str(real_path(Path(__file__)).parents[1])
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not str(real_path(Path(frame.filename))).startswith(ours) and "importlib" not in frame.filename
    ]
    lines = [line for entry in traceback.format_list(frames) for line in entry.rstrip().splitlines()]
    if isinstance(error, SyntaxError):
        lines += [line.rstrip() for line in traceback.format_exception_only(error)]
    return [visible(line) for line in lines[-_MAX_LINES:]]
