"""The licence of the vendored runtime. Its npm package states it but carries no text; the Python one of the same
version, which is built from the same sources, has both the licence and the notices of what is compiled in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from bundler.emitters.contract import EmitRequest
from bundler.emitters.web.vendor import VENDOR, find_lock
from bundler.environments.packages import find_package
from bundler.model.artifacts import record_folder
from bundler.model.errors import EnvironmentMissingError
from bundler.model.proof import Dependency

LICENCE = "MIT"
_TEXTS = ("LICENSE", "ThirdPartyNotices.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class LicenceFile:
    """One text that travels with the runtime. `path` is relative to the bundle."""

    path: str
    source: Path


def find_licences(request: EmitRequest) -> tuple[LicenceFile, ...]:
    """The texts, from the environment in which models for this runtime are optimised.

    Raises `EnvironmentMissingError` when that lacks them.
    """
    runtime = request.profile.runtime
    environment = request.environments.resolve(
        f"{runtime.optimizer}=={runtime.version}", (runtime.optimizer,), request.reporter
    )
    folder = find_package(environment, runtime.optimizer)
    missing = [name for name in _TEXTS if not (folder / name).is_file()]
    if missing:
        raise EnvironmentMissingError(
            f"{runtime.optimizer} {runtime.version} lacks {missing[0]}, "
            f"which must be distributed with {runtime.package}",
            details=(str(folder),),
            hint="clear the cache and build again",
        )
    return tuple(LicenceFile(path=f"{VENDOR}/{name}", source=folder / name) for name in _TEXTS)


def describe_runtime(
    request: EmitRequest, licences: tuple[LicenceFile, ...], project: Path, packed: str = ""
) -> Dependency:
    """The runtime as a component with the files that it has in the written `project`; `packed` begins their names where
    that lies in an archive. Its digest is that of its package.
    """
    pin = find_lock(request).pins[0]
    texts = (f"{licence.path}:\n\n{licence.source.read_text('utf-8', 'replace').strip()}" for licence in licences)
    return Dependency(
        name=pin.name,
        version=pin.version,
        licence=LICENCE,
        licence_text="\n\n".join(texts),
        purl=f"pkg:npm/{pin.name}@{pin.version}",
        sha256=pin.hashes[0],
        file=None,
        files=tuple(
            replace(record, path=f"{packed}{VENDOR}/{record.path}") for record in record_folder(project / VENDOR).files
        ),
    )
