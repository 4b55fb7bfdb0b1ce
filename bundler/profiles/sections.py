"""The model of a profile, with the sections that ecosystems of other packages bring."""

from __future__ import annotations

import functools
from importlib.metadata import entry_points
from typing import Any

from pydantic import create_model

from bundler.model.errors import EnvironmentMissingError
from bundler.profiles.schema import Section, TargetProfile

GROUP = "bundler.profile_sections"
"""Entry points of other packages: the name is the section's in a profile, and the value its `Section`."""


@functools.cache
def profile_model() -> type[TargetProfile]:
    """What a profile is checked against. Raises `EnvironmentMissingError` for a section that is none."""
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    foreign: dict[str, Any] = {point.name: _load_section(point.name, point.load()) for point in points}
    return create_model("TargetProfile", __base__=TargetProfile, **foreign) if foreign else TargetProfile


def _load_section(name: str, found: object) -> tuple[type[Section], Section]:
    taken = name in TargetProfile.model_fields or hasattr(TargetProfile, name)
    fits = name.isidentifier() and not name.startswith("_") and not taken
    if not fits or not isinstance(found, type) or not issubclass(found, Section):
        raise EnvironmentMissingError(
            f"the entry point {GROUP}:{name} is no section of its own",
            details=(f"it gave {found!r}",),
            hint="ask the maker of that package",
        )
    return found, found()
