"""Which distribution of the runtime has a provider, and what to say where none does."""

from __future__ import annotations

from collections.abc import Mapping

from bundler.providers.knowledge import Availability, ProviderKnowledge


def find_carrier(
    knowledge: ProviderKnowledge,
    package: str,
    version: str,
    plugins: Mapping[str, str],
    system: str,
    architecture: str,
) -> Availability | None:
    """The distribution that carries the provider where `package` of `version` is shipped with `plugins` beside it."""
    for row in knowledge.availability:
        shipped = plugins.get(row.package) if row.is_plugin else version if row.package == package else None
        if shipped is None or not _fits(row.versions, shipped):
            continue
        if row.is_plugin and not _fits(row.runtime_versions, version):
            continue
        if not row.platforms or f"{system}/{architecture}" in row.platforms:
            return row
    return None


def explain_absence(
    knowledge: ProviderKnowledge,
    package: str,
    version: str,
    plugins: Mapping[str, str],
    system: str,
    architecture: str,
) -> tuple[str, str]:
    """Why the provider is not there, and what to do about it."""
    shipped = " and ".join([f"{package} {version}", *(f"{name} {own}" for name, own in plugins.items())])
    why = f"{knowledge.title} is not in {shipped} on {system}/{architecture}"
    return why, knowledge.instead


def _fits(specifier: str, version: str) -> bool:
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415 - costs more than a list of targets

    return SpecifierSet(specifier).contains(version, prereleases=True)
