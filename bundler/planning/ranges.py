"""Ranges of sizes as options of the providers that support them. Pure, like all planning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bundler.model.errors import UsageError
from bundler.model.free_dimensions import place_label, shown_name
from bundler.model.plan import Decision
from bundler.model.shapes import SizeRange
from bundler.model.signature import Dimension, Port, Signature
from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.registry import find_provider
from bundler.providers.shape_ranges import parse_shapes

_SHAPES_OF_A_RANGE = 3
"""Minimum, optimum, maximum."""


def apply_ranges(profile: TargetProfile, signature: Signature, ranges: Mapping[str, SizeRange]) -> TargetProfile:
    """`profile` with the ranges as options of the providers that support them. `signature` has the fixed sizes.

    Raises `UsageError` when no provider supports ranges, or when one does and other sizes have no range.
    """
    if not ranges:
        return profile
    variants = tuple(_apply(variant, signature, ranges) for variant in profile.variants)
    if variants == profile.variants:
        requested = ", ".join(f"{shown_name(name)} = {found.describe()}" for name, found in ranges.items())
        raise UsageError(
            f"no provider of {profile.id} supports a range of sizes",
            details=(f"requested: {requested}", *(_describe(variant) for variant in profile.variants)),
            hint="give one size, or ? to leave it dynamic",
        )
    return profile.model_copy(update={"variants": variants})


def _describe(variant: Variant) -> str:
    return f"{variant.name} runs on {find_provider(variant.providers[0].name).title}"


def _apply(variant: Variant, signature: Signature, ranges: Mapping[str, SizeRange]) -> Variant:
    first, *others = variant.providers
    known = find_provider(first.name)
    if not known.graph.ranges:
        return variant
    open_sizes = [*_find_uncovered(signature, ranges)]
    if open_sizes:
        raise UsageError(
            f"variant {variant.name} runs on {known.title}, which requires a range for every dynamic size",
            details=(f"without one: {', '.join(open_sizes)}",),
            hint="give a range (64..320) or one size for each",
        )
    texts = [
        ",".join(_write(port, ranges, place) for port in _open_ports(signature)) for place in range(_SHAPES_OF_A_RANGE)
    ]
    try:
        parse_shapes(texts[0])
    except ValueError as error:
        raise UsageError(f"{known.title} does not accept the ranges", details=(str(error),)) from error
    options = {**first.options, **dict(zip(known.graph.ranges, texts, strict=True))}
    return variant.model_copy(update={"providers": (first.model_copy(update={"options": options}), *others)})


def _open_ports(signature: Signature) -> Iterator[Port]:
    return (port for port in signature.inputs if not all(isinstance(size, int) for size in port.type.shape or (None,)))


def _find_uncovered(signature: Signature, ranges: Mapping[str, SizeRange]) -> Iterator[str]:
    for port in _open_ports(signature):
        if port.type.shape is None:
            yield shown_name(port.name)
        for axis, size in enumerate(port.type.shape or ()):
            if not isinstance(size, int) and _name(port, axis, size) not in ranges:
                yield _name(port, axis, size)


def _name(port: Port, axis: int, size: Dimension) -> str:
    return size if isinstance(size, str) else place_label(port.name, axis)


def _write(port: Port, ranges: Mapping[str, SizeRange], place: int) -> str:
    """`x:1x3x48x64`: the minimum, optimum or maximum of all ranges."""
    sizes = [
        size if isinstance(size, int) else _at(ranges[_name(port, axis, size)], place)
        for axis, size in enumerate(port.type.shape or ())
    ]
    return f"{port.name}:{'x'.join(map(str, sizes))}"


def _at(found: SizeRange, place: int) -> int:
    return (found.least, found.best, found.most)[place]


def range_decisions(ranges: Mapping[str, SizeRange]) -> dict[str, Decision]:
    """A decision for each dimension with a range, by name."""
    return {
        name: Decision(
            subject=f"dimension {name}",
            choice=f"{found.least} to {found.most}",
            reason=f"given for this build, tuned for {found.best}; providers without ranges accept any size",
        )
        for name, found in ranges.items()
    }
