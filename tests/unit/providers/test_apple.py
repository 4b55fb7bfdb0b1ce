"""Core ML: what a profile may say, how coarsely it computes, and where it is."""

import pytest

from bundler.providers.availability import find_carrier
from bundler.providers.registry import find_provider

COREML = find_provider("coreml")


def problems(**options: str) -> list[str]:
    assert COREML.options.check is not None
    return [key for key, _ in COREML.options.check(options)]


def test_what_needs_the_gpu_is_refused_without_one():
    assert problems(AllowLowPrecisionAccumulationOnGPU="1", MLComputeUnits="CPUOnly") == [
        "AllowLowPrecisionAccumulationOnGPU"
    ]
    assert not problems(AllowLowPrecisionAccumulationOnGPU="1", MLComputeUnits="CPUAndGPU")
    assert not problems(AllowLowPrecisionAccumulationOnGPU="0", MLComputeUnits="CPUOnly")


def test_what_only_programs_have_is_refused_in_the_older_format():
    assert problems(ProfileComputePlan="1") == ["ProfileComputePlan"]
    assert problems(ProfileComputePlan="1", ModelFormat="NeuralNetwork") == ["ProfileComputePlan"]
    assert not problems(ProfileComputePlan="1", ModelFormat="MLProgram")


@pytest.mark.parametrize(
    ("options", "rounding"),
    [
        ({}, "half"),
        ({"MLComputeUnits": "CPUOnly"}, "none"),
        ({"ModelFormat": "MLProgram"}, "none"),
        ({"ModelFormat": "MLProgram", "AllowLowPrecisionAccumulationOnGPU": "1"}, "half"),
    ],
)
def test_the_gate_knows_how_coarsely_it_computes(options, rounding):
    assert COREML.numerics.rounds is not None
    assert COREML.numerics.rounds(options) == rounding


def test_each_format_has_its_own_list_of_operators():
    assert COREML.graph.checker is not None
    network, program = COREML.graph.checker({}), COREML.graph.checker({"ModelFormat": "MLProgram"})
    assert network is not None
    assert network.operators == "coreml_supported_neuralnetwork_ops.md"
    assert program is not None
    assert program.operators == "coreml_supported_mlprogram_ops.md"


def test_it_is_in_the_plain_runtime_of_a_mac_and_nowhere_else():
    assert find_carrier(COREML, "onnxruntime", "1.31.1", {}, "macos", "arm64")
    assert find_carrier(COREML, "onnxruntime-objc", "1.24.2", {}, "ios", "arm64")
    assert find_carrier(COREML, "onnxruntime", "1.31.1", {}, "linux", "arm64") is None
    assert find_carrier(COREML, "onnxruntime", "1.31.1", {}, "macos", "x64") is None


def test_the_bit_mask_of_playbooks_is_answered_with_the_names():
    assert "by name" in COREML.options.replaced["coreml_flags"]
    assert "MLProgram" in COREML.options.replaced["COREML_FLAG_CREATE_MLPROGRAM"]
