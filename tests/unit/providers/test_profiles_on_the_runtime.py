"""The runtime itself takes what the targets and the tables say."""

import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from bundler.profiles.resolve import resolve_target, target_ids
from bundler.providers.registry import find_provider, provider_names
from bundler.providers.session import SESSION_OPTIONS
from bundler.providers.session_config import SESSION_CONFIG


@pytest.fixture(scope="module")
def model() -> bytes:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", ports[:1], ports[1:])
    built: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return built.SerializeToString()


def set_option(options: onnxruntime.SessionOptions, key: str, value: object) -> None:
    kind = type(getattr(options, key))
    setattr(options, key, getattr(kind, value) if hasattr(kind, "__members__") else value)


def open_session(model: bytes, providers: list, session: dict, config: dict) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    for key, value in session.items():
        set_option(options, key, value)
    for key, value in config.items():
        options.add_session_config_entry(key, value)
    return onnxruntime.InferenceSession(model, options, providers=providers, disable_fallback=True)


NATIVE = [name for name in target_ids() if resolve_target(name).runtime.package == "onnxruntime"]
EVERYWHERE = {name for name in provider_names() if find_provider(name).graph.takes_fusions}
"""Providers that every flavour of the runtime has; the others need their device."""


@pytest.mark.parametrize("name", NATIVE)
def test_a_targets_session_opens_with_its_chain(model, name):
    for variant in resolve_target(name).variants:
        if not EVERYWHERE.issuperset(entry.name for entry in variant.providers):
            continue
        chain = [find_provider(entry.name).runtime_name for entry in variant.providers]
        session = open_session(model, chain, variant.session, variant.session_config)
        assert session.get_providers() == chain


CHOICES = [
    (rule.key, value) for rule in (*SESSION_OPTIONS, *SESSION_CONFIG) if not rule.decided for value in rule.values or ()
]


@pytest.mark.parametrize(("key", "value"), CHOICES)
def test_every_choice_of_the_tables_is_taken(model, key, value):
    attribute = key in {rule.key for rule in SESSION_OPTIONS}
    settings = {key: value}
    chain = [find_provider("cpu").runtime_name]
    session = open_session(model, chain, settings if attribute else {}, {} if attribute else settings)
    assert session.get_providers() == chain


BOUNDS = [
    (rule.key, int(bound))
    for rule in SESSION_CONFIG
    if rule.kind == "integer" and not rule.decided
    for bound in (rule.least, rule.most)
    if bound is not None
]


@pytest.mark.parametrize(("key", "value"), BOUNDS)
def test_the_bounds_of_every_entry_are_taken(model, key, value):
    assert open_session(model, [find_provider("cpu").runtime_name], {}, {key: str(value)})
