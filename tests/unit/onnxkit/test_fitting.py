"""What a user reads whose samples do not fit: a call of `numpy.savez` that Python takes."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from bundler.model.errors import UsageError
from bundler.model.signature import Port, Signature, ValueType
from bundler.onnxkit.fitting import check_samples

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
