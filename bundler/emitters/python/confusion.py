"""Checks whether another package already has the name: an installer that asks an index would get that one."""

from __future__ import annotations

from pathlib import Path

from bundler.emitters.python.names import PackageNames
from bundler.environments.registry import host_version

KNOWN = Path(__file__).with_name("known_distributions.txt")


def warn_of(names: PackageNames) -> tuple[str, ...]:
    """A sentence where the distribution's name is known to belong to another package; no index is asked."""
    if not is_known(names.distribution):
        return ()
    warning = (
        f"the package name {names.distribution} belongs to another, widely known package: an installer that asks an "
        "index for it gets that package, and installed side by side each overwrites the other; choose another name "
        f"with --package-name (for instance acme-{names.distribution})"
    )
    return (warning,)


def is_known(distribution: str) -> bool:
    """Whether it is the name of a widely used distribution, or of one that is installed beside bundler."""
    lines = KNOWN.read_text("utf-8").splitlines()
    return distribution in lines or host_version(distribution) is not None
