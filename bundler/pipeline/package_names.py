"""What the packages of builds are called, and which of them would be one package in an index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bundler.emitters.contract import Identity, Indexed
from bundler.emitters.registry import find_writer
from bundler.model.errors import BundlerError
from bundler.model.stage import Note
from bundler.pipeline.requests import BuildRequest, bundle_name, decision_key, profile_overrides
from bundler.profiles.resolve import resolve_target
from bundler.profiles.schema import TargetProfile

_NO_NAME = "model"
"""What exporters call a file."""


def identify_package(request: BuildRequest, name: str, profile: TargetProfile) -> tuple[str | None, Identity]:
    """The name that the user gave, as it is for this bundle and target, and the package. Raises `UsageError`."""
    asked = request.package_name
    if asked is not None:
        asked = asked.replace("{model}", name).replace("{target}", profile.id)
    emitter = find_writer(profile.bundle.ecosystem, request.format or profile.bundle.format)
    return asked, emitter.identify(name, asked, request.version)


def warn_of_no_name(request: BuildRequest, name: str, identity: Identity) -> tuple[str, ...]:
    """A sentence where a package has the name that a model's file has when nobody gave it one."""
    if identity.name is None or request.name or request.package_name or name.lower() != _NO_NAME:
        return ()
    named = f'name = "NAME" in {request.project}' if request.project else "--name NAME"
    alone = 'package_name = "NAME"' if request.project else "--package-name NAME"
    text = f"the package is called {name}, like its file; {named} renames bundle and package, {alone} only the package"
    return (text,)


def warn_of_same_packages(requests: Sequence[BuildRequest]) -> Iterator[Note]:
    """A warning for each package that several of `requests` make for one platform: an index takes one of them."""
    found: dict[str, list[str]] = {}
    for request in requests if len(requests) > 1 else ():
        try:
            profile = resolve_target(request.target, profile_overrides(request))
            package = _describe_package(request, profile)
        except BundlerError:  # its own build says so
            continue
        found.setdefault(package, []).append(decision_key(bundle_name(request), profile.id))
    for package, bundles in found.items():
        if package and len(bundles) > 1:
            text = (
                f"{' and '.join(bundles)} are each {package}, and an index accepts only one; {_name_apart(requests[0])}"
            )
            yield Note(text=text, level="warning")


def _describe_package(request: BuildRequest, profile: TargetProfile) -> str:
    """`the wheel mlp 1.0.0 for linux x64`; empty for what no index takes."""
    chosen = request.format or profile.bundle.format
    writer = find_writer(profile.bundle.ecosystem, chosen)
    if not isinstance(writer, Indexed) or writer.indexed != chosen:
        return ""
    identity = identify_package(request, bundle_name(request), profile)[1]
    platform = f"{profile.platform.system} {profile.platform.architecture}"
    return f"the {chosen} {identity.name} {identity.version} for {platform}"


def _name_apart(request: BuildRequest) -> str:
    template = "{model}-{target}"
    if request.project:
        return f'write package_name = "{template}" in {request.project}, in the table of the model'
    return f"give them different names with --package-name '{template}'"
