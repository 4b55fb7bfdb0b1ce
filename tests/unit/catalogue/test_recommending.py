"""Why a target suits a model is said in words that a person can act on."""

from collections.abc import Iterator

import pytest

from bundler.catalogue import recommending
from bundler.catalogue.recommending import (
    FAMILIES,
    describe_light,
    explain_fit,
    family_targets,
    suggest_sizes,
)
from bundler.model.signature import Port, Signature, ValueType
from bundler.planning.devices import computed_loss
from bundler.planning.traits import explain_rounding
from bundler.profiles.resolve import resolve_target, target_ids
from bundler.profiles.schema import Platform, Precision
from tests.support.facts import make_facts
from tests.unit.profiles.devices import CPU, make_target, make_variant, register_known

HTP = make_variant("htp", "npu", options={"half": True}, calibrated="static-int8")


@pytest.fixture(autouse=True)
def providers() -> Iterator[None]:
    with register_known():
        yield


def explain(profile, **changes):
    return list(explain_fit(make_facts(**changes), profile))


def test_a_float_model_for_an_npu(snapshot):
    assert explain(make_target(HTP, CPU)) == snapshot


def test_a_quantised_model_for_an_npu(snapshot):
    assert explain(make_target(HTP, CPU), quantized=True) == snapshot


def test_eight_bit_operators_that_an_npu_may_leave_are_reported():
    lines = explain(make_target(HTP), operators={"QLinearConv": 9, "ai.onnx.ml.Scaler": 1}, quantized=True)
    assert any("may not support the model's integer operators (QLinearConv)" in line for line in lines)
    assert not any("the model is used unchanged" in line for line in lines)


def test_a_target_whose_work_is_left_to_the_device(snapshot):
    profile = make_target(make_variant("trt", "engine"), CPU, budget={}, dimensions={"batch": 1})
    assert explain(profile) == snapshot


def test_what_a_bundle_does_not_hold_is_no_reason_for_it():
    lines = explain(make_target(make_variant("old", "museum", custom_build=True), CPU))
    assert not [line for line in lines if "Museum" in line]


def test_a_method_of_the_profile_is_reported():
    lines = explain(make_target(CPU, precision=Precision(method="weights-8bit")))
    assert "cpu: converted to 8-bit weights of matrix products" in lines


def test_operators_that_stay_with_the_cpu_are_reported():
    lines = explain(make_target(HTP), control_flow=True, custom_domains=("com.example",))
    assert "operators of com.example are not standard: it only runs where the runtime has them" in lines
    assert any("loops and branches run on the CPU" in line for line in lines)


def test_only_accelerators_with_fixed_sizes_ask_for_dimensions():
    assert suggest_sizes(make_facts(), make_target(CPU)).dimensions == {}
    assert suggest_sizes(make_facts(), make_target(HTP)).dimensions == {"batch": "1"}
    assert suggest_sizes(make_facts(), make_target(HTP, dimensions={"batch": 4})).dimensions == {}


def test_inputs_with_unnamed_sizes_get_a_whole_shape() -> None:
    ports = tuple(
        Port(name=name, type=ValueType(element_type="float32", shape=shape))
        for name, shape in (("x", (None, 3, None, "width")), ("mask", ("width", "rows")))
    )
    facts = make_facts(signature=Signature(inputs=ports, outputs=()))
    found = suggest_sizes(facts, make_target(HTP))
    assert (found.dimensions, found.shapes) == ({"rows": "N"}, {"x": ("1", "3", "N", "N")})
    assert found.options() == ("--dim", "rows=N", "--shape", "x=1,3,N,N")
    assert suggest_sizes(facts, make_target(HTP, dimensions={"width": 4})).shapes == {"x": ("1", "3", "N", "?")}
    assert suggest_sizes(facts, make_target(HTP, shapes={"x": "1,3,8,8"})).shapes == {}


@pytest.mark.parametrize(
    ("name", "size"), [("N", "1"), ("batch_size", "1"), ("sequence_length", "128"), ("height", "N"), ("x y", "N")]
)
def test_a_size_is_suggested_where_it_can_be_guessed(name, size):
    assert recommending._suggest_size(name, make_target(HTP)) == size


@pytest.mark.parametrize(
    ("operators", "light"),
    [
        ({"ai.onnx.ml.TreeEnsembleClassifier": 1}, True),
        ({"Relu": 4, "Add": 2}, True),
        ({"Conv": 4}, False),
        ({"QLinearMatMul": 4}, False),
        ({"com.microsoft.MultiHeadAttention": 4}, False),
        ({"com.microsoft.MatMulNBits": 4}, False),
        ({"MatMulInteger": 1}, False),
        ({"DynamicQuantizeLSTM": 1}, False),
    ],
)
def test_models_that_no_accelerator_makes_faster(operators, light):
    assert bool(describe_light(make_facts(operators=operators))) is light


def test_light_models_are_sent_to_the_cpu():
    phone, browser, *_, gpu = FAMILIES
    trees = make_facts(operators={"ai.onnx.ml.TreeEnsembleRegressor": 1})
    assert family_targets(phone, trees) == ("android-arm64",)
    assert family_targets(browser, trees) == ("web-wasm",)
    assert family_targets(gpu, trees) == ()
    assert family_targets(browser, make_facts())[0] == "web-webgpu"


def test_a_tiny_perceptron_is_light_and_a_tiny_filter_is_not():
    assert describe_light(make_facts(operators={"MatMul": 2}, weight_bytes=800))
    assert not describe_light(make_facts(operators={"Conv": 2}, weight_bytes=800))


def test_what_free_sizes_leave_to_the_device_is_not_said_to_be_compiled_here():
    engine = make_variant("engine", "ranges")
    assert any(
        "compiled by bundler where sizes are fixed (--dim, --shape), else on the device" in line
        for line in explain(make_target(engine))
    )
    ranged = make_variant("engine", "ranges", options={"least": "x:1", "most": "x:8"})
    for profile in (make_target(engine, dimensions={"batch": 1}), make_target(ranged)):
        assert any(line.endswith("compiled by bundler, not on the device") for line in explain(profile))


@pytest.mark.parametrize(("capability", "reported"), [(None, True), ("8.0", True), ("12.0", True), ("7.5", False)])
@pytest.mark.parametrize("provider", ["cuda", "tensorrt"])
def test_only_gpus_that_have_tf32_are_said_to_compute_in_it(provider, capability, reported):
    platform = Platform(system="linux", architecture="x64", compute_capability=capability)
    lines = explain(make_target(make_variant("gpu", provider), platform=platform))
    assert any("may compute in TF32 (10 bits of fraction)" in line for line in lines) is reported
    assert not any("half precision" in line for line in lines)


@pytest.mark.parametrize(("target", "loss"), [("t4", "none"), ("a10", "half"), ("l4", "half")])
def test_a_gpu_without_tf32_is_held_to_the_gate_of_what_loses_nothing(target, loss):
    profile = resolve_target(target)
    found = {v.name: computed_loss(profile, v, "none") for v in profile.variants if v.name in ("cuda", "tensorrt")}
    assert found == {"cuda": loss, "tensorrt": loss}


@pytest.mark.parametrize("target", target_ids())
def test_what_is_reported_of_a_device_is_what_its_answers_are_held_to(target):
    profile = resolve_target(target)
    words = {"none": "", "half": ("half precision", "TF32"), "bfloat16": "bfloat16"}
    for variant in profile.variants:
        reported, wanted = explain_rounding(profile, variant), words[computed_loss(profile, variant, "none")]
        assert bool(reported) is bool(wanted)
        assert any(word in reported for word in ([wanted] if isinstance(wanted, str) else wanted))
