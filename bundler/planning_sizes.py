"""Which dynamic dimensions a bundle fixes, by whom, and what a person should hear of it. Pure, as all planning."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from bundler.model.errors import UsageError
from bundler.model.facts import ModelFacts
from bundler.model.plan import Decision
from bundler.model.requirements import FIXED_BY, FixedSize
from bundler.model.signature import Signature
from bundler.model.stage import Note
from bundler.planning_fit import find_free_sizes
from bundler.profiles.outlook import judge_free_sizes
from bundler.profiles.schema import TargetProfile
from bundler.providers.registry import find_provider

_LONGEST = 60
"""Characters of a dimension's name that a message shows."""


def fix_sizes(
    facts: ModelFacts, profile: TargetProfile, given: Mapping[str, int], own: Sequence[str] = ()
) -> tuple[FixedSize, ...]:
    """The dimensions that get one size, in the model's order: those of the profile (where its names in `own` are values
    that the user put there), and over them the ones that were `given`. Raises `UsageError` for a name that the model
    has not.
    """
    symbols = facts.signature.symbols
    unknown = sorted(set(given) - set(symbols))
    if unknown:
        named = ", ".join(repr(name) for name in unknown)
        known = ", ".join(repr(name) for name in symbols) or "none"
        raise UsageError(
            f"{facts.name} has no dynamic dimension named {named}",
            details=(f"its dynamic dimensions are: {known}",),
            hint="`bundler inspect MODEL` shows every input with its dimensions",
        )
    wanted = {**profile.dimensions, **given}
    return tuple(
        FixedSize(
            name=name,
            size=wanted[name],
            by="user" if name in given or name in own else "target",
            axes=find_axes(facts.signature, name),
        )
        for name in symbols
        if name in wanted
    )


def find_axes(signature: Signature, name: str) -> dict[str, tuple[int, ...]]:
    """Where a dimension stands: the axes by the name of the input."""
    places = {
        port.name: tuple(axis for axis, size in enumerate(port.type.shape or ()) if size == name)
        for port in signature.inputs
    }
    return {port: axes for port, axes in places.items() if axes}


def size_decisions(facts: ModelFacts, fixed: Sequence[FixedSize]) -> tuple[Decision, ...]:
    """What becomes of each dynamic dimension."""
    found = {size.name: size for size in fixed}
    return tuple(
        describe_size(found[name])
        if name in found
        else Decision(subject=f"dimension {name}", choice="dynamic", reason="nobody fixed it")
        for name in facts.signature.symbols
    )


def describe_size(size: FixedSize) -> Decision:
    """A size and who fixed it."""
    return Decision(subject=f"dimension {size.name}", choice=str(size.size), reason=FIXED_BY[size.by])


def size_notes(facts: ModelFacts, profile: TargetProfile, fixed: Sequence[FixedSize]) -> tuple[Note, ...]:
    """The sizes that the target chose, for a model may mean another thing by the same name; and the variants that leave
    nodes of free sizes to the CPU.
    """
    chosen = [size for size in fixed if size.by == "target"]
    return (*([_tell_chosen(chosen, profile)] if chosen else []), *_tell_left(facts, profile, fixed))


def _tell_chosen(chosen: Sequence[FixedSize], profile: TargetProfile) -> Note:
    sizes = ", ".join(f"{_show(size.name)} = {size.size}" for size in chosen)
    example = " ".join(f"--dim {shlex.quote(f'{_show(size.name)}=N')}" for size in chosen)
    return Note(
        text=f"the target {profile.id} fixes {sizes}, and the bundle will take no other size; where your model means "
        f"another thing by such a name (an audio window, say), or needs more, give {example}"
    )


def _show(name: str) -> str:
    """A name of the model on one line of a terminal, whatever is in it."""
    return name if name.isprintable() and len(name) <= _LONGEST else repr(name)[:_LONGEST]


def _tell_left(facts: ModelFacts, profile: TargetProfile, fixed: Sequence[FixedSize]) -> list[Note]:
    free = find_free_sizes(facts, {size.name: size.size for size in fixed})
    leaving = [variant for variant in profile.variants if judge_free_sizes(variant) == "left"] if free else []
    return [
        Note(
            text=f"variant {variant.name}: {find_provider(variant.providers[0].name).title} leaves nodes of sizes that "
            f"are not fixed to the CPU ({'; '.join(free[:3])}); fix what has a name with --dim name=size",
            level="warning",
        )
        for variant in leaving
    ]
