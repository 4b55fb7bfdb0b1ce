"""Whether a device's libraries load what the compiler on the building machine writes.

Pure functions of a vendor's kit and its distributions, as provider files describe them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bundler.providers.knowledge import Toolkit


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """The distribution of a device's libraries, and their version of the kit; empty where unknown."""

    package: str
    version: str
    release: str


def find_libraries(toolkit: Toolkit, plugins: Mapping[str, str]) -> Libraries | None:
    """The distribution among `plugins` with the device's libraries; None if none has them."""
    for package, releases in toolkit.releases.items():
        if package in plugins:
            version = plugins[package]
            release = version if releases is None else releases.get(version, "")
            return Libraries(package=package, version=version, release=release)
    return None


def compiler_release(toolkit: Toolkit) -> str:
    """The compiler's version of the kit."""
    package, version = toolkit.compiler
    releases = toolkit.releases[package]
    return version if releases is None else releases[version]


def opens(toolkit: Toolkit, libraries: str, compiler: str) -> bool:
    """Whether libraries of one version of the kit load what a compiler of another wrote."""
    return _leading(libraries, toolkit.precision) >= _leading(compiler, toolkit.precision)


def explain_refusal(toolkit: Toolkit, plugins: Mapping[str, str]) -> tuple[str, str] | None:
    """The distribution whose libraries refuse what is compiled here, and why; None if none does."""
    libraries, compiler = find_libraries(toolkit, plugins), compiler_release(toolkit)
    if libraries is None or not libraries.release or opens(toolkit, libraries.release, compiler):
        return None
    written = f"{' '.join(toolkit.compiler)} ({toolkit.name} {compiler})"
    least = ".".join(str(number) for number in _leading(compiler, toolkit.precision))
    return libraries.package, (
        f"{libraries.package} {libraries.version} is of {toolkit.name} {libraries.release}, which refuses what a newer "
        f"compiler wrote, and models are compiled here with {written}; it needs {toolkit.name} {least} or newer"
    )


def _leading(version: str, count: int) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"[0-9]{1,9}", version)[:count])
