"""What a user reads whose samples do not fit: a call of `numpy.savez` that Python takes."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from bundler.model.errors import UsageError
from bundler.model.signature import Port, Signature, ValueType
from bundler.onnxkit.fitting import check_samples, describe_non_finite

PLAIN, PYTORCH, SAVEZ = ("x", "mask"), ("input.1", "class"), ("file", "x")


def refuse(names: tuple[str, ...], values: dict[str, np.ndarray]) -> str:
    inputs = tuple(Port(name=name, type=ValueType(element_type="float32", shape=(2,))) for name in names)
    with pytest.raises(UsageError) as caught:
        check_samples([("one", values)], Signature(inputs=inputs, outputs=()))
    return caught.value.hint or ""


def keywords_of(hint: str) -> list[str | None]:
    call = ast.parse(hint[hint.index("numpy.savez") :].split("; ", maxsplit=1)[0]).body[0]
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    return [pair.arg for pair in call.value.keywords]


@pytest.mark.parametrize(("names", "keywords"), [(PLAIN, list(PLAIN)), (PYTORCH, [None]), (SAVEZ, [None])])
def test_the_hint_for_wrong_types_is_python(names: tuple[str, ...], keywords: list[str | None]) -> None:
    hint = refuse(names, {name: np.zeros(2, np.float64) for name in names})
    assert keywords_of(hint) == keywords
    assert hint.count(".astype('float32')") == len(names)


@pytest.mark.parametrize(("names", "keywords"), [(PLAIN, list(PLAIN)), (PYTORCH, [None]), (SAVEZ, [None])])
def test_the_hint_for_wrong_names_says_the_right_ones(names: tuple[str, ...], keywords: list[str | None]) -> None:
    hint = refuse(names, {"pixels": np.zeros(2, np.float32)})
    assert keywords_of(hint) == keywords
    assert all(name in hint for name in names)


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((3,), "give 'x' as float32[2], not float32[3]"),
        (
            (5, 2),
            (
                "give 'x' as float32[2], not float32[5, 2]: one .npz whose first axis counts the samples is given "
                "itself, not its folder"
            ),
        ),
        ((), "give 'x' as float32[2], not float32[]"),
    ],
)
def test_the_hint_for_wrong_shapes_names_the_input_and_both_shapes(shape: tuple[int, ...], hint: str) -> None:
    assert refuse(("x",), {"x": np.zeros(shape, np.float32)}) == hint


def test_non_finite_values_are_counted_by_input() -> None:
    values = {"x": np.array([np.nan, np.inf, -np.inf, 1]), "y": np.ones(3), "ids": np.array([1])}
    assert list(describe_non_finite(values)) == ["'x' holds 1 NaN and 2 infinite among 4 values"]
    assert list(describe_non_finite({"x": np.array([np.inf])}, infinite=False)) == []
