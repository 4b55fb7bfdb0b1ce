"""The cache: its place, the tag that marks it as bundler's, and its parts."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from bundler.execution.artifacts import ArtifactStore
from bundler.execution.overlay import is_readonly, open_over, remove_overlay
from bundler.execution.ownership import PRIVATE, make_private, others_access
from bundler.execution.records import RecordStore
from bundler.execution.remote import SHARED_PARTS, RemoteStore
from bundler.execution.scratch import Scratch
from bundler.execution.signing import read_key
from bundler.model.cache import CacheChoice
from bundler.model.errors import StageError, UsageError
from bundler.model.paths import check_path_text, user_path
from bundler.model.stage import Note
from bundler.support.disk import storage_error
from bundler.support.files import replace_whole

TAG_NAME = "CACHEDIR.TAG"
TAG = """Signature: 8a477f597d28d172789f06886806bc55
# This file is a cache directory tag created by bundler: backup programs skip the folder.
# `bundler cache clear` deletes a cache only if it bears this tag.
"""
"""The first line is fixed by the Cache Directory Tagging Specification."""

READONLY = "BUNDLER_CACHE_READONLY"

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
    "packages",
    "compressed",
    "proofs",
    "images",
    "bundles",
    "answers",
    "tmp",
)
"""The folders that a cache has."""


@dataclass(frozen=True, kw_only=True)
class Cache:
    """A local store, and the shared store `remote` behind it, if any. Close it to remove its scratch folder.

    For a read-only cache, `root` is a temporary cache over that in `behind`. `notes` are for the user; `say_notes`
    hands them over once.
    """

    root: Path
    remote: RemoteStore | None = None
    behind: Path | None = None
    notes: tuple[Note, ...] = ()
    artifacts: ArtifactStore = field(init=False)
    records: RecordStore = field(init=False)
    _guard: threading.Lock = field(init=False, default_factory=threading.Lock)
    _open: list[Scratch] = field(init=False, default_factory=list)
    _said: threading.Event = field(init=False, default_factory=threading.Event)

    def __post_init__(self) -> None:
        object.__setattr__(self, "artifacts", ArtifactStore(self.root))
        object.__setattr__(self, "records", RecordStore(self.root))

    @property
    def place(self) -> Path:
        """The folder of the user's cache."""
        return self.behind or self.root

    def say_notes(self, say: Callable[[Note], None]) -> None:
        """Hand each of the notes to `say`, the first time that this is called."""
        with self._guard:
            notes = () if self._said.is_set() else self.notes
            self._said.set()
        for note in notes:
            say(note)

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


def open_cache(choice: str | CacheChoice | None = None) -> Cache:
    """The cache in a folder of the user's own, or the default one with a shared store behind it: a URL (`s3://…`,
    `file:///…`), or a folder that others own or may write to.

    The default is BUNDLER_CACHE, or the user's cache folder. What is executed (environments, proofs, wheels) never
    comes from a shared store. Raises `UsageError` when the folder is not ours or cannot be made, and `StageError` when
    the disk is full.
    """
    choice = choice if isinstance(choice, CacheChoice) else CacheChoice(choice, _is_readonly_asked())
    asked = choice.place or os.environ.get("BUNDLER_CACHE") or ""
    if "://" in asked:
        return _behind_own(asked, choice, ())
    if not asked:
        return _open_at(*_own_default(), readonly=choice.readonly)
    root = user_path(asked).absolute()
    if root.is_dir() and (why := others_access(root)) is not None:
        _refuse_foreign(root, (*SHARED_PARTS, TAG_NAME))
        text = f"the folder {root} is used as a shared cache, and only its signed results are trusted: {why}"
        return _behind_own(root.as_uri(), choice, (Note(text=text, level="safety"),))
    return _open_at(root, readonly=choice.readonly)


def _open_at(
    root: Path, notes: tuple[Note, ...] = (), remote: RemoteStore | None = None, *, readonly: bool = False
) -> Cache:
    """The cache in a folder of the user; a temporary one over it if it is read-only."""
    if not readonly and not (is_ours(root) and is_readonly(root)):
        return Cache(root=_prepare(root), remote=remote, notes=notes)
    _refuse_foreign(root)
    try:
        folder, lock = open_over(root)
        _put_tag(folder)
    except OSError as error:
        raise _cannot_write(Path(tempfile.gettempdir()), error) from error
    text = f"the cache {root} is read-only: new results are kept for this run only"
    notes = (*notes, Note(text=text, level="warning"))
    cache = Cache(root=folder, remote=remote, behind=root, notes=notes)
    weakref.finalize(cache, remove_overlay, folder, lock)
    return cache


def _is_readonly_asked() -> bool:
    return os.environ.get(READONLY, "").lower() in {"1", "true", "yes", "on"}


def _behind_own(url: str, choice: CacheChoice, notes: tuple[Note, ...]) -> Cache:
    """The shared store at `url` behind the user's own cache: BUNDLER_CACHE when that is a folder, else the default."""
    remote = RemoteStore(url, read_key(), readonly=choice.readonly)
    notes = (*notes, *remote.notes)
    beside = os.environ.get("BUNDLER_CACHE") or ""
    root = user_path(beside).absolute()
    if beside and "://" not in beside and root.as_uri() != url and not (root.is_dir() and others_access(root)):
        return _open_at(root, notes, remote)
    own, warnings = _own_default()
    return _open_at(own, (*notes, *warnings), remote)


def _own_default() -> tuple[Path, tuple[Note, ...]]:
    """The user's cache folder, and a note if it was made private. Raises `UsageError` when it belongs to others."""
    root = default_root()
    if not root.is_dir():
        return root, ()
    why = others_access(root)
    made_private = make_private(root)
    if why is not None and not made_private:
        raise UsageError(
            f"the cache folder {root} may belong to others: {why}",
            hint="bundler executes code from the cache: name a private folder with --cache or BUNDLER_CACHE",
        )
    text = f"others could write to the cache {root}: it is now private to you"
    return root, (Note(text=text, level="safety"),) if why else ()


def default_root() -> Path:
    """The user's cache folder for bundler."""
    import platformdirs  # noqa: PLC0415 - needed only for the default

    return Path(platformdirs.user_cache_dir("bundler"))


def is_ours(root: Path) -> bool:
    """Whether `root` has bundler's tag."""
    try:
        return (root / TAG_NAME).read_text(encoding="utf-8") == TAG
    except (OSError, ValueError):
        return False


def _prepare(root: Path) -> Path:
    root = root.absolute()
    check_path_text(root, "the cache")
    if is_ours(root):
        return root
    try:
        _refuse_foreign(root)
        root.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        _put_tag(root)
    except OSError as error:
        raise _cannot_make(root, error) from error
    return root


def _cannot_make(root: Path, error: OSError) -> StageError | UsageError:
    return storage_error(error, "making the cache", root) or UsageError(
        f"the cache folder {root} cannot be made: {error.strerror}",
        hint="name a folder that you may write to with `--cache` or BUNDLER_CACHE, or set HOME or XDG_CACHE_HOME",
    )


def _refuse_foreign(root: Path, known: tuple[str, ...] = ()) -> None:
    # Asked in this order: another process may make the cache in the meantime.
    if root.exists() and _is_foreign(root, known) and not is_ours(root):
        raise UsageError(
            f"{root} is not a bundler cache, and it is not empty",
            hint="name an empty or new folder with `--cache`",
        )


def _is_foreign(root: Path, known: tuple[str, ...]) -> bool:
    if not root.is_dir():
        return True
    return any(path.name not in known and not path.name.startswith(f"{TAG_NAME}.") for path in root.iterdir())


def _put_tag(root: Path) -> None:
    """Atomically: to another process, a cache with a partial tag would not be bundler's."""
    draft = root / f"{TAG_NAME}.{os.getpid()}.{threading.get_ident()}"  # recognised as bundler's
    replace_whole(root / TAG_NAME, TAG.encode(), draft=draft)


def _open_scratch(root: Path) -> Scratch:
    try:
        return Scratch(root).__enter__()
    except OSError as error:
        raise _cannot_write(root, error) from error


def _cannot_write(root: Path, error: OSError) -> StageError:
    return storage_error(error, "writing to the cache", root) or StageError(
        f"cannot write to the cache in {root}: {error.strerror}",
        hint="check its permissions, or name another folder with `--cache` or BUNDLER_CACHE",
    )
