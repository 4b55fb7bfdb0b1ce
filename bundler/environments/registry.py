"""Tool environments by name: `host`, `onnxruntime==X.Y.Z`, or a lock that ships with bundler."""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from bundler.model.events import Listener, ignore
from bundler.model.plan import HOST

RUNTIME_PREFIX = "onnxruntime=="


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where a stage runs. `versions` are those of the packages that were asked for (of all its packages, when it was
    made by us); `digest` is that of its lock, empty for the host; `python_version` is `3.11`.
    """

    name: str
    python: Path
    versions: Mapping[str, str]
    digest: str
    python_version: str

    @property
    def is_host(self) -> bool:
        """Whether it is the interpreter that bundler itself runs in."""
        return self.name == HOST


class Environments:
    """Resolves names, making environments below the cache root when they are first needed."""

    def __init__(self, cache_root: Path) -> None:
        self._root = cache_root

    def resolve(
        self, name: str, packages: Sequence[str] = (), listener: Listener = ignore, build: str = ""
    ) -> Environment:
        """The environment, ready to use. Raises `EnvironmentMissingError` when it is not here and cannot be made."""
        del listener, build
        return self.describe(name, packages)

    def describe(self, name: str, packages: Sequence[str] = ()) -> Environment:
        """The environment as `resolve` would give it, without making it: its interpreter may not be there yet."""
        del name
        return host_environment(tuple(packages))


@functools.cache
def host_environment(packages: tuple[str, ...]) -> Environment:
    """The interpreter that bundler is installed in, with the versions of `packages` (those that are installed)."""
    return Environment(
        name=HOST,
        python=Path(sys.executable),
        versions={name: found for name in packages if (found := host_version(name))},
        digest="",
        python_version=".".join(platform.python_version_tuple()[:2]),
    )


@functools.cache
def host_version(package: str) -> str | None:
    """The version of a distribution beside bundler, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
