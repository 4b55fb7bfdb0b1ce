"""Seeded values fit the signature, reach both sides of what the graph compares, and are the same everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from bundler.model.free_dimensions import Sizes, assign_sizes, free_dimensions
from bundler.model.signature import Port, Signature, ValueType
from bundler.onnxkit.compared_constants import compared_constants, find_masks
from bundler.onnxkit.digests import digest_values
from bundler.onnxkit.equality import same_value
from bundler.onnxkit.fitting import sample_problems
from bundler.onnxkit.index_bounds import index_bounds
from bundler.onnxkit.seeded_inputs import Maker, ValueHints
from tests.support import models, open_models


def tensor_port(name: str, kind: str, *shape: Any) -> Port:
    return Port(name=name, type=ValueType(element_type=kind, shape=shape))


def make(*ports: Port, sizes: Sizes | None = None, **hints: Any) -> Maker:
    signature = Signature(inputs=ports, outputs=())
    return Maker(signature=signature, sizes=sizes or Sizes(), hints=ValueHints(**hints))


def eight(maker: Maker, name: str) -> list[Any]:
    return [maker.make(0, index)[name] for index in range(8)]


def test_floats_come_at_three_scales() -> None:
    samples = eight(make(tensor_port("x", "float32", 64, 64)), "x")
    spreads = sorted(round(float(values.std()), 1) for values in samples)
    assert spreads == [0.3, 0.3, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0]
    assert sum(values.min() >= 0 for values in samples) == 2


@pytest.mark.parametrize("kind", ["int64", "float32", "bool", "int8", "float16", "bfloat16"])
def test_masks_end_in_padding_and_every_sample_has_a_full_row(kind: str) -> None:
    for mask in eight(make(tensor_port("attention_mask", kind, 2, 16)), "attention_mask"):
        rows = np.asarray(mask, np.float32)
        assert (np.diff(rows, axis=1) <= 0).all(), "ones, then zeros"
        assert (rows[:, 0] == 1).all(), "no row is all padding"
        assert (rows.min(axis=1) == 1).sum() >= 1


def test_one_row_is_full_in_some_samples_and_padded_in_others() -> None:
    masks = eight(make(tensor_port("mask", "int64", 1, 16)), "mask")
    assert [bool(mask.all()) for mask in masks][::2] == [True] * 4
    assert not all(mask.all() for mask in masks)


def test_where_the_name_says_padding_truth_is_what_is_left_out() -> None:
    masks = eight(make(tensor_port("key_padding_mask", "bool", 2, 16)), "key_padding_mask")
    assert not any(mask[:, 0].any() for mask in masks)
    assert any(mask.any() for mask in masks)


def test_a_single_truth_value_takes_both() -> None:
    maker = make(tensor_port("first", "bool"), tensor_port("second", "bool", 1))
    pairs = {(bool(maker.make(0, index)["first"]), bool(maker.make(0, index)["second"][0])) for index in range(4)}
    assert len(pairs) == 4


def test_integers_take_the_range_that_the_graph_implies() -> None:
    model = models.token_encoder(vocabulary=1000)
    bounds = index_bounds(model, ("input_ids",))
    assert bounds == {"input_ids": 1000}
    ids = np.concatenate(eight(make(tensor_port("input_ids", "int64", 4, 64), bounds=bounds), "input_ids"))
    assert ids.max() > 950
    assert ids.min() >= 0


def test_a_sample_rate_is_one_that_the_model_compares_with() -> None:
    compared = compared_constants(open_models.recurrent_audio(), ("samples", "state", "sr"))
    assert compared == {"sr": (16000, 8000)}
    rates = [int(value) for value in eight(make(tensor_port("sr", "int64"), compared=compared), "sr")]
    assert rates == [16000, 16000, 8000, 8000] * 2


def test_a_mask_is_known_by_its_use_where_it_has_no_name() -> None:
    nodes = [
        helper.make_node("Unsqueeze", ["onnx::Unsqueeze_1", "axis"], ["wide"]),
        helper.make_node("Cast", ["wide"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["one", "number"], ["hidden"]),
        helper.make_node("Cast", ["flags"], ["truths"], to=TensorProto.BOOL),
        helper.make_node("Sub", ["ids", "one_id"], ["fewer"]),
    ]
    numbers = {"axis": np.array([1]), "one": np.array(1, np.float32), "one_id": np.array(1)}
    constants = tuple(models.tensor(name, values) for name, values in numbers.items())
    names = ("onnx::Unsqueeze_1", "flags", "ids")
    inputs = [models.value(name, [2, 16], TensorProto.INT64) for name in names]
    masks = find_masks(models.make_model(nodes, inputs, [models.value("hidden", None)], constants), names)
    assert masks == {"onnx::Unsqueeze_1", "flags"}
    for mask in eight(make(tensor_port("flags", "int64", 2, 16), masks=masks), "flags"):
        assert (np.diff(mask, axis=1) <= 0).all(), "ones, then zeros"


def test_what_is_ordered_is_met_on_both_sides() -> None:
    compared = compared_constants(open_models.chosen_by_steps(50), ("steps",))
    assert compared == {"steps": (50, 51, 49)}
    steps = {int(value) for value in eight(make(tensor_port("steps", "int64"), compared=compared), "steps")}
    assert steps == {49, 50, 51}


def test_ids_that_are_compared_stay_inside_their_table() -> None:
    maker = make(tensor_port("ids", "int64", 4, 64), bounds={"ids": 10}, compared={"ids": (9, 4, -100, 49407)})
    ids = np.concatenate(eight(maker, "ids"))
    assert (ids.min(), ids.max()) == (0, 9)
    assert (ids == 9).mean() > 1.3 * (ids == 3).mean(), "constants come more often than others"


def test_lengths_are_those_of_the_tensors_beside_them() -> None:
    maker = make(tensor_port("x", "float32", 3, "time", 8), tensor_port("x_lengths", "int64", 3))
    for lengths in eight(maker, "x_lengths"):
        assert lengths.max() == 16
        assert lengths.min() >= 8


def test_plain_samples_have_no_padding_and_take_one_way() -> None:
    signature = Signature(inputs=(tensor_port("mask", "int64", 2, 8), tensor_port("go", "bool")), outputs=())
    maker = Maker(signature=signature, sizes=Sizes(), hints=ValueHints(), plain=True)
    assert all(values.all() for name in ("mask", "go") for values in eight(maker, name))


def test_the_bytes_of_a_sample_are_known_before_it_is_made() -> None:
    maker = make(tensor_port("x", "float32", "batch", 3, 320, 320), sizes=Sizes(batch=16000))
    assert maker.count_bytes() == 16000 * 3 * 320 * 320 * 4


def test_sums_follow_their_parts() -> None:
    ports = (tensor_port("past", "float32", 1, "past_len", 4), tensor_port("mask", "int64", 1, "past_len + 3"))
    assert assign_sizes(Signature(inputs=ports, outputs=()), Sizes(), {"past_len": 5}) == {
        "past_len": 5,
        "past_len + 3": 8,
    }


def test_the_axes_of_a_state_are_not_taken_for_lengths() -> None:
    ports = (
        tensor_port("state", "float32", 2, None, 128),
        tensor_port("h0", "float32", 1, None, 64),
        tensor_port("features", "float32", 1, None, 80),
    )
    roles = [item.role for item in free_dimensions(Signature(inputs=ports, outputs=()))]
    assert roles == ["batch", "batch", "length"]


NAMES = st.one_of(
    st.sampled_from(
        ["batch", "BATCH ", "n", "seq + 1", "+", "a + ²", "٣ + b", "9" * 5000 + " + a", "-1", "x[0]", "\x1b[31m", "💥"]
    ),
    st.text(max_size=12),
)
DIMENSIONS = st.one_of(st.none(), NAMES.filter(bool), st.integers(0, 4), st.sampled_from([2**31, 2**62, 10**30]))
KINDS = st.sampled_from(["float32", "float16", "bfloat16", "int64", "uint8", "int4", "bool", "str", "float8_e4m3fn"])
PORTS = st.tuples(
    st.one_of(st.sampled_from(["mask", "pad_mask", "lengths", "ids", "state"]), st.text(min_size=1, max_size=8)),
    KINDS,
    st.one_of(st.none(), st.lists(DIMENSIONS, max_size=5).map(tuple)),
)


@settings(max_examples=300, deadline=None)
@given(
    ports=st.lists(PORTS, max_size=4, unique_by=lambda port: port[0]),
    bounds=st.integers(0, 2**63),
    constants=st.lists(st.integers(-(2**63) + 1, 2**63 - 1), max_size=3).map(tuple),
    index=st.integers(0, 20),
    plain=st.booleans(),
)
def test_hostile_signatures_give_values_that_fit_or_are_known_to_be_too_large(
    ports: list[tuple[str, str, Any]], bounds: int, constants: tuple[int, ...], index: int, *, plain: bool
) -> None:
    inputs = tuple(Port(name=name, type=ValueType(element_type=kind, shape=shape)) for name, kind, shape in ports)
    signature = Signature(inputs=inputs, outputs=())
    names = [port.name for port in inputs]
    hints = ValueHints(bounds=dict.fromkeys(names, bounds), compared=dict.fromkeys(names, constants))
    maker = Maker(signature=signature, sizes=Sizes(space=2, length=3), hints=hints, plain=plain)
    assert all(item.label.isprintable() for item in free_dimensions(signature))
    if maker.count_bytes() > 1 << 20:
        return
    values = maker.make(0, index)
    assert not list(sample_problems(values, Signature(inputs=tuple(map(_ranked, inputs)), outputs=())))
    assert digest_values(values) == digest_values(maker.make(0, index))
    assert all(same_value(values[name], values[name]) for name in names)


def _ranked(port: Port) -> Port:
    """A tensor of unknown rank is given as a single value."""
    return Port(name=port.name, type=ValueType(element_type=port.type.element_type, shape=port.type.shape or ()))
