"""Checks a variant's provider options, session options and configuration entries against their tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bundler.model.errors import ProfileError
from bundler.profiles.chain import Key, shorten
from bundler.profiles.problems import Problem, suggest
from bundler.profiles.schema import OptionValue, Provider, Variant
from bundler.providers.java_session import JAVA_ECOSYSTEMS, JAVA_SESSION_OPTIONS
from bundler.providers.knowledge import OptionRule, ProviderKnowledge
from bundler.providers.playbook import REPLACED_IN_SESSION, REPLACED_IN_SESSION_CONFIG
from bundler.providers.registry import describe_unknown, find_provider, provider_names
from bundler.providers.session import SESSION_OPTIONS
from bundler.providers.session_config import SESSION_CONFIG
from bundler.providers.values import as_entry, normalize_value
from bundler.providers.web_session import WEB_SESSION_OPTIONS

Rules = Mapping[str, OptionRule]


def index_rules(rules: Iterable[OptionRule]) -> Rules:
    """Rules by key."""
    return {rule.key: rule for rule in rules}


SESSION = index_rules(SESSION_OPTIONS)
CONFIG = index_rules(SESSION_CONFIG)
WEB_SESSION = index_rules(WEB_SESSION_OPTIONS)
JAVA_SESSION = index_rules(JAVA_SESSION_OPTIONS)


def session_rules(system: str, ecosystem: str) -> Rules:
    """The attributes that the runtime has on this system, through the API that bundles of this ecosystem use."""
    if system == "web":
        return WEB_SESSION
    return JAVA_SESSION if ecosystem in JAVA_ECOSYSTEMS else SESSION


def check_variant(variant: Variant, at: Key, session: Rules) -> Iterator[Problem]:
    """Every option that its table does not have, or not with this value; `session` are the runtime's attributes."""
    for position, provider in enumerate(variant.providers):
        yield from _check_provider(provider, (*at, "providers", position))
    yield from _check_options(
        variant.session, session, REPLACED_IN_SESSION, (*at, "session"), ("session_config", CONFIG)
    )
    yield from _check_options(
        variant.session_config, CONFIG, REPLACED_IN_SESSION_CONFIG, (*at, "session_config"), ("session", session)
    )


def check_table(given: Mapping[str, OptionValue], table: Iterable[OptionRule], at: Key) -> Iterator[Problem]:
    """Every setting of our own that a table does not have, or not with this value."""
    rules = index_rules(table)
    unknown = f"unknown setting (known: {', '.join(rules)})"
    for key, value in given.items():
        if key in rules:
            yield from _check_value(rules[key], value, (*at, key))
        else:
            yield Problem(key=(*at, key), text=unknown + suggest(key, rules))


def normalize_variant(variant: Variant, rules: Rules) -> Variant:
    """A checked variant with every value in the runtime's own spelling: attributes typed, everything else as text."""
    providers = tuple(
        entry.model_copy(
            update={"options": _as_entries(entry.options, index_rules(find_provider(entry.name).options.rules))}
        )
        for entry in variant.providers
    )
    session = {key: normalize_value(rules[key], value) for key, value in sorted(variant.session.items())}
    config = _as_entries(variant.session_config, CONFIG)
    compiler = find_provider(variant.providers[0].name).compiler
    compiled = {
        key: normalize_value(rule, variant.compile[key])
        for key, rule in sorted(index_rules(compiler.options if compiler else ()).items())
        if key in variant.compile
    }
    update = {"providers": providers, "session": session, "session_config": config, "compile": compiled}
    return variant.model_copy(update=update)


def is_on(options: Mapping[str, OptionValue], key: str) -> bool | None:
    """A flag's state, None where it is not set (or set wrongly, which is reported elsewhere)."""
    rule = CONFIG.get(key) or SESSION[key]
    try:
        return bool(normalize_value(rule, options[key])) if key in options else None
    except ValueError:
        return None


def _as_entries(options: Mapping[str, OptionValue], rules: Rules) -> dict[str, str]:
    return {key: as_entry(normalize_value(rules[key], value)) for key, value in sorted(options.items())}


def _check_provider(provider: Provider, at: Key) -> Iterator[Problem]:
    try:
        knowledge = find_provider(provider.name)
    except ProfileError:
        yield Problem(key=(*at, "name"), text=_unknown_provider(provider.name))
        return
    rules = index_rules(knowledge.options.rules)
    yield from _check_options(provider.options, rules, knowledge.options.replaced, (*at, "options"), None)


def _unknown_provider(name: str) -> str:
    known: tuple[ProviderKnowledge, ...] = tuple(find_provider(short) for short in provider_names())
    for knowledge in known:
        if name == knowledge.runtime_name:
            return f'{shorten(name)} is the runtime\'s name; bundler calls this provider "{knowledge.name}"'
    return describe_unknown(name)


def _check_options(
    given: Mapping[str, OptionValue],
    rules: Rules,
    replaced: Mapping[str, str],
    at: Key,
    sibling: tuple[str, Rules] | None,
) -> Iterator[Problem]:
    for key, value in given.items():
        place = (*at, key)
        if key not in rules:
            yield Problem(key=place, text=_unknown_option(key, rules, replaced, sibling))
        elif rules[key].decided:
            yield Problem(key=place, text=f"is not for a profile: {rules[key].decided}")
        else:
            yield from _check_value(rules[key], value, place)


def _check_value(rule: OptionRule, value: OptionValue, at: Key) -> Iterator[Problem]:
    try:
        normalize_value(rule, value)
    except ValueError as error:
        near = suggest(value, rule.values or ())
        yield Problem(key=at, text=f"got {shorten(value)}, expected {error}{near} ({rule.meaning.rstrip('.')})")


def _unknown_option(key: str, rules: Rules, replaced: Mapping[str, str], sibling: tuple[str, Rules] | None) -> str:
    if key in replaced:
        return f"has no effect; use {replaced[key]}"
    if sibling and key in sibling[1]:
        return f"belongs under `{sibling[0]}`"
    if not rules:
        return "this provider has no options; the session options tune it"
    return "unknown option; the runtime would silently ignore it" + suggest(key, rules)
