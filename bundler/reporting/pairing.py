"""Which components of two bundles are compared with each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bundler.model.manifest import ComponentRecord, Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A component of bundle A and the one of B that it is compared with. `label` is its name, empty where both bundles
    hold one model.
    """

    before: ComponentRecord
    after: ComponentRecord
    label: str

    def name(self, thing: str) -> str:
        """A variant's name as people read it."""
        return f"{self.label}/{thing}" if self.label else thing

    def prefix(self, subject: str) -> str:
        """The subject of a change, with the component's name where there are several."""
        return f"{self.label}: {subject}" if self.label else subject


def pair_components(a: Manifest, b: Manifest) -> tuple[Pair, ...]:
    """The components of one name, or else of one model that is found once on each side; two bundles of one model are
    always compared.
    """
    if a.sole and b.sole:
        return (Pair(before=a.sole, after=b.sole, label=""),)
    names = {component.name: component for component in b.components}
    known = {component.name for component in a.components}
    pairs = []
    for component in a.components:
        other = names.get(component.name)
        if other is None:
            other = _find_renamed(component, [after for after in b.components if after.name not in known], a)
        if other is not None:
            label = component.name if other.name == component.name else f"{component.name} → {other.name}"
            pairs.append(Pair(before=component, after=other, label=label))
    return tuple(pairs)


def _find_renamed(component: ComponentRecord, others: list[ComponentRecord], a: Manifest) -> ComponentRecord | None:
    digest = component.model.digest
    found = [other for other in others if other.model.digest == digest]
    return found[0] if len(found) == 1 and _count(a, digest) == 1 else None


def _count(manifest: Manifest, digest: str) -> int:
    return sum(component.model.digest == digest for component in manifest.components)


def list_unpaired(a: Manifest, b: Manifest, pairs: tuple[Pair, ...]) -> Iterator[tuple[str, str | None, str | None]]:
    """The components that only one bundle has: name, and its model in A and in B, None where it lacks it."""
    before, after = {pair.before.name for pair in pairs}, {pair.after.name for pair in pairs}
    yield from ((part.name, part.model.name, None) for part in a.components if part.name not in before)
    yield from ((part.name, None, part.model.name) for part in b.components if part.name not in after)
