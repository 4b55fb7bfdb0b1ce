"""DirectML, CANN, native WebGPU, and the providers of builds of one's own."""

import pytest

from bundler.providers.availability import find_carrier
from bundler.providers.knowledge import ProviderKnowledge
from bundler.providers.registry import find_provider
from bundler.providers.values import normalize_value

DIRECTML = find_provider("directml")
CANN = find_provider("cann")
WEBGPU = find_provider("webgpu-native")


def problems(known: ProviderKnowledge, **options: str) -> list[str]:
    assert known.options.check is not None
    return [key for key, _ in known.options.check(options)]


def test_directml_is_given_the_words_that_it_knows():
    (rule,) = [rule for rule in DIRECTML.options.rules if rule.key == "disable_metacommands"]
    assert normalize_value(rule, "true") == "true"
    with pytest.raises(ValueError, match="one of true, false"):
        normalize_value(rule, "1")


def test_directml_device_is_chosen_once():
    assert problems(DIRECTML, device_id="1", performance_preference="high_performance") == ["performance_preference"]
    assert not problems(DIRECTML, performance_preference="high_performance")


def test_directml_is_in_two_packages_of_windows():
    assert find_carrier(DIRECTML, "onnxruntime-directml", "1.24.4", {}, "windows", "x64")
    assert find_carrier(DIRECTML, "onnxruntime-directml", "1.24.4", {}, "windows", "arm64") is None
    assert find_carrier(DIRECTML, "onnxruntime-windowsml", "1.30.0.202609102321", {}, "windows", "arm64")
    assert find_carrier(DIRECTML, "onnxruntime-directml", "1.24.4", {}, "linux", "x64") is None


def test_cann_options_that_would_do_nothing_are_refused():
    assert problems(CANN, enable_cann_graph="0", dynamic_batch_size="1,2") == ["dynamic_batch_size"]
    assert problems(CANN, dynamic_batch_size="1,2", dynamic_dims="1;2") == ["dynamic_dims"]
    assert problems(CANN, optypelist_for_implmode="Gelu") == ["optypelist_for_implmode"]
    assert not problems(CANN, optypelist_for_implmode="Gelu", op_select_impl_mode="high_performance")


def test_cann_rounds_unless_it_keeps_the_models_types():
    assert CANN.numerics.rounds is not None
    assert CANN.numerics.rounds({}) == "half"
    assert CANN.numerics.rounds({"precision_mode_v2": "origin"}) == "none"


def test_cann_is_in_its_own_package_up_to_1_24():
    assert find_carrier(CANN, "onnxruntime-cann", "1.24.4", {}, "linux", "arm64")
    assert find_carrier(CANN, "onnxruntime", "1.31.1", {}, "linux", "arm64") is None


def test_webgpu_stands_beside_the_plain_runtime():
    plugin = {"onnxruntime-ep-webgpu": "0.4.0"}
    carrier = find_carrier(WEBGPU, "onnxruntime", "1.31.1", plugin, "linux", "arm64")
    assert carrier is not None
    assert carrier.module == "onnxruntime_ep_webgpu"
    assert find_carrier(WEBGPU, "onnxruntime", "1.24.3", plugin, "linux", "x64") is None
    assert find_carrier(WEBGPU, "onnxruntime", "1.31.1", {}, "linux", "x64") is None


def test_webgpu_graph_capture_excludes_nodes_on_the_cpu():
    assert problems(WEBGPU, enableGraphCapture="1", forceCpuNodeNames="a\nb") == ["forceCpuNodeNames"]
    assert problems(WEBGPU, enableGraphCapture="1", enableInt64="0") == ["enableInt64"]
    assert not problems(WEBGPU, forceCpuNodeNames="a")


@pytest.mark.parametrize(("name", "flag"), [("onednn", "--use_dnnl"), ("acl", "--use_acl"), ("rknpu", "--use_rknpu")])
def test_what_needs_a_build_of_ones_own_says_which(name, flag):
    assert flag in find_provider(name).presence.gone


@pytest.mark.parametrize(("name", "release"), [("tvm", "1.21"), ("armnn", "1.25")])
def test_what_was_removed_says_since_when(name, release):
    known = find_provider(name)
    assert f"Release {release}" in known.presence.gone
    assert not known.presence.availability


def test_acl_shortcut_is_known_to_the_gate():
    acl = find_provider("acl")
    assert acl.numerics.rounds is not None
    assert (acl.numerics.rounds({}), acl.numerics.rounds({"enable_fast_math": "1"})) == ("none", "half")
