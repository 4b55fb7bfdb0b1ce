"""The model of a profile, with the sections that ecosystems bring."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from typing import Any, Self

from pydantic import create_model

from bundler.model.errors import EnvironmentMissingError
from bundler.model.registered import list_registered
from bundler.profiles.chain import Key
from bundler.profiles.schema import Section, TargetProfile

GROUP = "bundler.profile_sections"
"""Entry points of bundler's ecosystems and of other packages: the name is the section's in a profile, and the value its
`EcosystemSection`.
"""


class EcosystemSection(Section):
    """What a profile says for the bundles of one ecosystem. Every key has a default."""

    @classmethod
    def of(cls, profile: TargetProfile) -> Self:
        """The section of this kind in a resolved profile."""
        return next(value for _, value in profile if isinstance(value, cls))

    def find_problems(self, profile: TargetProfile) -> Iterable[tuple[Key, str]]:
        """What is incompatible in a profile whose single values are valid: the key, and what is wrong there."""
        del profile
        return ()


@functools.cache
def profile_model() -> type[TargetProfile]:
    """What a profile is checked against. Raises `EnvironmentMissingError` for an entry point that is no section."""
    sections: dict[str, Any] = {}
    for point in list_registered(GROUP):
        sections[point.name] = _load_section(point, taken=(*TargetProfile.model_fields, *sections))
    return create_model("TargetProfile", __base__=TargetProfile, **sections)


def _load_section(point: EntryPoint, taken: Iterable[str]) -> tuple[type[EcosystemSection], EcosystemSection]:
    name, found = point.name, point.load()
    fits = name.isidentifier() and not name.startswith("_") and not hasattr(TargetProfile, name) and name not in taken
    if not fits or not isinstance(found, type) or not issubclass(found, EcosystemSection):
        raise EnvironmentMissingError(
            f"the entry point {GROUP}:{name} is not a section of a profile with a unique name",
            details=(f"it gave {found!r}",),
            hint="report this to the maintainer of that package",
        )
    return found, found()
