"""Which of the distributions that a target ships has a provider, and what to say where none has.

Pure functions over what provider files say; platforms are `system/architecture` (`linux/x64`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bundler.providers.knowledge import Availability, ProviderKnowledge

OWN_BUILD = "with a custom build of ONNX Runtime that has it, build with --set runtime.custom_build=true"
_OPERATORS = (">=", "<=", "===", "==", "!=", "~=", ">", "<")
_NAMES = {">=": "least", "<=": "most", "==": "only", "<": "below"}
_WORDS: Mapping[tuple[str, ...], str] = {
    (">=",): "{least} and later",
    ("<=",): "up to {most}",
    ("<",): "before {below}",
    ("==",): "{only}",
    ("<=", ">="): "{least} to {most}",
    ("<", ">="): "{least} and later, before {below}",
}


def find_carrier(  # noqa: PLR0917 - the runtime as a profile spells it: name, version, plugins; then the platform
    knowledge: ProviderKnowledge,
    package: str,
    version: str,
    plugins: Mapping[str, str],
    system: str,
    architecture: str,
) -> Availability | None:
    """The shipped distribution that has the provider on this platform, a plugin before the runtime; None without one.

    `package` and `version` are the runtime's, `plugins` those beside it with their versions.
    """
    rows = sorted(knowledge.presence.availability, key=lambda row: not row.is_plugin)
    fitting = (row for row in rows if _is_for(row, system, architecture) and _ships(row, package, version, plugins))
    return next(fitting, None)


def explain_absence(  # noqa: PLR0917 - as above
    knowledge: ProviderKnowledge,
    package: str,
    version: str,
    plugins: Mapping[str, str],
    system: str,
    architecture: str,
) -> tuple[str, str]:
    """Why what is shipped lacks the provider and where it exists, as a sentence; and what to do, as a hint."""
    beside = "".join(f" and {name} {plugins[name]}" for name in sorted(plugins))
    here = [row for row in knowledge.presence.availability if _is_for(row, system, architecture)]
    where = _describe_where(knowledge, here, f"{system}/{architecture}")
    return f"{knowledge.title} is not in {package} {version}{beside}; {where}", _suggest(
        knowledge, here, package, plugins
    )


def describe_row(row: Availability) -> str:
    """The distribution with its versions, and what a plugin stands beside: `onnxruntime-cann 1.22.1 to 1.24.4`."""
    name = f"{row.package} {describe_versions(row.versions)}".rstrip()
    if not row.is_plugin:
        return name
    beside = f"onnxruntime {describe_versions(row.runtime_versions)}".rstrip()
    return f"the plugin {name} (with {beside})"


def describe_versions(specifier: str) -> str:
    """A version specifier in words; as it is written where it is no plain range."""
    bounds = {_operator(part): part.strip()[len(_operator(part)) :].strip() for part in specifier.split(",") if part}
    words = _WORDS.get(tuple(sorted(bounds)))
    return specifier if words is None else words.format(**{_NAMES[key]: value for key, value in bounds.items()})


def _operator(part: str) -> str:
    return next((operator for operator in _OPERATORS if part.strip().startswith(operator)), "")


def _is_for(row: Availability, system: str, architecture: str) -> bool:
    return not row.platforms or f"{system}/{architecture}" in row.platforms


def _ships(row: Availability, package: str, version: str, plugins: Mapping[str, str]) -> bool:
    if not row.is_plugin:
        return _same(row.package, package) and is_in_range(version, row.versions)
    found = next((plugins[name] for name in plugins if _same(row.package, name)), None)
    return found is not None and is_in_range(found, row.versions) and is_in_range(version, row.runtime_versions)


def _same(first: str, second: str) -> bool:
    return first.lower().replace("_", "-") == second.lower().replace("_", "-")


def is_in_range(version: str, specifier: str) -> bool:
    """Whether a version is one of these. One that is none (of the user's own making) is in no narrowed range."""
    if not specifier:
        return True
    # Nothing else needs the package when bundler starts.
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415

    try:
        return SpecifierSet(specifier).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False


def _describe_where(knowledge: ProviderKnowledge, here: Sequence[Availability], platform: str) -> str:
    if here:
        return f"{_join([describe_row(row) for row in here])} {_have(here)} it on {platform}"
    if present := knowledge.presence.availability:
        return f"nothing has it on {platform}, but {_join([_describe_elsewhere(row) for row in present])}"
    return knowledge.presence.gone.rstrip(".") or "no published runtime has it"


def _describe_elsewhere(row: Availability) -> str:
    return f"{describe_row(row)} on {_join(row.platforms)}"


def _have(rows: Sequence[Availability]) -> str:
    return "has" if len(rows) == 1 else "have"


def _join(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _suggest(
    knowledge: ProviderKnowledge, here: Sequence[Availability], package: str, plugins: Mapping[str, str]
) -> str:
    """What replaces it, where the provider file says so; otherwise how a profile enables it, or its custom build."""
    if knowledge.presence.instead:
        return f"instead: {knowledge.presence.instead.rstrip('.')}"
    plugin = next((row for row in here if row.is_plugin), None)
    if plugin is not None and any(
        _same(name, plugin.package) and is_in_range(plugins[name], plugin.versions) for name in plugins
    ):
        return f"set `runtime.version` (versions: {_words(plugin.runtime_versions)})"
    if plugin is not None:
        return f'put a version of "{plugin.package}" under `runtime.plugins` (versions: {_words(plugin.versions)})'
    runtime = here[0] if here else None
    if runtime is not None:
        what = "`runtime.version`" if _same(runtime.package, package) else f'`runtime.package = "{runtime.package}"`'
        return f"set {what} (versions: {_words(runtime.versions)})"
    return OWN_BUILD


def _words(specifier: str) -> str:
    return describe_versions(specifier) or "all"
