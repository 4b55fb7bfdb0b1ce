"""The cache: where it stands, what marks it as ours, and what it is made of."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from bundler.execution.artifacts import ArtifactStore
from bundler.execution.disk import disk_full_error, is_disk_full
from bundler.execution.records import RecordStore
from bundler.execution.remote import RemoteStore
from bundler.execution.scratch import Scratch
from bundler.model.errors import StageError, UsageError

TAG_NAME = "CACHEDIR.TAG"
TAG = """Signature: 8a477f597d28d172789f06886806bc55
# This file is a cache directory tag created by bundler: backup programs skip the folder.
# `bundler cache clear` deletes a cache only if it bears this tag.
"""
"""The first line is fixed by the Cache Directory Tagging Specification."""

PARTS = (
    "artifacts",
    "records",
    "sources",
    "history",
    "journal",
    "logs",
    "locks",
    "environments",
    "locked",
    "wheels",
    "npm",
    "compressed",
    "proofs",
    "images",
    "bundles",
    "tmp",
)
"""The folders that a cache has."""


@dataclass(frozen=True, kw_only=True)
class Cache:
    """A local store, with a shared one behind it when `remote` is there. Close it to remove its scratch folder."""

    root: Path
    remote: RemoteStore | None = None
    artifacts: ArtifactStore = field(init=False)
    records: RecordStore = field(init=False)
    _guard: threading.Lock = field(init=False, default_factory=threading.Lock)
    _open: list[Scratch] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "artifacts", ArtifactStore(self.root))
        object.__setattr__(self, "records", RecordStore(self.root))

    @property
    def scratch(self) -> Scratch:
        """The temporary folder of this process; made on first use. Raises `StageError` when it cannot be made."""
        with self._guard:
            if not self._open:
                self._open.append(_open_scratch(self.root))
            return self._open[0]

    def close(self) -> None:
        """Remove the scratch folder. The cache may be used again afterwards."""
        with self._guard:
            while self._open:
                self._open.pop().__exit__()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_cache(url_or_path: str | None = None) -> Cache:
    """The cache at a path, or the default one with the shared store at a URL (`s3://…`, `file:///…`) behind it.

    The default is BUNDLER_CACHE, or the user's cache folder. Raises `UsageError` when the folder is not ours, and
    `StageError` when it cannot be made.
    """
    asked = url_or_path or os.environ.get("BUNDLER_CACHE") or ""
    if "://" in asked:
        beside = os.environ.get("BUNDLER_CACHE") or ""
        root = Path(beside) if beside and "://" not in beside else default_root()
        return Cache(root=_prepare(root), remote=RemoteStore(asked))
    return Cache(root=_prepare(Path(asked) if asked else default_root()))


def default_root() -> Path:
    """The user's cache folder for bundler."""
    import platformdirs  # noqa: PLC0415 - needed only when nobody names a place

    return Path(platformdirs.user_cache_dir("bundler"))


def is_ours(root: Path) -> bool:
    """Whether `root` bears our tag."""
    try:
        return (root / TAG_NAME).read_text(encoding="utf-8") == TAG
    except (OSError, ValueError):
        return False


def _prepare(root: Path) -> Path:
    root = root.expanduser().absolute()
    if is_ours(root):
        return root
    try:
        if root.exists() and _is_foreign(root) and not is_ours(root):  # another process may have made it meanwhile
            raise UsageError(
                f"{root} is not a bundler cache, and it is not empty",
                hint="name an empty or a new folder, or take the default by leaving `--cache` away",
            )
        root.mkdir(parents=True, exist_ok=True)
        _put_tag(root)
    except OSError as error:
        raise _cannot_write(root, error) from error
    return root


def _is_foreign(root: Path) -> bool:
    return not root.is_dir() or any(not path.name.startswith(f"{TAG_NAME}.") for path in root.iterdir())


def _put_tag(root: Path) -> None:
    """Whole or not at all: a tag half written would make the cache somebody else's for a second process."""
    partial = root / f"{TAG_NAME}.{os.getpid()}.{threading.get_ident()}"
    partial.write_text(TAG, encoding="utf-8")
    partial.replace(root / TAG_NAME)


def _open_scratch(root: Path) -> Scratch:
    try:
        return Scratch(root).__enter__()
    except OSError as error:
        raise _cannot_write(root, error) from error


def _cannot_write(root: Path, error: OSError) -> StageError:
    if is_disk_full(error, root):
        return disk_full_error("writing to the cache", root)
    return StageError(
        f"cannot write to the cache in {root}: {error.strerror}",
        hint="check its permissions, or name another folder with `--cache` or BUNDLER_CACHE",
    )
