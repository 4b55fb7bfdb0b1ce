"""Sizes from given shapes, checked against the model and each other. Pure, like all planning."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from bundler.model.errors import UsageError
from bundler.model.facts import ModelFacts
from bundler.model.free_dimensions import Key, dimension_key, place_label, shown_name
from bundler.model.open_sizes import NOBODY, Asker, describe_example, suggest_options, suggest_shape
from bundler.model.shapes import Shape, SizeRange, split_qualified, write_shape
from bundler.model.signature import Port, Signature, describe_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A size for a dimension, and its origin (`the shape 8,128 of input 'x'`)."""

    size: int | SizeRange
    origin: str


@dataclass(slots=True)
class _Claims:
    """The sizes so far, and conflicts between them."""

    found: dict[Key, Claim] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, key: Key, claim: Claim) -> None:
        known = self.found.setdefault(key, claim)
        if known.size != claim.size:
            name = shown_name(key) if isinstance(key, str) else place_label(*key)
            first = f"{name} is {write_shape((known.size,))} by {known.origin}"
            self.problems.append(
                f"{first}, and {write_shape((claim.size,))} by {claim.origin}: a dimension has only one size"
            )


def read_claims(
    facts: ModelFacts,
    dimensions: Mapping[str, int],
    shapes: Mapping[str, Shape],
    *,
    whose: str,
    strict: bool,
    asker: Asker = NOBODY,
) -> dict[Key, Claim]:
    """The size of each dimension by its name, or by its place where it has none.

    `whose` names the source of the shapes; unless `strict`, shapes of inputs that the model lacks are ignored. Raises
    `UsageError` with everything that does not fit the model or conflicts.
    """
    claims = _Claims()
    for name, size in dimensions.items():
        claims.add(name, Claim(size=size, origin=f"--dim {shown_name(name)}={size}"))
    ports = {port.name: port for port in facts.signature.inputs}
    for name, shape in shapes.items():
        if name in ports:
            _read_shape(ports[name], shape, claims)
        elif strict:
            claims.problems.append(_describe_unknown(name, facts.signature))
    if claims.problems:
        raise _refuse(facts, claims.problems, whose, asker)
    return claims.found


def name_inputs(facts: ModelFacts, given: Mapping[str, Shape]) -> dict[str, Shape]:
    """Shapes by input, given as `x` or as `MODEL:x` with this model's name.

    Raises `UsageError` when both are given and differ.
    """
    ports = {port.name for port in facts.signature.inputs}
    shapes: dict[str, Shape] = {}
    for key, shape in given.items():
        qualified = split_qualified(key, facts.name)
        name = qualified if key not in ports and qualified in ports else key
        if shapes.setdefault(name, shape) != shape:
            conflict = f"{shown_name(name)} is given as {write_shape(shapes[name])} and as {write_shape(shape)}"
            raise UsageError("an input has two shapes", details=(conflict,), hint="give each input once")
    return shapes


def _describe_unknown(name: str, signature: Signature) -> str:
    known = [port.name for port in signature.inputs]
    close = difflib.get_close_matches(name, known, 1)
    if not close and len(known) == 1:
        close = known
    return f"there is no input {shown_name(name)!r}" + (f" (did you mean {shown_name(close[0])!r}?)" if close else "")


def _read_shape(port: Port, shape: Shape, claims: _Claims) -> None:
    origin = f"the shape {write_shape(shape)} of input {shown_name(port.name)!r}"
    problem = _find_misfit(port, shape)
    if problem:
        claims.problems.append(f"{origin}: {problem}")
        return
    known = port.type.shape if port.type.shape is not None else (None,) * len(shape)
    for axis, (have, size) in enumerate(zip(known, shape, strict=True)):
        if size is None or have == size:
            continue
        if isinstance(have, int):
            label = place_label(port.name, axis)
            claims.problems.append(f"{origin}: {label} is {have} in the model; export it again to change that")
        else:
            claims.add(dimension_key(port.name, axis, have), Claim(size=size, origin=origin))


def _find_misfit(port: Port, shape: Shape) -> str:
    known = port.type.shape
    if port.type.kind != "tensor":
        return f"it is {describe_type(port.type)}; only tensors have sizes"
    if known is None:
        return "its rank is unknown, so each size must be a number" if None in shape else ""
    if not known:
        return "it is a scalar and has no sizes"
    if len(known) != len(shape):
        return f"it has {len(known)} sizes, not {len(shape)}"
    return ""


def _refuse(facts: ModelFacts, problems: list[str], whose: str, asker: Asker) -> UsageError:
    inputs = ", ".join(f"{shown_name(port.name)}: {describe_type(port.type)}" for port in facts.signature.inputs)
    return UsageError(
        f"{whose} do not fit {facts.name}",
        details=(*problems, f"its inputs are: {inputs}"),
        hint=_describe_example(facts.signature, asker),
    )


def _describe_example(signature: Signature, asker: Asker) -> str:
    words = suggest_options(signature, asker)
    ports = [port for port in signature.inputs if not all(isinstance(size, int) for size in port.type.shape or ())]
    if "--shape" not in words and ports:  # a --dim would be no example of what was asked for
        words = ("--shape", suggest_shape(ports[0], {}))
    what = "one number for each axis, and ? for a size to leave unchanged"
    return (
        f"{what}: {describe_example(words, asker.project)}"
        if words
        else f"{what}; `bundler inspect MODEL` shows the inputs"
    )
