"""What is vendored of ONNX Runtime for the web: which files each of its builds is made of, and where they come from."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

from bundler.emitters.contract import EmitRequest
from bundler.emitters.web.npm import NpmPackage, fetch_files, name_lock
from bundler.emitters.web.npm_store import PackageFile
from bundler.environments.lockfiles import Lock
from bundler.model.errors import DefectError
from bundler.model.runtime import RuntimeConfig
from bundler.profiles.schema import Runtime
from bundler.providers.knowledge import RuntimeBuild
from bundler.providers.registry import find_provider, provider_names

VENDOR = "vendor"
_SOURCE = "dist"


@functools.cache
def list_builds() -> Mapping[str, RuntimeBuild]:
    """The forms of the runtime that providers name, with their JavaScript in one module: one request less, and threads
    find their script, the module itself.
    """
    found = {build.name: build for name in provider_names() for build in find_provider(name).presence.builds}
    return MappingProxyType(found)


def choose_builds(config: RuntimeConfig) -> dict[str, RuntimeBuild]:
    """The builds that the variants name, in that order, and no others. Raises `DefectError` for an unknown one."""
    names = dict.fromkeys(build for _, variant in config.pairs for build in variant.builds)
    known = list_builds()
    unknown = [name for name in names if name not in known]
    idle = [config.label(component.name, variant.name) for component, variant in config.pairs if not variant.builds]
    if unknown or idle:
        raise DefectError(f"no build of the web runtime is known for {', '.join((*unknown, *idle))}")
    return {name: known[name] for name in names}


def fetch_builds(request: EmitRequest, builds: Mapping[str, RuntimeBuild]) -> tuple[PackageFile, ...]:
    """The files of `builds`. Raises `EnvironmentMissingError` when they are neither cached nor available."""
    names = [f"{_SOURCE}/{name}" for build in builds.values() for name in (build.module, build.binary)]
    return fetch_files(find_lock(request), names, request.environments, request.reporter)


def find_lock(request: EmitRequest) -> Lock:
    """The lock of the runtime's package."""
    ((name, source),) = runtime_lock(request.profile.runtime).items()
    return request.environments.lock_for(name, source, request.reporter)


def runtime_lock(runtime: Runtime) -> dict[str, NpmPackage]:
    """The name of that lock, with what is asked for it where there is none yet."""
    return {name_lock(runtime.package, runtime.version): NpmPackage(name=runtime.package, version=runtime.version)}
