"""A model's structure without its weights: nothing but weights is lost, and what is linked can be found again."""

from __future__ import annotations

import contextlib
from pathlib import Path

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto

from bundler.model.errors import ModelError
from bundler.onnxkit.canonical.tensor_data import DataFolders, embed_data
from bundler.onnxkit.slim import read_without_weights
from bundler.onnxkit.structure import iterate_tensors, read_structure
from tests.support import models

KINDS = [models.cnn, models.if_model, models.loop_model, models.local_function, models.zipmap, models.scaler_pipeline]


def wide() -> ModelProto:
    """Weights well over what is kept, as initializers and in a Constant node."""
    model = models.mlp(width=64, hidden=64)
    constant = models.helper.make_node("Constant", [], ["unused"], value=models.tensor("c", models.weights(64, 64)))
    model.graph.node.insert(0, constant)
    return model


@pytest.mark.parametrize("make", KINDS)
def test_small_models_are_read_whole(tmp_path: Path, make) -> None:
    model = make()
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) > 4096:
            tensor.raw_data = b""
    assert ModelProto.FromString(read_without_weights(models.save(model, tmp_path))) == model


def test_large_weights_are_left_out_with_their_shapes_kept(tmp_path: Path) -> None:
    structure = read_structure(models.save(wide(), tmp_path))
    tensors = {tensor.name: tensor for tensor in iterate_tensors(structure)}
    assert list(tensors["w1"].dims) == [64, 64]
    assert not tensors["w1"].HasField("raw_data")
    assert not tensors["c"].HasField("raw_data")
    assert tensors["half"].HasField("raw_data")


def test_linked_weights_lead_back_to_the_file(tmp_path: Path) -> None:
    path = models.save(wide(), tmp_path)
    structure = read_structure(path, link=True)
    linked = [tensor for tensor in iterate_tensors(structure) if tensor.data_location == TensorProto.EXTERNAL]
    assert {tensor.name for tensor in linked} == {"w1", "c"}
    for tensor in linked:
        embed_data(tensor, DataFolders(path, tmp_path))
    assert structure == onnx.load(path)


def test_weights_that_are_explicitly_in_the_model_are_linked_too(tmp_path: Path) -> None:
    """`onnx.load` writes so what it read from external data, and with it ONNX Runtime's tools for quantisation."""
    model = wide()
    for tensor in iterate_tensors(model):
        tensor.data_location = TensorProto.DEFAULT
    structure = read_structure(models.save(model, tmp_path), link=True)
    linked = {tensor.name for tensor in iterate_tensors(structure) if tensor.data_location == TensorProto.EXTERNAL}
    assert linked == {"w1", "c"}


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 0.999))
def test_a_file_cut_anywhere_is_refused_or_read(tmp_path: Path, share: float) -> None:
    whole = models.cnn().SerializeToString()
    path = tmp_path / "cut.onnx"
    path.write_bytes(whole[: int(len(whole) * share)])
    with contextlib.suppress(ModelError):
        assert read_structure(path).HasField("graph")
