"""A user's Python function that gives samples, called in the worker."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from bundler.model.errors import UsageError
from bundler.model.signature import Signature
from bundler.stages.prepare_data.dataset import DataSet, Samples, UnreadableError, Wanted
from bundler.workbench.elements import element_named
from bundler.workbench.value_files import Value

MOST_SAMPLES: Final = 100_000
"""A function that never ends is a mistake, and says so here."""
_LINES: Final = 12
_HINT: Final = (
    "the function takes no argument and returns an iterable of samples, each a mapping from input name to array; "
    "`yield` them one by one, so that they need not fit into memory"
)


def open_function(file: Path | None, entry: str, signature: Signature) -> DataSet:
    """What the function `entry` gives; nothing is called yet. Raises `UsageError` where it cannot be found."""

    def take(wanted: Wanted) -> Samples:
        with _importable(file, entry), contextlib.closing(_call(file, entry)) as samples:
            for position, sample in enumerate(samples):
                if position >= MOST_SAMPLES:
                    raise UsageError(f"{_show(entry)} gives more than {MOST_SAMPLES:,} samples", hint=_HINT)
                if wanted(position):
                    yield f"{entry.rpartition(':')[2]}-{position:03d}", lambda sample=sample: _adopt(sample, signature)  # type: ignore[misc]

    return DataSet(total=None, take=take)


@contextlib.contextmanager
def _importable(file: Path | None, entry: str) -> Iterator[None]:
    """Let the file import what stands beside it (a module: what stands beside its topmost package), and afterwards
    forget all that came from there: the next call sees what is then in the files.
    """
    if file is None:
        yield
        return
    module = entry.rpartition(":")[0]
    depth = module.count(".") + (file.name == "__init__.py") if module else 0
    place = str(file.parents[depth])
    sys.path.insert(0, place)
    before = set(sys.modules)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(place)
        for name in set(sys.modules) - before:
            origin = getattr(sys.modules[name], "__file__", None)
            if origin and Path(origin).is_relative_to(place) and "site-packages" not in origin:
                del sys.modules[name]


def _call(file: Path | None, entry: str) -> Generator[Any, None, None]:
    module, _, function = entry.rpartition(":")
    with _told(entry, file):
        found = getattr(_load(file, module), function, None)
        if callable(found):
            result = found()
            if not isinstance(result, Mapping | np.ndarray | str | bytes) and isinstance(result, Iterable):
                yield from result
                return
    if found is None or not callable(found):
        raise UsageError(
            f"there is no function {function!r} in {_show(file.name if file else module)}",
            hint="--calibration takes file.py:function or package.module:function",
        )
    raise UsageError(f"{_show(entry)} returned {_kind(result)}, not an iterable of samples", hint=_HINT)


def _load(file: Path | None, module: str) -> ModuleType:
    if file is None or module:
        return importlib.import_module(module)
    spec = importlib.util.spec_from_file_location("_bundler_data", file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{_show(file.name)} is no Python file", hint=_HINT)
    made = importlib.util.module_from_spec(spec)
    sys.modules["_bundler_data"] = made  # dataclasses and pickles look their module up
    spec.loader.exec_module(made)
    return made


@contextlib.contextmanager
def _told(entry: str, file: Path | None) -> Iterator[None]:
    """The user's own errors, with the lines of his own code."""
    try:
        yield
    except (UsageError, GeneratorExit):
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"{_show(entry if file is None else file.name)} failed with {_describe(error)}",
            details=tuple(_user_lines(error)),
            hint="it runs in the environment that bundler is installed in; what it imports must be installed there",
        ) from error


def _describe(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0][:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _user_lines(error: BaseException) -> list[str]:
    ours = str(Path(__file__).resolve().parents[2])
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not str(Path(frame.filename).resolve()).startswith(ours) and "importlib" not in frame.filename
    ]
    lines = "".join(traceback.format_list(frames)).rstrip().splitlines()
    if isinstance(error, SyntaxError):
        lines += [line.rstrip() for line in traceback.format_exception_only(error)]
    return lines[-_LINES:]


def _adopt(sample: Any, signature: Signature) -> dict[str, Value]:
    """One sample as the model takes it. Python's own numbers have no size: they take the input's."""
    if not isinstance(sample, Mapping):
        raise UnreadableError(f"it is {_kind(sample)}, not a mapping from input name to array")
    types = {port.name: port.type for port in signature.inputs}
    made: dict[str, Value] = {}
    for key, value in sample.items():
        kind = types.get(key)
        if kind is not None and kind.kind != "tensor":
            made[str(key)] = value
            continue
        try:
            made[str(key)] = _array(value, kind.element_type if kind else None)
        except Exception as error:  # whatever the value's own conversion raises
            raise UnreadableError(f"{str(key)!r} cannot be made an array: {_describe(error)}") from error
    return made


def _array(value: Any, element: str | None) -> np.ndarray:
    array = np.asarray(value)
    plain = isinstance(value, list | tuple | int | float | bool | str)
    if plain and element is not None and array.dtype != np.object_:
        return array.astype(element_named(element).dtype)
    return array


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a value of type {type(value).__name__}"


def _show(text: str) -> str:
    return text if text.isprintable() else ascii(text)
