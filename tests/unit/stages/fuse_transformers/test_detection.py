"""The model type is read from operators, names and producer; heads from the shapes that split them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from bundler.stages.fuse_transformers.detection import count_attentions, find_candidates
from bundler.stages.fuse_transformers.heads import find_heads
from tests.support import models
from tests.support.encoders import tiny_encoder


def first(model: ModelProto) -> str:
    return find_candidates(model)[0].model_type


def with_input(name: str, shape: list[object], element: int = TensorProto.FLOAT) -> ModelProto:
    model = tiny_encoder()
    model.graph.input.append(models.value(name, shape, element))
    return model


def with_node(operator: str, *inputs: str, **attributes: object) -> ModelProto:
    model = tiny_encoder()
    model.graph.node.append(helper.make_node(operator, list(inputs), [f"extra_{operator}"], **attributes))
    return model


def produced_by(name: str) -> ModelProto:
    model = tiny_encoder()
    model.producer_name = name
    return model


def picture(group: int = 1) -> ModelProto:
    model = with_node("Conv", "pixel_values", "kernel", group=group)
    model.graph.input.append(models.value("pixel_values", ["batch", 3, 32, 32]))
    return model


def rotary(*, root_mean_square: bool = False) -> ModelProto:
    model = with_node("Neg", "half")
    model.graph.node.append(helper.make_node("Concat", ["extra_Neg", "other"], ["turned"], axis=-1))
    if root_mean_square:
        model.graph.node.append(helper.make_node("SimplifiedLayerNormalization", ["turned", "w"], ["normal"]))
    return model


def quick() -> ModelProto:
    model = tiny_encoder()
    model.graph.initializer.append(models.tensor("quick", np.array(1.702, np.float32)))
    return model


@pytest.mark.parametrize(
    ("model", "model_type"),
    [
        (tiny_encoder(), "bert"),
        (tiny_encoder(opset=17), "bert"),
        (produced_by("tf2onnx"), "bert_tf"),
        (produced_by("keras2onnx"), "bert_keras"),
        (with_input("timestep", ["batch"]), "mmdit"),
        (with_input("image_embeddings", ["batch", 256, 64, 64]), "sam2"),
        (with_input("past_key_values.0.key", ["batch", 4, "past", 8]), "gpt2"),
        (with_input("encoder_hidden_states", ["batch", "source", 32]), "bart"),
        (with_node("Trilu", "scores"), "gpt2"),
        (with_node("SimplifiedLayerNormalization", "x", "w"), "t5"),
        (picture(), "vit"),
        (with_node("Conv", "x", "kernel", group=32), "conformer"),
        (rotary(), "phi"),
        (rotary(root_mean_square=True), "qwen3"),
        (quick(), "clip"),
    ],
)
def test_the_likeliest_type_comes_first(model: ModelProto, model_type: str) -> None:
    found = find_candidates(model)
    assert found[0].model_type == model_type
    assert len(found) <= 3
    assert all(item.reason for item in found)


@pytest.mark.parametrize(("name", "model_type"), [("timestep", "unet"), ("latent_sample", "vae")])
def test_convolutions_with_group_normalisation_are_diffusion(name: str, model_type: str) -> None:
    model = with_input(name, ["batch", 4, 8, 8])
    model.graph.node.append(helper.make_node("InstanceNormalization", ["x", "s", "b"], ["n"]))
    model.graph.node.append(helper.make_node("Conv", ["n", "k"], ["c"]))
    assert first(model) == model_type


@pytest.mark.parametrize(
    ("model", "count"), [(tiny_encoder(), 2), (tiny_encoder(layers=5), 5), (models.cnn(), 0), (models.mlp(), 0)]
)
def test_attentions_are_counted(model: ModelProto, count: int) -> None:
    assert count_attentions(model) == count


def test_a_softmax_over_classes_is_no_attention() -> None:
    model = models.mlp()
    last = model.graph.node[-1]
    model.graph.node.append(helper.make_node("Softmax", [last.output[0]], ["classes"], axis=-1))
    assert count_attentions(model) == 0


@pytest.mark.parametrize("split", ["heads", "rest"])
@pytest.mark.parametrize(("width", "heads"), [(32, 4), (48, 3), (32, 1)])
def test_heads_are_read_from_shapes(split: str, width: int, heads: int) -> None:
    assert find_heads(tiny_encoder(split=split, width=width, heads=heads)) == (heads, width)


def test_without_such_shapes_nothing_is_claimed() -> None:
    assert find_heads(models.cnn()) == (0, 0)
    assert find_heads(ModelProto()) == (0, 0)
