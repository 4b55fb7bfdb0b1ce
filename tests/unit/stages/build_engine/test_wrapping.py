"""The model around an engine: one node, the interface of the original, what the provider reads."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto, helper

from bundler.onnxkit.signatures import check_interface, model_signature
from bundler.stages.build_engine.wrapping import STATEMENT, default_inputs, wrap_engine
from tests.support import models
from tests.support.encoders import tiny_encoder

ENGINE = bytes(range(256)) * 4
PROVIDER = "SomeExecutionProvider"


def wrap(model: ModelProto, file: str = "engine.bin") -> ModelProto:
    return wrap_engine(model, memoryview(ENGINE), PROVIDER, "1.7.1.116", devices="SM86,SM89", file=file)


def attributes(model: ModelProto) -> dict[str, object]:
    return {item.name: helper.get_attribute_value(item) for item in model.graph.node[0].attribute}


@pytest.mark.parametrize("make", [models.cnn, models.mlp, models.token_encoder, tiny_encoder])
def test_the_interface_stays_and_the_checker_agrees(make: object) -> None:
    source: ModelProto = make()  # type: ignore[operator]
    wrapped = wrap(source)
    check_interface(source, wrapped)
    assert model_signature(wrapped) == model_signature(source)
    onnx.checker.check_model(wrapped)


def test_the_node_says_where_the_engine_is_and_who_opens_it() -> None:
    wrapped = wrap(models.cnn())
    (node,) = wrapped.graph.node
    assert (node.op_type, node.domain) == ("EPContext", "com.microsoft")
    found = attributes(wrapped)
    assert (found["embed_mode"], found["ep_cache_context"]) == (0, b"engine.bin")
    assert (found["source"], found["hardware_architecture"]) == (PROVIDER.encode(), b"SM86,SM89")
    assert found["partition_name"] == node.name.encode()


def test_the_engine_can_be_inside() -> None:
    found = attributes(wrap(models.cnn(), file=""))
    assert (found["embed_mode"], found["ep_cache_context"]) == (1, ENGINE)


def test_the_header_stands_in_the_metadata_and_a_statement_of_another_compiler_goes() -> None:
    source = models.cnn()
    helper.set_model_props(source, {"author": "me", STATEMENT + "Other": "old"})
    kept = {entry.key: entry.value for entry in wrap(source).metadata_props}
    assert kept == {"author": "me", STATEMENT + PROVIDER: ENGINE[:64].hex()}


def test_weights_are_no_inputs_of_the_engine() -> None:
    wrapped = wrap(models.old_ir())
    assert [info.name for info in wrapped.graph.input] == ["x"]
    assert not wrapped.graph.initializer


def test_default_values_are_built_in() -> None:
    source = models.overridable()
    assert default_inputs(source) == ("scale",)
    assert list(wrap(source).graph.node[0].input) == ["x"]
    assert default_inputs(models.old_ir()) == ()
