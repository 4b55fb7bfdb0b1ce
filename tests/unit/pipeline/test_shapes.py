"""Which of several models a given shape or state is for."""

from __future__ import annotations

import pytest

from bundler.model.errors import UsageError
from bundler.model.signature import Port, Signature, ValueType
from bundler.model.state import parse_state, show_state
from bundler.pipeline.shapes import choose_links, choose_owners

MODELS = {"det": ("image",), "rec": ("x", "lengths"), "cls": ("x",)}


def test_an_input_that_one_model_has_says_which_is_meant() -> None:
    assert choose_owners({"image": (1,), "lengths": (2,)}, MODELS) == {"image": "det", "lengths": "rec"}


def test_an_input_that_several_have_is_named_with_its_model() -> None:
    assert choose_owners({"rec:x": (1,), "cls:x": (2,)}, MODELS) == {"rec:x": "rec", "cls:x": "cls"}
    with pytest.raises(UsageError) as caught:
        choose_owners({"x": (1, 3)}, MODELS)
    assert caught.value.details[0] == "rec, cls have an input 'x': name one of them"
    assert caught.value.hint == "--shape rec:x=1,3 --shape cls:x=1,3"


def test_an_input_whose_own_name_has_a_colon_is_itself() -> None:
    assert choose_owners({"a:0": (1,)}, {"a": ("0", "y"), "b": ("a:0",)}) == {"a:0": "b"}


def test_an_input_that_no_model_has_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        choose_owners({"imge": (1,)}, MODELS)
    assert caught.value.details[0] == "no model has an input 'imge' (did you mean 'image'?)"
    assert "det has: image" in caught.value.details


def sign(inputs: str, outputs: str) -> Signature:
    kind = ValueType(element_type="float32", shape=(1, 4))
    ports = ([Port(name=name, type=kind, optional=False) for name in names.split()] for names in (inputs, outputs))
    return Signature(inputs=tuple(next(ports)), outputs=tuple(next(ports)))


SIGNATURES = {"hear": sign("x h0", "y hn"), "speak": sign("x h0", "y hn"), "find": sign("x", "y")}


def links(*texts: str) -> dict[str, tuple[str, ...]]:
    return {name: show_state(found) for name, found in choose_links(parse_state(texts), SIGNATURES).items()}


def test_a_state_is_linked_in_each_component_that_has_it() -> None:
    assert links("h0=hn,initial=0.5") == {"hear": ("h0=hn,initial=0.5",), "speak": ("h0=hn,initial=0.5",), "find": ()}


def test_a_state_that_names_a_component_is_linked_there_only() -> None:
    assert links("speak:h0=hn") == {"hear": (), "speak": ("h0=hn",), "find": ()}


@pytest.mark.parametrize("text", ["h0=hm", "x=hidden", "find:h0=hn", "other:h0=hn"])
def test_a_state_that_no_component_has_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no component has the state") as caught:
        links("h0=hn", text)
    assert "find has the inputs x and the outputs y" in caught.value.details
    assert "NAME:INPUT=OUTPUT" in caught.value.hint
