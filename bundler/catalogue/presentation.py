"""A resolved profile for people: TOML with the origin of each value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bundler.catalogue.outlook import foresee_variants
from bundler.model.requirements import describe_need
from bundler.profiles.chain import Key
from bundler.profiles.problems import show_key
from bundler.profiles.resolve import Resolved
from bundler.profiles.toml_text import write_toml
from bundler.support.text import visible

DEFAULT = "default"


def describe_profile(resolved: Resolved) -> str:
    """The whole profile as valid TOML, each value followed by the file that it comes from, below a description of each
    variant.
    """
    head = [" ← ".join(resolved.layered.files), *_describe_variants(resolved)]
    remarks = "".join(f"# {visible(line)}\n" for line in head)
    return remarks + write_toml(resolved.profile.model_dump(), lambda key: _origin(resolved, key))


def _describe_variants(resolved: Resolved) -> Iterator[str]:
    """A line for each variant, and one for each of its requirements on the device."""
    for outlook in foresee_variants(resolved.profile):
        texts = "; ".join(text for text in (outlook.text, outlook.threshold, outlook.sizes) if text)
        yield f"{outlook.name} ({' → '.join(outlook.providers)}): {texts}"
        yield from (f"    must be on the device: {describe_need(need)}" for need in outlook.needs)


def origins_of(resolved: Resolved) -> dict[str, str]:
    """The origin of each value by its dotted key."""
    return {show_key(key): _origin(resolved, key) for key in _leaves(resolved.profile.model_dump(), ())}


def _origin(resolved: Resolved, key: Key) -> str:
    data: Any = resolved.layered.data
    for part in key:
        inside = part in data if isinstance(data, Mapping) else isinstance(data, list) and part in range(len(data))
        if not inside:
            return DEFAULT
        data = data[part]
    return resolved.layered.origin(key)


def _leaves(value: Any, key: Key) -> Iterator[Key]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, (*key, name))
    elif isinstance(value, tuple) and value and isinstance(value[0], Mapping):
        for position, item in enumerate(value):
            yield from _leaves(item, (*key, position))
    else:
        yield key
