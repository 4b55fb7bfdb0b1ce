"""Which of several models a given shape is for."""

from __future__ import annotations

import pytest

from bundler.model.errors import UsageError
from bundler.pipeline.shapes import choose_owners

MODELS = {"det": ("image",), "rec": ("x", "lengths"), "cls": ("x",)}


def test_an_input_that_one_model_has_says_which_is_meant() -> None:
    assert choose_owners({"image": (1,), "lengths": (2,)}, MODELS) == {"image": "det", "lengths": "rec"}


def test_an_input_that_several_have_is_named_with_its_model() -> None:
    assert choose_owners({"rec:x": (1,), "cls:x": (2,)}, MODELS) == {"rec:x": "rec", "cls:x": "cls"}
    with pytest.raises(UsageError) as caught:
        choose_owners({"x": (1, 3)}, MODELS)
    assert caught.value.details[0] == "rec, cls have an input 'x': say which is meant"
    assert caught.value.hint == "--shape rec:x=1,3 --shape cls:x=1,3"


def test_an_input_whose_own_name_has_a_colon_is_itself() -> None:
    assert choose_owners({"a:0": (1,)}, {"a": ("0", "y"), "b": ("a:0",)}) == {"a:0": "b"}


def test_an_input_that_no_model_has_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        choose_owners({"imge": (1,)}, MODELS)
    assert caught.value.details[0] == "no model has an input 'imge' (did you mean 'image'?)"
    assert "det has: image" in caught.value.details
