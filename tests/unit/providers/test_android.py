"""NNAPI's flags, and XNNPACK."""

from bundler.providers.availability import find_carrier
from bundler.providers.registry import find_provider
from bundler.providers.values import as_entry, normalize_value

NNAPI = find_provider("nnapi")
XNNPACK = find_provider("xnnpack")


def test_flags_have_the_names_of_the_javascript_interface_and_say_which_they_are():
    flags = {rule.key: rule.meaning.split(":")[0] for rule in NNAPI.options.rules}
    assert flags == {
        "cpuDisabled": "Flag CPU_DISABLED",
        "cpuOnly": "Flag CPU_ONLY",
        "useFP16": "Flag USE_FP16",
        "useNCHW": "Flag USE_NCHW",
    }
    assert [as_entry(normalize_value(rule, value=True)) for rule in NNAPI.options.rules] == ["1"] * 4


def test_the_runtime_refuses_both_flags_of_the_cpu_and_so_do_we():
    assert NNAPI.options.check is not None
    assert [key for key, _ in NNAPI.options.check({"cpuDisabled": "1", "cpuOnly": "1"})] == ["cpuOnly"]
    assert not list(NNAPI.options.check({"cpuDisabled": "1", "cpuOnly": "0"}))


def test_the_gate_knows_when_it_computes_in_half_precision():
    assert NNAPI.numerics.rounds is not None
    assert NNAPI.numerics.rounds({}) == "none"
    assert NNAPI.numerics.rounds({"useFP16": "1"}) == "half"


def test_stale_keys_are_answered():
    assert NNAPI.options.replaced["use_fp16"] == "`useFP16`"
    assert NNAPI.options.replaced["execution_mode"] == "`session.execution_mode`"


def test_both_are_in_the_android_package_and_not_on_a_desktop():
    for known in (NNAPI, XNNPACK):
        assert find_carrier(known, "onnxruntime-android", "1.31.1", {}, "android", "arm64")
        assert find_carrier(known, "onnxruntime", "1.31.1", {}, "linux", "arm64") is None
    assert find_carrier(XNNPACK, "onnxruntime-c", "1.24.2", {}, "ios", "arm64")


def test_nnapi_is_deprecated_and_says_so():
    assert "Android 15" in NNAPI.presence.gone
