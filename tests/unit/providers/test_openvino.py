"""What a user gets who sets options of OpenVINO: what the plugin would ignore or stumble over is reported before."""

import json

import pytest

from bundler.providers.openvino import PROVIDER


def check(**options: str) -> list[tuple[str, str]]:
    assert PROVIDER.options.check is not None
    return list(PROVIDER.options.check(options))


def config(value: object) -> dict[str, str]:
    return {"load_config": json.dumps(value)}


@pytest.mark.parametrize("device", ["CPU", "GPU", "GPU.1", "NPU"])
def test_devices_that_a_plugin_can_be_given(device):
    assert check(device_type=device) == []


@pytest.mark.parametrize("device", ["", "TPU", "GPU.", "GPU.1234", "AUTO", "CPU,GPU", "CPU\n", "GPU.\u0661"])
def test_other_devices_are_refused(device):
    [(key, text)] = check(device_type=device)
    assert key == "device_type"
    assert "CPU, GPU, GPU.1, NPU" in text


def test_a_device_in_small_letters_is_put_right():
    assert check(device_type="npu")[0][1].endswith('write "NPU"')


def test_a_good_configuration_is_accepted():
    assert check(**config({"CPU": {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 2}})) == []
    assert check(device_type="GPU.1", **config({"GPU": {"MODEL_PRIORITY": "HIGH"}})) == []
    assert check(**config({})) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/etc/openvino.json", "is the JSON text itself, not a file's name"),
        ("", "is the JSON text itself"),
        ("[1]", "is the JSON text itself"),
        ("{", "is not valid JSON"),
        ('{"CPU": 1}', "expected an object of properties for 'CPU'"),
        ('{"CPU": {"NUM_STREAMS": }}', "is not valid JSON"),
        ('{"a":' * 100_000, "is not valid JSON"),
    ],
)
def test_what_is_no_configuration_is_reported(text, wanted):
    [(key, reported)] = check(load_config=text)
    assert key == "load_config"
    assert reported.startswith(wanted)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"GPU": {"NUM_STREAMS": "1"}}, "GPU is not the chosen device"),
        ({"cpu": {"NUM_STREAMS": "1"}}, 'did you mean "CPU"?'),
        ({"CPU": {"NUM_STREAM": "1"}}, 'did you mean "NUM_STREAMS"?'),
        ({"CPU": {"INFERENCE_PRECISION_HINT": "FP32"}}, "is one of f32, f16, bf16, dynamic, not 'FP32'"),
        ({"CPU": {"CACHE_DIR": "/tmp"}}, "CACHE_DIR names a folder of one machine"),  # noqa: S108 - a text
    ],
)
def test_what_has_no_effect_or_ends_the_session_is_reported(value, wanted):
    [(_, reported)] = check(**config(value))
    assert wanted in reported


def test_a_property_that_is_not_known_here_is_left_to_openvino():
    assert check(device_type="NPU", **config({"NPU": {"NPU_TILES": "2"}})) == []


@pytest.mark.parametrize("shape", ["x[1,3,224,224]", "x[1,3],y[1..4,8]"])
def test_fixed_shapes_are_accepted(shape):
    assert check(reshape_input=shape) == []


@pytest.mark.parametrize("shape", ["x", "x[]", "[1,3]", "x[1,3", "x[a]"])
def test_other_shapes_are_reported(shape):
    assert [key for key, _ in check(reshape_input=shape)] == ["reshape_input"]


@pytest.mark.parametrize(
    ("options", "rounds"),
    [
        ({}, "bfloat16"),
        (config({"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}), "none"),
        (config({"CPU": {"EXECUTION_MODE_HINT": "ACCURACY"}}), "none"),
        (config({"CPU": {"INFERENCE_PRECISION_HINT": "bf16"}}), "bfloat16"),
        (config({"GPU": {"INFERENCE_PRECISION_HINT": "f32"}}), "bfloat16"),
        ({"device_type": "GPU.1"} | config({"GPU": {"INFERENCE_PRECISION_HINT": "f32"}}), "none"),
        ({"device_type": "NPU"}, "half"),
        ({"load_config": "no JSON"}, "bfloat16"),
    ],
)
def test_the_device_computes_in_fewer_bits_unless_reported_not_to(options, rounds):
    assert PROVIDER.numerics.rounds is not None
    assert PROVIDER.numerics.rounds(options) == rounds


def test_what_the_plugin_ignores_is_replaced():
    for key in ("precision", "num_of_threads", "num_streams", "model_priority"):
        assert "load_config" in PROVIDER.options.replaced[key]


def test_the_device_is_chosen_by_what_the_plugin_says_of_it():
    assert PROVIDER.presence.select == {"ov_device": "CPU"}
    assert PROVIDER.presence.select_by == {"device_type": "ov_device"}


def test_it_is_compiled_on_the_device_unless_asked():
    assert PROVIDER.compiler is not None
    assert not PROVIDER.compiler.by_default
    assert PROVIDER.deferral is not None
    assert PROVIDER.deferral.kind == "context"
