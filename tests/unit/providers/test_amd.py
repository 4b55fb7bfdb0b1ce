"""AMD's providers: MIGraphX, ROCm, Vitis AI."""

from bundler.providers.availability import find_carrier
from bundler.providers.registry import find_provider

MIGRAPHX = find_provider("migraphx")
VITISAI = find_provider("vitisai")


def problems(**options: str) -> list[str]:
    assert MIGRAPHX.options.check is not None
    return [key for key, _ in MIGRAPHX.options.check(options)]


def test_two_precisions_at_once_are_refused():
    assert problems(migraphx_fp16_enable="1", migraphx_bf16_enable="1") == ["migraphx_bf16_enable"]
    assert not problems(migraphx_fp16_enable="1", migraphx_bf16_enable="0")


def test_eight_bits_need_a_table_and_a_table_needs_eight_bits():
    table = "migraphx_int8_calibration_table_name"
    assert problems(migraphx_int8_enable="1") == ["migraphx_int8_enable"]
    assert problems(**{table: "ranges.json"}) == [table]
    assert not problems(migraphx_int8_enable="1", **{table: "ranges.json"})


def test_the_gate_knows_when_the_device_rounds():
    assert MIGRAPHX.numerics.rounds is not None
    assert MIGRAPHX.numerics.rounds({}) == "none"
    assert MIGRAPHX.numerics.rounds({"migraphx_fp16_enable": "1"}) == "half"
    assert VITISAI.numerics.rounds is not None
    assert VITISAI.numerics.rounds({}) == "half"


def test_programs_are_made_on_the_device():
    assert MIGRAPHX.deferral is not None
    assert (MIGRAPHX.deferral.kind, MIGRAPHX.deferral.folder_option) == ("cache", "migraphx_model_cache_dir")
    assert VITISAI.deferral is not None
    assert VITISAI.judge_free_sizes({}) == "fixed"


def test_migraphx_is_in_its_own_package_on_linux_x64():
    assert find_carrier(MIGRAPHX, "onnxruntime-migraphx", "1.27.1", {}, "linux", "x64")
    assert find_carrier(MIGRAPHX, "onnxruntime-migraphx", "1.27.1", {}, "windows", "x64") is None


def test_rocm_ended_with_1_22_and_is_replaced_by_migraphx():
    rocm = find_provider("rocm")
    assert find_carrier(rocm, "onnxruntime-rocm", "1.22.2.post3", {}, "linux", "x64")
    assert find_carrier(rocm, "onnxruntime-rocm", "1.23.0", {}, "linux", "x64") is None
    assert "1.23" in rocm.presence.gone
    assert "migraphx" in rocm.presence.instead
