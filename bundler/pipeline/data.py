"""Reads the arguments of --samples and --calibration as sources and options of the stage that prepares the data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from bundler.execution.cache import Cache
from bundler.execution.executor import Source
from bundler.execution.sources import digest_source
from bundler.model.errors import UsageError
from bundler.model.plan import HOST
from bundler.support.reads import announce_look
from bundler.support.text import visible

MEDIA: Final = "media"
"""The locked environment that decodes pictures and recordings and tokenizes texts."""
SYNTHETIC: Final = "synthetic"
DECLARATION: Final = "preprocessing.toml"

DataKind = Literal["samples", "images", "audio", "text", "python", "synthetic"]

_KINDS: Final[Mapping[str, DataKind]] = {"image": "images", "audio": "audio", "text": "text"}
_ENVIRONMENTS: Final[Mapping[DataKind, str]] = {"images": MEDIA, "audio": MEDIA, "text": MEDIA}
_SUFFIXES: Final = {
    "image": frozenset({".jpg", ".jpeg", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"}),
    "audio": frozenset({".wav", ".wave", ".flac", ".mp3", ".ogg", ".m4a"}),
    "text": frozenset({".txt", ".jsonl"}),
}
_FUNCTION: Final = re.compile(r"(?P<place>[^:]+(?::[\\/][^:]+)?):(?P<function>[^\W\d]\w*)")
_MODULE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_TAKES: Final = (
    "a folder of .npz files, of ONNX test_data_set_* folders, or of images, audio or texts with a "
    "preprocessing.toml; one .npz file; or a function as file.py:function"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataArgument:
    """What an argument means. `path` is hashed and given to the stage as `data` (None: there is no file), `tokenizer`
    as `tokenizer`. `options` are those of `prepare_data` that follow from the argument.
    """

    kind: DataKind
    path: Path | None = None
    tokenizer: Path | None = None
    preprocessing: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def environment(self) -> str:
        """The name of the environment in which the stage runs for this kind."""
        return _ENVIRONMENTS.get(self.kind, HOST)

    @property
    def volatile(self) -> bool:
        """Whether the result may differ although no file did: a function may read whatever it likes."""
        return self.kind == "python"

    @property
    def is_plain(self) -> bool:
        """Whether `record_golden` reads it as it is, without being prepared."""
        return self.kind == "samples"

    def inputs(self, role: str) -> dict[str, str]:
        """Inputs of the step that prepares it, from the stage's roles to the names of `sources(role, …)`."""
        return {
            **({"data": role} if self.path is not None else {}),
            **({"tokenizer": f"{role}/tokenizer"} if self.tokenizer is not None else {}),
        }

    def sources(self, role: str, cache: Cache) -> dict[str, Source]:
        """The user's files, hashed. Raises `UsageError` when one cannot be read."""
        named = ((role, self.path), (f"{role}/tokenizer", self.tokenizer))
        return {name: digest_source(path, (), cache) for name, path in named if path is not None}


def read_argument(text: str, preprocessing: Path | None = None, flag: str = "--samples") -> DataArgument:
    """What the argument of `flag` (an option, or a key of a project file) means. Raises `UsageError` for what is not
    there or cannot be taken.

    `preprocessing` is a declaration that the user named; it counts for pictures, recordings and texts.
    """
    if text == SYNTHETIC:
        return DataArgument(kind="synthetic", options={"kind": "synthetic"})
    path = Path(text)
    if not _exists(path):
        found = _find_function(text, flag)
        if found is not None:
            return found
        raise UsageError(f"there is no file or folder {visible(text)}", hint=f"{flag} takes {_TAKES}")
    if path.is_file() and path.suffix == ".py":
        raise UsageError(
            f"{visible(path.name)} is a Python file, and no function in it was named",
            hint=f"name the function that gives the samples: {flag} takes {visible(path.name)}:function",
        )
    return _read_files(path, preprocessing, flag)


def check_used(preprocessing: Path | None, arguments: Sequence[DataArgument]) -> None:
    """Raise `UsageError` when a declaration was named and no argument is of a kind that has one."""
    if preprocessing is not None and all(argument.preprocessing is None for argument in arguments):
        raise UsageError(
            f"the preprocessing {visible(str(preprocessing))} would have no effect",
            details=("it is for folders of images, audio or texts",),
            hint="remove it, or give such a folder as samples or for calibration",
        )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _find_function(text: str, flag: str) -> DataArgument | None:
    match = _FUNCTION.fullmatch(text)
    if match is None:
        return None
    place, function = match["place"], match["function"]
    if place.endswith(".py"):
        if not _exists(Path(place)):
            raise UsageError(f"there is no file {visible(place)}", hint=f"{flag} takes file.py:function")
        return _function(Path(place), function)
    if not _MODULE.fullmatch(place):
        return None
    return _function(_local_module(place), f"{place}:{function}")


def _function(path: Path | None, entry: str) -> DataArgument:
    return DataArgument(kind="python", path=path, options={"kind": "python", "entry": entry})


def _local_module(name: str) -> Path | None:
    """The module's file below the current folder; None when it must be an installed one."""
    place = Path.cwd().joinpath(*name.split("."))
    candidates = (place.with_name(f"{place.name}.py"), place / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _read_files(path: Path, preprocessing: Path | None, flag: str) -> DataArgument:
    plain = _is_plain(path)
    beside = path / DECLARATION if path.is_dir() else path.parent / DECLARATION
    announce_look(beside)
    declared = preprocessing or (beside if beside.is_file() else None)
    if plain and not (path.is_dir() and beside.is_file()):
        return DataArgument(kind="samples", path=path, options={"kind": "samples"})
    if plain:
        raise UsageError(
            f"{visible(path.name)} holds samples and a {DECLARATION}, which is for images, audio or texts",
            hint="give two folders, or remove one of the two",
        )
    if declared is None:
        raise _undeclared(path, flag)
    return _media(path, declared)


def _is_plain(path: Path) -> bool:
    if path.is_file():
        return path.suffix == ".npz"
    if re.fullmatch(r"test_data_set_\d+", path.name):
        return True
    return any(path.glob("*.npz")) or any(path.glob("test_data_set_*"))


def _media(path: Path, declared: Path) -> DataArgument:
    from bundler.profiles.preprocessing import read_preprocessing  # noqa: PLC0415 - pydantic, for those who need it

    found = read_preprocessing(declared)
    kind = _KINDS[found.declaration.kind]
    return DataArgument(
        kind=kind,
        path=path,
        tokenizer=found.tokenizer,
        preprocessing=declared,
        options={"kind": kind, "preprocessing": dict(found.options)},
    )


def _undeclared(path: Path, flag: str) -> UsageError:
    """Media without a declaration: the error shows a minimal one."""
    names = [item.suffix.lower() for item in path.rglob("*") if item.is_file()] if path.is_dir() else [path.suffix]
    counts = {kind: sum(name in suffixes for name in names) for kind, suffixes in _SUFFIXES.items()}
    kind = max(counts, key=lambda name: counts[name])
    if not counts[kind]:
        what = "is empty" if path.is_dir() and not names else "holds no supported data"
        named = "np.savez('samples.npz', NAME=array) says which input an array is for; " if ".npy" in names else ""
        return UsageError(f"{visible(path.name)} {what}", hint=f"{named}{flag} takes {_TAKES}")
    from bundler.profiles.preprocessing import starter_lines  # noqa: PLC0415 - as above

    return UsageError(
        f"{visible(path.name)} holds {kind} data, but no preprocessing for the model is declared",
        details=("for example:", *starter_lines(kind)),
        hint=f"write this into {DECLARATION} in the folder, or into a file named by --preprocessing; "
        "docs/preprocessing.md lists every key",
    )
