"""The entry points that bundler and other packages register in a group."""

from __future__ import annotations

import functools
import sys
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points


def find_registered(group: str, name: str) -> EntryPoint | None:
    """The entry point of this name, bundler's own before another package's; None if it is not registered."""
    return _own(group).get(name) or _all(group, tuple(sys.path)).get(name)


def registered_names(group: str) -> tuple[str, ...]:
    """All names of a group, sorted."""
    return tuple(sorted({*_own(group), *_all(group, tuple(sys.path))}))


def list_registered(group: str) -> tuple[EntryPoint, ...]:
    """All entry points of a group, sorted by name, bundler's own first."""
    own = {(point.name, point.value) for point in _own(group).values()}
    points = entry_points(group=group)
    return tuple(sorted(points, key=lambda point: ((point.name, point.value) not in own, point.name)))


def is_own(group: str, name: str) -> bool:
    """Whether the entry point of this name is bundler's."""
    return name in _own(group)


@functools.cache
def _own(group: str) -> dict[str, EntryPoint]:
    """Only bundler's own: reading the metadata of every distribution would take tens of milliseconds."""
    try:
        points = distribution("bundler").entry_points
    except PackageNotFoundError:
        return {}
    return {point.name: point for point in points if point.group == group}


@functools.cache
def _all(group: str, path: tuple[str, ...]) -> dict[str, EntryPoint]:
    del path  # part of the cache key: `entry_points` searches it
    return {point.name: point for point in entry_points(group=group)}
