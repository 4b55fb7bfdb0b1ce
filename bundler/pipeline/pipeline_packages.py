"""Packages that the code of a pipeline requires: their lock, and the environment in which it is judged."""

from __future__ import annotations

from collections.abc import Sequence

from bundler.environments.lockfiles import Pin
from bundler.environments.registry import (
    RUNTIME,
    Environments,
    LockSource,
    PackagesBeside,
    PythonPackages,
    host_version,
    runtime_packages,
)
from bundler.model.digests import digest_json
from bundler.model.events import Reporter
from bundler.model.plan import HOST

_MAX_STEM = 40
"""Characters of the packages' names in the name of their lock."""


def list_pipeline_locks(requires: Sequence[str]) -> dict[str, LockSource]:
    """Where the locks come from that a pipeline with these requirements needs, by their names; none without any.

    The first has the runtime and what the requirements name, in one set of versions: an application has both. The
    second has the model format besides, which judging reads.
    """
    if not requires:
        return {}
    from bundler.emitters.python.wheelhouse import list_requirements, name_runtime_lock  # noqa: PLC0415 - few need it
    from bundler.profiles.schema import Runtime  # noqa: PLC0415

    runtime = Runtime(package=RUNTIME, version=host_version(RUNTIME) or "0")
    base, beside = name_runtime_lock(runtime), PythonPackages(list_requirements(runtime))
    packages = PackagesBeside(base=base, source=beside, requirements=tuple(requires))
    name = _name_lock(requires, base)
    tools = tuple(text for text in runtime_packages(runtime.version).requirements if text.partition("==")[0] == "onnx")
    return {name: packages, _name_judging(name, tools): PackagesBeside(base=name, source=packages, requirements=tools)}


def prepare_judging(requires: Sequence[str], environments: Environments, reporter: Reporter) -> None:
    """Lock what the environment of `name_judging` needs. Raises `EnvironmentMissingError`."""
    for name, source in list_pipeline_locks(requires).items():
        environments.lock_for(name, source, reporter)


def name_judging(requires: Sequence[str]) -> str:
    """The environment in which a pipeline with these requirements is judged: without any, bundler's own."""
    return next(reversed(list_pipeline_locks(requires)), HOST)


def find_added_pins(requires: Sequence[str], environments: Environments, reporter: Reporter) -> tuple[Pin, ...]:
    """What the requirements add to the packages of a runtime. Raises `EnvironmentMissingError`."""
    for name, source in list_pipeline_locks(requires).items():
        assert isinstance(source, PackagesBeside)  # noqa: S101 - as they are made above
        held = {pin.name for pin in environments.lock_for(source.base, source.source, reporter).pins}
        return tuple(pin for pin in environments.lock_for(name, source, reporter).pins if pin.name not in held)
    return ()


def _name_lock(requires: Sequence[str], base: str) -> str:
    """`pipeline-pillow-1a2b3c4d`: other requirements, or another runtime beside them, have another lock."""
    from packaging.requirements import Requirement  # noqa: PLC0415 - few projects have any
    from packaging.utils import canonicalize_name  # noqa: PLC0415

    stem = "-".join(canonicalize_name(Requirement(text).name) for text in requires)[:_MAX_STEM].strip("-")
    return f"pipeline-{stem}-{digest_json([list(requires), base])[:8]}"


def _name_judging(name: str, tools: Sequence[str]) -> str:
    return "-".join((name, "with", *(text.replace("==", "-") for text in tools)))
