"""Optimisation profiles: the smallest, typical and largest shape of every dynamic input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from bundler.model.errors import StageError

Shapes = Mapping[str, tuple[tuple[int, ...], ...]]
_SIZES: Final = 3


def add_profile(builder: Any, config: Any, network: Any, shapes: Shapes) -> dict[str, list[list[int]]]:
    """Set the profile of a parsed network's dynamic inputs and return it. Raises `StageError` if it does not fit."""
    inputs = [network.get_input(index) for index in range(network.num_inputs)]
    problems = tuple(_find_problems(inputs, shapes))
    if problems:
        raise StageError(
            "the shapes do not fit the model's dynamic inputs",
            details=problems,
            hint="give every dynamic input its smallest, typical and largest shape, "
            "or fix the sizes: --dim NAME=SIZE, --shape INPUT=SIZES",
        )
    dynamic = [tensor for tensor in inputs if _is_dynamic(tensor)]
    if not dynamic:
        return {}
    profile = builder.create_optimization_profile()
    for tensor in dynamic:
        setter = profile.set_shape_input if tensor.is_shape_tensor else profile.set_shape
        setter(tensor.name, *map(list, shapes[tensor.name]))
    config.add_optimization_profile(profile)
    return {tensor.name: [list(shape) for shape in shapes[tensor.name]] for tensor in dynamic}


def _is_dynamic(tensor: Any) -> bool:
    return bool(tensor.is_shape_tensor) or any(size < 0 for size in tensor.shape)


def _find_problems(inputs: list[Any], shapes: Shapes) -> Iterator[str]:
    names = {tensor.name for tensor in inputs}
    for name in sorted(shapes.keys() - names):
        yield f"the model has no input {name[:80]!r}"
    for tensor in inputs:
        if tensor.name in shapes:
            yield from _fit(tensor, shapes[tensor.name])
        elif tensor.is_shape_tensor:
            yield f"the values of {tensor.name!r} are shapes: give the smallest, typical and largest values"
        elif _is_dynamic(tensor):
            yield f"{tensor.name!r} is {_describe(tensor)}, which has no shapes"


def _fit(tensor: Any, given: tuple[tuple[int, ...], ...]) -> Iterator[str]:
    if len(given) != _SIZES:
        yield f"{tensor.name!r} has {len(given)} shapes: give three, the smallest, the typical and the largest"
        return
    if tensor.is_shape_tensor:
        return
    declared = tuple(tensor.shape)
    for shape in given:
        if len(shape) != len(declared) or any(size not in (-1, asked) for size, asked in zip(declared, shape)):  # noqa: B905 - the lengths are compared first
            yield f"{list(shape)} does not fit {tensor.name!r}, which is {_describe(tensor)}"
            return
    if any(size < 1 for size in given[0]) or any(
        less > more for first, second in pairwise(given) for less, more in zip(first, second, strict=True)
    ):
        yield f"the shapes of {tensor.name!r} must grow from the smallest, of at least 1, to the largest"


def _describe(tensor: Any) -> str:
    return "[" + ", ".join("?" if size < 0 else str(size) for size in tensor.shape) + "]"
