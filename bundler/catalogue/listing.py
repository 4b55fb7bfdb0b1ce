"""What a list of targets shows. Read without the schema, so that a list is instant; `validate` checks the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bundler.model.errors import ProfileError, UsageError
from bundler.profiles.chain import Layered, load_chain, shorten
from bundler.profiles.locations import find_catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One target in a list. `problem` is why its file could not be read; then only `id` and `file` are set."""

    id: str
    title: str = ""
    group: str = ""
    system: str = ""
    architecture: str = ""
    providers: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    cautions: Mapping[str, str] = field(default_factory=dict)
    serves: Mapping[str, str] = field(default_factory=dict)
    refuses: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSummary:
    """One precision method in a list. `tried`: whether an automatic choice tries it, for the target or for any."""

    name: str
    title: str
    loss: str
    needs_calibration: bool
    tried: bool


def list_methods(target: str | None = None) -> tuple[MethodSummary, ...]:
    """The precision methods that the first providers of a target's variants support; all without a target.

    Raises `UsageError` for an unknown target.
    """
    from bundler.profiles.methods import METHODS  # noqa: PLC0415 - a list of targets needs no methods

    taken, tried = _methods_of(target)
    return tuple(
        MethodSummary(
            name=row.name,
            title=row.title,
            loss=row.loss,
            needs_calibration=row.needs_calibration,
            tried=row.name in tried,
        )
        for row in METHODS.values()
        if target is None or row.name in taken
    )


def _methods_of(target: str | None) -> tuple[set[str], set[str]]:
    """The supported methods, and those that an automatic choice tries."""
    from bundler.profiles.methods import METHODS  # noqa: PLC0415 - as above
    from bundler.providers.registry import find_provider, provider_names  # noqa: PLC0415

    if target is None:
        known = [find_provider(name) for name in provider_names()]
        return {*METHODS}, {name for provider in known for name in provider.numerics.tries}
    from bundler.profiles.resolve import resolve_target  # noqa: PLC0415 - loads the schema

    profile = resolve_target(target)
    firsts = [find_provider(variant.providers[0].name) for variant in profile.variants]
    taken = {name for provider in firsts for name in provider.numerics.precisions}
    return taken, {*profile.precision.order} or {name for provider in firsts for name in provider.numerics.tries}


def list_targets() -> tuple[Summary, ...]:
    """All registered targets, sorted by group and name. One that cannot be read is listed with its problem."""
    found = [_summarize(name) for name in find_catalogue().targets]
    return tuple(sorted(found, key=lambda summary: (summary.group, summary.id)))


def filter_group(targets: Sequence[Summary], group: str) -> tuple[Summary, ...]:
    """The targets of groups with `group` in their heading, whatever its case. Raises `UsageError` for none."""
    kept = tuple(target for target in targets if group.casefold() in target.group.casefold())
    if targets and not kept:
        groups = dict.fromkeys(target.group for target in targets)
        raise UsageError(f"no group of targets matches {shorten(group)}", hint=f"the groups are {', '.join(groups)}")
    return kept


def _summarize(name: str) -> Summary:
    path = find_catalogue().targets[name]
    try:
        layered = load_chain(path)
    except ProfileError as error:
        return Summary(id=name, group="Not readable", file=str(path), problem=error.message)
    platform = _table(layered.data.get("platform"))
    return Summary(
        id=name,
        title=str(layered.data.get("title", "")),
        group=str(layered.data.get("group", "")),
        system=str(platform.get("system", "")),
        architecture=str(platform.get("architecture", "")),
        providers=_providers(layered),
        aliases=_texts(layered.data.get("aliases")),
        cautions=_sentences(layered.data.get("cautions")),
        serves=_sentences(layered.data.get("serves")),
        refuses=_sentences(layered.data.get("refuses")),
        file=layered.files[0],
    )


def _providers(layered: Layered) -> tuple[str, ...]:
    """Names of all providers of all variants, each once, the preferred one first."""
    names: dict[str, None] = {}
    for variant in _tables(layered.data.get("variants")):
        for provider in _tables(variant.get("providers")):
            names.setdefault(str(provider.get("name", "")))
    return tuple(names)


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list | tuple) else ()


def _sentences(value: Any) -> dict[str, str]:
    return {name: text for name, text in _table(value).items() if isinstance(text, str)}
