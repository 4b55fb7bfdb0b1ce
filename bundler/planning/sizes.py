"""Dynamic dimensions that a bundle fixes, who fixed them, and notes on them. Pure, like all planning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bundler.model.errors import UsageError
from bundler.model.facts import ModelFacts
from bundler.model.free_dimensions import Key, place_label, unnamed_labels
from bundler.model.open_sizes import NOBODY, Asker, describe_example, show_options, suggest_options, suggest_shapes
from bundler.model.plan import Decision
from bundler.model.requirements import FIXED_BY, FixedSize
from bundler.model.shapes import Shape, SizeRange
from bundler.model.signature import Signature
from bundler.model.stage import Note
from bundler.planning.fit import find_free_sizes
from bundler.planning.ranges import range_decisions
from bundler.planning.shapes import read_claims
from bundler.planning.traits import judge_free_sizes
from bundler.profiles.schema import TargetProfile
from bundler.providers.registry import find_provider

_LONGEST = 60
"""Characters of a dimension's name that a message shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSizes:
    """Sizes that the user gave for this build: `dimensions` by name, `shapes` by input. `own_dimensions` and
    `own_shapes` are names of what the user put into the profile.
    """

    dimensions: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    own_dimensions: Sequence[str] = ()
    own_shapes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledSizes:
    """Dimensions that get one size, in the model's order, those with a name first; and ranges of others, by their names
    or places.
    """

    fixed: tuple[FixedSize, ...]
    ranges: Mapping[str, SizeRange]


def settle_sizes(facts: ModelFacts, profile: TargetProfile, given: GivenSizes, asker: Asker = NOBODY) -> SettledSizes:
    """Sizes of the profile, its shapes over its dimensions, overridden by those in `given`.

    Raises `UsageError` for names or inputs that the model lacks, and for incompatible shapes.
    """
    signature = facts.signature
    _check_names(facts, given.dimensions, asker)
    left = {name: shape for name, shape in profile.shapes.items() if name not in given.shapes}
    own = {name: shape for name, shape in left.items() if name in given.own_shapes}
    others = {name: shape for name, shape in left.items() if name not in own}
    target = {name: size for name, size in profile.dimensions.items() if name in signature.symbols}
    wanted: dict[Key, tuple[int | SizeRange, Literal["target", "user"]]] = {
        name: (size, "user" if name in given.own_dimensions else "target") for name, size in target.items()
    }
    of_profile = read_claims(facts, {}, others, whose=f"the shapes of the target {profile.id}", strict=False)
    wanted |= {key: (claim.size, "target") for key, claim in of_profile.items()}
    for dimensions, shapes in (({}, own), (given.dimensions, given.shapes)):
        claims = read_claims(facts, dimensions, shapes, whose="the given shapes", strict=True, asker=asker)
        wanted |= {key: (claim.size, "user") for key, claim in claims.items()}
    order = [(key, *wanted[key]) for key in _in_order(wanted, signature)]
    return SettledSizes(
        fixed=tuple(_describe(key, size, by, signature) for key, size, by in order if isinstance(size, int)),
        ranges={
            key if isinstance(key, str) else place_label(*key): size
            for key, size, _ in order
            if isinstance(size, SizeRange)
        },
    )


def _check_names(facts: ModelFacts, given: Mapping[str, int], asker: Asker) -> None:
    symbols = facts.signature.symbols
    unknown = sorted(set(given) - set(symbols))
    if unknown:
        named = ", ".join(repr(name) for name in unknown)
        known = ", ".join(repr(name) for name in symbols) or "none"
        unnamed = unnamed_labels(facts.signature)
        details = (f"unnamed, set with --shape: {', '.join(unnamed)}",) if unnamed else ()
        raise UsageError(
            f"{facts.name} has no dynamic dimension named {named}",
            details=(f"its dynamic dimensions are: {known}", *details),
            hint=_describe_reach(facts.signature, asker),
        )


def _describe_reach(signature: Signature, asker: Asker) -> str:
    words = suggest_shapes(signature, asker)
    return (
        describe_example(words, asker.project)
        if words
        else "`bundler inspect MODEL` shows every input with its dimensions"
    )


def _in_order(wanted: Mapping[Key, object], signature: Signature) -> Iterator[Key]:
    yield from (name for name in signature.symbols if name in wanted)
    ports = [port.name for port in signature.inputs]
    yield from sorted(
        (key for key in wanted if not isinstance(key, str)), key=lambda key: (ports.index(key[0]), key[1])
    )


def _describe(key: Key, size: int, by: Literal["target", "user"], signature: Signature) -> FixedSize:
    if isinstance(key, str):
        return FixedSize(name=key, size=size, by=by, axes=find_axes(signature, key))
    return FixedSize(name=place_label(*key), size=size, by=by, axes={key[0]: (key[1],)})


def find_axes(signature: Signature, name: str) -> dict[str, tuple[int, ...]]:
    """Where a dimension stands: the axes by the name of the input."""
    places = {
        port.name: tuple(axis for axis, size in enumerate(port.type.shape or ()) if size == name)
        for port in signature.inputs
    }
    return {port: axes for port, axes in places.items() if axes}


def size_decisions(signature: Signature, settled: SettledSizes) -> tuple[Decision, ...]:
    """A decision for each dynamic dimension."""
    found = {size.name: describe_size(size) for size in settled.fixed} | range_decisions(settled.ranges)
    left = [
        *((name, "not fixed") for name in signature.symbols),
        *((label, "unnamed in the model, and not fixed") for label in unnamed_labels(signature)),
    ]
    decisions = (
        found.pop(name) if name in found else Decision(subject=f"dimension {name}", choice="dynamic", reason=reason)
        for name, reason in left
    )
    return (*decisions, *found.values())


def describe_size(size: FixedSize) -> Decision:
    """A size and who fixed it."""
    return Decision(subject=f"dimension {size.name}", choice=str(size.size), reason=FIXED_BY[size.by])


def size_notes(
    facts: ModelFacts,
    profile: TargetProfile,
    fixed: Sequence[FixedSize],
    shapes: Mapping[str, Shape],
    asker: Asker = NOBODY,
    *,
    grows: bool = False,
) -> tuple[Note, ...]:
    """Notes on sizes chosen by the target, on sizes that a given shape fixes in other inputs too, and on variants that
    run nodes with dynamic sizes on the CPU, which stay so where a state `grows`. `facts` have the fixed sizes.
    """
    chosen = [size for size in fixed if size.by == "target"]
    return (
        *([_describe_chosen(chosen, profile, asker)] if chosen else []),
        *(_describe_shared(size, shapes) for size in fixed if size.by == "user" and _is_shared(size, shapes)),
        *_describe_left(facts, profile, asker, grows=grows),
    )


def _is_shared(size: FixedSize, shapes: Mapping[str, Shape]) -> bool:
    """Whether a given shape fixed it and it also occurs in inputs without a given shape."""
    return bool(shapes.keys() & size.axes.keys()) and bool(size.axes.keys() - shapes.keys())


def _describe_shared(size: FixedSize, shapes: Mapping[str, Shape]) -> Note:
    places = [place_label(name, axis) for name, axes in size.axes.items() for axis in axes if name not in shapes]
    return Note(
        text=f"the given shape fixes {_show(size.name)} = {size.size} wherever it occurs, including {', '.join(places)}"
    )


def _describe_chosen(chosen: Sequence[FixedSize], profile: TargetProfile, asker: Asker) -> Note:
    sizes = ", ".join(f"{_show(size.name)} = {size.size}" for size in chosen)
    named = dict.fromkeys(f"{_show(size.name)}=N" for size in chosen if _is_named(size))
    placed = dict.fromkeys(f"{_show(name)}=SIZES" for size in chosen if not _is_named(size) for name in size.axes)
    options = [
        word for flag, pairs in (("--dim", named), ("--shape", placed)) for pair in pairs for word in (flag, pair)
    ]
    meant = "your model uses such a name differently (for an audio window, say), or " if named else "your model "
    return Note(
        text=f"the target {profile.id} fixes {sizes}, and the bundle accepts no other size; if {meant}needs another, "
        f"give {show_options(options, asker.project)}"
    )


def _is_named(size: FixedSize) -> bool:
    return not any(size.name == place_label(name, axis) for name, axes in size.axes.items() for axis in axes)


def _show(name: str) -> str:
    """A name from the model on one line, escaped and truncated."""
    return name if name.isprintable() and len(name) <= _LONGEST else repr(name)[:_LONGEST]


def _describe_left(facts: ModelFacts, profile: TargetProfile, asker: Asker, *, grows: bool) -> list[Note]:
    free = find_free_sizes(facts)
    leaving = [variant for variant in profile.variants if judge_free_sizes(variant) == "cpu"] if free else []
    example = describe_example(suggest_options(facts.signature, asker), asker.project)
    remedy = "a state that grows keeps them dynamic" if grows else f"fix them, {example}"
    return [
        Note(
            text=f"variant {variant.name}: {find_provider(variant.providers[0].name).title} runs nodes with dynamic "
            f"sizes on the CPU ({'; '.join(free[:3])}); {remedy}",
            level="warning",
        )
        for variant in leaving
    ]
