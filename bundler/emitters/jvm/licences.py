"""The licences of what a bundle for the JVM brings: Maven's artifacts state them in their POMs, and carry no text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bundler.emitters.contract import EmitRequest
from bundler.emitters.jvm.artifacts import RUNTIME
from bundler.environments.lockfiles import Lock
from bundler.environments.packages import find_package
from bundler.model.digests import digest_file
from bundler.model.errors import EnvironmentMissingError
from bundler.model.proof import Dependency

_TEXTS: Final = ("LICENSE", "ThirdPartyNotices.txt")


def describe_artifacts(
    request: EmitRequest, lock: Lock, folder: Path, files: Mapping[str, str]
) -> tuple[Dependency, ...]:
    """Each artifact as a component, with its place in the bundle's `folder`.

    Raises `EnvironmentMissingError` when the runtime's licence, which must travel with it, is not found.
    """
    found = []
    for pin in lock.pins:
        group, name, *_ = pin.name.split(":")
        is_runtime = pin.name == RUNTIME
        found.append(
            Dependency(
                name=name,
                version=pin.version,
                licence="MIT" if is_runtime else "Apache-2.0",
                licence_text=_read_runtime_licence(request) if is_runtime else "",
                purl=f"pkg:maven/{group}/{name}@{pin.version}",
                sha256=digest_file(folder / files[pin.name]) if is_runtime else pin.hashes[0],
                file=files[pin.name],
            )
        )
    return tuple(found)


def _read_runtime_licence(request: EmitRequest) -> str:
    """From the Python package of the same version, which is built from the same sources and carries both texts."""
    runtime = request.profile.runtime
    environment = request.environments.resolve(
        f"{runtime.optimizer}=={runtime.version}", (runtime.optimizer,), request.reporter
    )
    folder = find_package(environment, runtime.optimizer)
    missing = [name for name in _TEXTS if not (folder / name).is_file()]
    if missing:
        raise EnvironmentMissingError(
            f"{runtime.optimizer} {runtime.version} lacks {missing[0]}, which must be distributed with the runtime",
            details=(str(folder),),
            hint="clear the cache and build again",
        )
    return "\n\n".join(f"{name}:\n\n{(folder / name).read_text('utf-8', 'replace').strip()}" for name in _TEXTS)
