"""A bundle promises no size that its model refused."""

from __future__ import annotations

from typing import Any

import pytest

from bundler.model.errors import StageError
from bundler.model.fixing import correct_shapes, find_contradicted
from bundler.model.golden_inputs import RefusedSize, TriedDimension
from bundler.model.requirements import FixedSize
from bundler.model.signature import Port, Signature, ValueType
from bundler.pipeline.assemble import _compiled, fix_signature
from bundler.pipeline.only_sizes import find_only_sizes


def port(name: str, *shape: Any) -> Port:
    return Port(name=name, type=ValueType(element_type="float32", shape=shape))


def tried(symbol: str, name: str, axis: int, sizes: tuple[int, ...], *refused: int) -> TriedDimension:
    reasons = tuple(RefusedSize(size=size, reason="no") for size in refused)
    return TriedDimension(label="", symbol=symbol, port=name, axis=axis, sizes=sizes, refused=reasons)


OPEN = Signature(inputs=(port("x", "batch", 3, None, None),), outputs=(port("y", "batch", None),))


def test_named_and_unnamed_dimensions_of_one_size_are_published_so() -> None:
    found = find_only_sizes([tried("batch", "x", 0, (1,), 2, 3), tried("", "x", 2, (224,), 192)], OPEN)
    assert [(size.size, size.by, size.axes) for size in found] == [
        (1, "model", {"x": (0,)}),
        (224, "model", {"x": (2,)}),
    ]
    fixed = fix_signature(OPEN, found)
    assert fixed.inputs[0].type.shape == (1, 3, 224, None)
    assert fixed.outputs[0].type.shape == (1, None)


def test_what_was_not_refused_stays_open() -> None:
    sizes = [tried("batch", "x", 0, (1, 2), 4), tried("", "x", 2, (224,))]
    assert find_only_sizes(sizes, OPEN) == find_only_sizes([], OPEN) == ()
    assert fix_signature(OPEN, ()) == OPEN


@pytest.mark.parametrize(
    ("declared", "given", "true"),
    [
        ((1,), [(1,), (2,)], (None,)),  # a converter's label of each row
        ((), [(2,)], None),
        (("batch",), [(1,), (3,)], (None,)),  # the inputs have 1 and 2 of what this size is named after
        (("batch", 3), [(1, 3), (2, 3)], ("batch", 3)),
        (("batch", 3), [(1, 3), (2, 4)], ("batch", None)),
        (("other", None), [(7, 1), (5, 2)], ("other", None)),
        (None, [(1, 2), (3,)], None),
    ],
)
def test_no_size_is_published_that_the_golden_set_contradicts(declared: Any, given: Any, true: Any) -> None:
    output = Port(name="y", type=ValueType(element_type="float32", shape=declared))
    signature = Signature(inputs=(port("x", "batch", 4),), outputs=(output,))
    samples = [{"x": (count, 4), "y": shape} for count, shape in enumerate(given, 1)]
    found = find_contradicted(signature, samples)
    assert found == ({} if true == declared else {"y": true})
    assert correct_shapes(signature, found).outputs[0].type.shape == true


def test_sizes_of_inputs_that_share_a_name_and_differ_are_published_without_it() -> None:
    """A singing model names its phonemes and its notes alike: the loaders refused the only inputs that it has."""
    ports = (port("phonemes", "n"), port("notes", "batch", "n"), port("rest", "batch", 4))
    signature = Signature(inputs=ports, outputs=(port("y", "batch"), port("z", "n")))
    found = find_contradicted(
        signature,
        [
            {"phonemes": (3,), "notes": (1, 3), "rest": (1, 4), "y": (1,), "z": (3,)},
            {"phonemes": (8,), "notes": (1, 4), "rest": (1, 4), "y": (1,), "z": (8,)},
        ],
    )
    assert found == {"phonemes": (None,), "notes": ("batch", None), "z": (None,)}
    fixed = fix_signature(signature, [FixedSize(name="batch", size=1, by="user", axes={"notes": (0,), "rest": (0,)})])
    shapes = [one.type.shape for one in correct_shapes(fixed, found).inputs]
    assert shapes == [(None,), (1, None), (1, 4)]


FACTS = {"provider": "AcmeExecutionProvider", "devices": ["57"], "sdk": "2.1", "assigned": 3, "left": 0}


def test_the_devices_of_a_compiled_model_are_read() -> None:
    found = _compiled("npu/acme_compile", FACTS)
    assert (found.devices, found.sdk, found.statement) == (("57",), "2.1", "")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"devices": None}, "of the wrong type"),
        ({"sdk": 2}, "of the wrong type"),
        ({"devices": "57"}, "of the wrong type"),
    ],
)
def test_a_stage_that_names_no_devices_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(StageError, match=f"npu/acme_compile compiled a model and did not record its target.*{reason}"):
        _compiled("npu/acme_compile", {**FACTS, **change})
