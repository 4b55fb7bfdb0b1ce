"""Shapes of dynamic inputs: all problems are reported at once, before anything is built."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from bundler.model.errors import StageError
from bundler.stages.build_engine.profiles import Shapes, add_profile


@dataclass
class Library:
    """Stands in for a builder, its configuration and a network of the inputs given."""

    inputs: dict[str, tuple[int, ...]]
    values: frozenset[str] = frozenset()
    calls: list[Any] = field(default_factory=list)

    @property
    def num_inputs(self) -> int:
        return len(self.inputs)

    def get_input(self, index: int) -> Any:
        name, shape = list(self.inputs.items())[index]
        return SimpleNamespace(name=name, shape=shape, is_shape_tensor=name in self.values)

    def create_optimization_profile(self) -> Any:
        return self

    def set_shape(self, *arguments: Any) -> None:
        self.calls.append(("shape", *arguments))

    def set_shape_input(self, *arguments: Any) -> None:
        self.calls.append(("values", *arguments))

    def add_optimization_profile(self, profile: Any) -> None:
        assert profile is self

    def add(self, **shapes: tuple[tuple[int, ...], ...]) -> dict[str, list[list[int]]]:
        given: Shapes = shapes
        return add_profile(self, self, self, given)


def problems(library: Library, **shapes: tuple[tuple[int, ...], ...]) -> tuple[str, ...]:
    with pytest.raises(StageError, match="do not fit") as caught:
        library.add(**shapes)
    assert "--dim NAME=SIZE" in str(caught.value.hint)
    return caught.value.details


def test_fixed_inputs_need_none() -> None:
    library = Library({"x": (1, 3)})
    assert library.add() == {}
    assert library.add(x=((1, 3), (1, 3), (1, 3))) == {}
    assert library.calls == []


def test_a_dynamic_input_takes_three() -> None:
    library = Library({"x": (-1, 3), "n": (2,)}, frozenset({"n"}))
    found = library.add(x=((1, 3), (4, 3), (8, 3)), n=((0, 1), (2, 2), (9, 9)))
    assert found == {"x": [[1, 3], [4, 3], [8, 3]], "n": [[0, 1], [2, 2], [9, 9]]}
    assert library.calls == [("shape", "x", [1, 3], [4, 3], [8, 3]), ("values", "n", [0, 1], [2, 2], [9, 9])]


def test_all_that_lack_shapes_are_named() -> None:
    library = Library({"x": (-1, 3), "y": (2, -1), "z": (1,), "n": (2,)}, frozenset({"n"}))
    assert problems(library) == (
        "'x' is [?, 3], which has no shapes",
        "'y' is [2, ?], which has no shapes",
        "the values of 'n' are shapes: give the smallest, typical and largest values",
    )


@pytest.mark.parametrize(
    ("shapes", "problem"),
    [
        (((1, 3),), "has 1 shapes"),
        (((1,), (2,), (3,)), "does not fit 'x', which is [?, 3]"),
        (((1, 4), (2, 4), (3, 4)), "does not fit 'x', which is [?, 3]"),
        (((2, 3), (1, 3), (3, 3)), "must grow"),
        (((0, 3), (1, 3), (3, 3)), "must grow"),
    ],
)
def test_shapes_that_do_not_fit(shapes: tuple[tuple[int, ...], ...], problem: str) -> None:
    assert problem in problems(Library({"x": (-1, 3)}), x=shapes)[0]


def test_an_input_that_is_not_there() -> None:
    assert problems(Library({"x": (1, 3)}), y=((1,), (1,), (1,))) == ("the model has no input 'y'",)
