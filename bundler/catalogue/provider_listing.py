"""What a list of execution providers shows. Pure: read from the provider files, without a runtime or a profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bundler.model.errors import UsageError
from bundler.model.requirements import Need, describe_need
from bundler.providers.knowledge import SIZES, Availability, NeedRule, OptionRule, ProviderKnowledge
from bundler.providers.registry import describe_unknown, find_provider, provider_names
from bundler.providers.values import expected

Work = Literal["before shipping", "on the device", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One distribution that has a provider. `beside` names the runtimes that a plugin works with."""

    package: str
    versions: str
    platforms: tuple[str, ...]
    plugin: bool
    beside: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSummary:
    """One option for people. `decided` says what sets it if a profile must not."""

    key: str
    values: str
    default: str
    meaning: str
    decided: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSummary:
    """One provider in a list. `work` is where models are prepared for it, `prepared` the same in words; `thing` is
    what is generated on the device. `published` is false if only a custom build of ONNX Runtime has it.
    """

    name: str
    runtime_name: str
    title: str
    published: bool
    places: tuple[Place, ...]
    work: Work
    prepared: str
    thing: str
    gone: str
    instead: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderDetails:
    """All that is known of one provider."""

    summary: ProviderSummary
    options: tuple[OptionSummary, ...]
    compile_options: tuple[OptionSummary, ...]
    replaced: Mapping[str, str]
    precisions: tuple[str, ...]
    tries: tuple[str, ...]
    sizes: tuple[str, ...]
    needs: tuple[str, ...]
    proofs: tuple[str, ...]
    executes: bool
    cache_option: str


def _describe_sizes(known: ProviderKnowledge) -> tuple[str, ...]:
    return tuple(f"{SIZES[rule.sizes]}{_describe_when(rule.when)}" for rule in known.graph.free_sizes)


def _describe_need(rule: NeedRule) -> str:
    need = Need(what=rule.what, version=rule.version, check=rule.check)
    where = f" on {' and '.join(rule.systems)}" if rule.systems else ""
    runtime = f" for runtimes {rule.runtime_versions}" if rule.runtime_versions else ""
    return f"{describe_need(need)}{where}{runtime}{_describe_when(rule.when)}"


def _describe_when(when: Mapping[str, str]) -> str:
    texts = " and ".join(f"{key} is {pattern}" if pattern else f"{key} is not set" for key, pattern in when.items())
    return f", where {texts}" if texts else ""


def list_providers() -> tuple[ProviderSummary, ...]:
    """All registered providers, sorted by name."""
    return tuple(summarize_provider(find_provider(name)) for name in provider_names())


def describe_provider(name: str) -> ProviderDetails:
    """All of one provider, by its short name or the runtime's. Raises `UsageError` for an unknown one."""
    short = _short_name(name)
    if short not in provider_names():
        raise UsageError(describe_unknown(name), hint="`bundler targets providers` lists them")
    known = find_provider(short)
    compiler, deferral = known.compiler, known.deferral
    return ProviderDetails(
        summary=summarize_provider(known),
        options=_summarize_options(known.options.rules),
        compile_options=_summarize_options(compiler.options if compiler else ()),
        replaced=dict(known.options.replaced),
        precisions=known.numerics.precisions,
        tries=known.numerics.tries,
        sizes=_describe_sizes(known),
        needs=tuple(_describe_need(rule) for rule in known.presence.needs),
        proofs=known.graph.proofs,
        executes=compiler is not None and compiler.executes,
        cache_option=deferral.folder_option if deferral else "",
    )


def summarize_provider(known: ProviderKnowledge) -> ProviderSummary:
    """One provider's line of the list."""
    work, prepared = _describe_work(known)
    places = tuple(_place(row) for row in known.presence.availability)
    return ProviderSummary(
        name=known.name,
        runtime_name=known.runtime_name,
        title=known.title,
        published=bool(places) or not known.presence.gone,
        places=places or _own_place(known),
        work=work,
        prepared=prepared,
        thing=known.deferral.thing if known.deferral else "",
        gone=known.presence.gone,
        instead=known.presence.instead,
    )


def _short_name(name: str) -> str:
    owners = (short for short in provider_names() if find_provider(short).runtime_name == name)
    return next(owners, name)


def _place(row: Availability) -> Place:
    return Place(
        package=row.package,
        versions=row.versions,
        platforms=row.platforms,
        plugin=row.is_plugin,
        beside=f"onnxruntime {row.runtime_versions}".strip() if row.is_plugin else "",
        source=row.source,
    )


def _own_place(known: ProviderKnowledge) -> tuple[Place, ...]:
    """Without rows, a provider is in every release of its package, and in none after its removal."""
    if known.presence.gone or not known.package:
        return ()
    return (_place(Availability(package=known.package)),)


def _describe_work(known: ProviderKnowledge) -> tuple[Work, str]:
    compiler, deferral = known.compiler, known.deferral
    if compiler is not None and compiler.by_default:
        return "before shipping", "compiled before shipping"
    if deferral is not None:
        return "on the device", "generated on the device; here on request" if compiler else "generated on the device"
    return "none", "loaded as shipped"


def _summarize_options(rules: tuple[OptionRule, ...]) -> tuple[OptionSummary, ...]:
    return tuple(
        OptionSummary(
            key=rule.key,
            values=expected(rule),
            default=rule.default,
            meaning=rule.meaning,
            decided=rule.decided,
        )
        for rule in rules
    )
