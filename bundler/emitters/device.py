"""A README's facts on the device: its requirements, the fixed sizes, and the omitted variants."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bundler.emitters.contract import EmitRequest
from bundler.model.requirements import FIXED_BY, Need, describe_need
from bundler.model.runtime import RuntimeComponent, RuntimeConfig
from bundler.profiles.schema import Platform
from bundler.providers.availability import is_in_range
from bundler.providers.needs import read_minimum
from bundler.support.text import shorten, visible


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceContext:
    """Raw lines of text, which the templates escape. `needs` are the requirements, the system first; `fixed` are sizes
    that the model leaves open and this bundle fixes, one of which another build `refits`; `left_out` are variants of
    the target that are not in this bundle. With `searched` a loader can look for some of the requirements.
    """

    needs: tuple[str, ...]
    fixed: tuple[str, ...]
    refits: bool
    left_out: tuple[str, ...]
    unstable: tuple[str, ...]
    searched: bool


def describe_device(request: EmitRequest) -> DeviceContext:
    """The facts that are known before anything has run; with the component's name where there are several."""
    config = request.config
    return DeviceContext(
        needs=(*_describe_platform(request.profile.platform), *_describe_needs(config, request.profile.platform)),
        fixed=_name_owners(
            config,
            lambda component: [
                f"{shorten(size.name)} = {size.size}, {FIXED_BY[size.by]}" for size in component.fixed_sizes
            ],
        ),
        refits=any(size.by != "model" for component in config.components for size in component.fixed_sizes),
        left_out=request.left_out,
        unstable=_name_owners(config, lambda component: [shorten(name) for name in component.unstable_outputs]),
        searched=any(need.libraries for _, variant in config.pairs for need in variant.requires.needs),
    )


def _name_owners(config: RuntimeConfig, read: Callable[[RuntimeComponent], Iterable[str]]) -> tuple[str, ...]:
    """What each component has, with its name where there are several."""
    return tuple(
        text if config.sole else f"{component.name}: {text}"
        for component in config.components
        for text in read(component)
    )


_SYSTEMS = {
    "linux": "Linux on {machine}{minimum}",
    "macos": "macOS{minimum} on {machine}",
    "windows": "Windows on {machine}{minimum}",
    "android": "Android on {machine}{minimum}",
    "ios": "iOS{minimum} on {machine}",
}
_MINIMA = {"linux": " with glibc {} or later", "android": " with API level {} or later"}
"""What the minimum version refers to, where that is not the system itself."""


def _describe_platform(platform: Platform) -> Iterable[str]:
    """The system; nothing for a web page, which runs in a browser on any system."""
    pattern = _SYSTEMS.get(platform.system)
    if pattern is None:
        return ()
    minimum = _MINIMA.get(platform.system, " {} or later").format(platform.minimum) if platform.minimum else ""
    return (pattern.format(machine=platform.architecture, minimum=minimum),)


_NAMES = {"ios": "iOS", "macos": "macOS"}
"""The systems for which providers require a version of their own."""


def _is_covered(need: Need, platform: Platform) -> bool:
    """Whether the line on the system already covers this requirement."""
    asked = read_minimum(need)
    if need.what != _NAMES.get(platform.system) or not asked or not platform.minimum:
        return False
    return is_in_range(platform.minimum, f">={asked}")


def _describe_needs(config: RuntimeConfig, platform: Platform) -> list[str]:
    """Each requirement once, with the variants that have it."""
    owners: dict[str, list[str]] = {}
    for component, variant in config.pairs:
        for need in variant.requires.needs:
            if not _is_covered(need, platform):
                owners.setdefault(describe_need(need), []).append(config.label(component.name, variant.name))
    return [f"for {' and '.join(names)}: {visible(need)}" for need, names in owners.items()]
