"""The requirements of a chain's providers on the device's software, for one target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bundler.model.requirements import Need
from bundler.providers.availability import is_in_range
from bundler.providers.knowledge import NeedRule, ProviderKnowledge

OWN_VERSION = "in the version that your own build of the runtime was made with"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a chain runs: the system by the profile's name, the version of the runtime, and whether that is a custom
    build, whose linked libraries are unknown here.
    """

    system: str
    runtime: str
    own_build: bool = False


def list_needs(chain: Iterable[tuple[ProviderKnowledge, Mapping[str, str]]], place: Place) -> tuple[Need, ...]:
    """Each requirement once, in the order of the chain: its providers, each with the options of the profile as text."""
    found = (
        _make_need(rule, place)
        for known, options in chain
        for rule in known.presence.needs
        if _holds(rule, known, options, place)
    )
    return _keep_strictest(tuple(dict.fromkeys(found)))


def _keep_strictest(needs: tuple[Need, ...]) -> tuple[Need, ...]:
    """Of several minimum versions of one requirement, the highest."""
    least: dict[str, str] = {}
    for need in needs:
        version = read_minimum(need)
        if version and (need.what not in least or is_in_range(version, f">={least[need.what]}")):
            least[need.what] = version
    return tuple(need for need in needs if read_minimum(need) in ("", least.get(need.what)))


def read_minimum(need: Need) -> str:
    """The minimum version; empty if there is none."""
    version, _, rest = need.version.partition(" ")
    return version if rest == "or later" else ""


def _holds(rule: NeedRule, known: ProviderKnowledge, options: Mapping[str, str], place: Place) -> bool:
    if rule.systems and place.system not in rule.systems:
        return False
    if not place.own_build and not is_in_range(place.runtime, rule.runtime_versions):
        return False
    return known.matches(options, rule.when)


def _make_need(rule: NeedRule, place: Place) -> Need:
    if place.own_build and rule.runtime_versions:
        return Need(what=rule.what, version=OWN_VERSION)
    return Need(
        what=rule.what, version=rule.version, check=rule.check, libraries=tuple(rule.libraries.get(place.system, ()))
    )
