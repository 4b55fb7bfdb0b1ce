"""What a user gets who sets options of NVIDIA's three providers."""

import pytest

from bundler.providers.cuda import PROVIDER as CUDA
from bundler.providers.knowledge import ProviderKnowledge
from bundler.providers.shape_ranges import parse_shapes
from bundler.providers.tensorrt import PROVIDER as TENSORRT
from bundler.providers.tensorrt_rtx import COMPUTE_CAPABILITIES
from bundler.providers.tensorrt_rtx import PROVIDER as RTX

PREFIXES = {"tensorrt": "trt", "tensorrt-rtx": "nv"}


def check(known: ProviderKnowledge, **options: str) -> list[tuple[str, str]]:
    assert known.options.check is not None
    return list(known.options.check(options))


def shapes(known: ProviderKnowledge, least: str, best: str, most: str) -> dict[str, str]:
    prefix = PREFIXES[known.name]
    names = ("min", "opt", "max")
    return {f"{prefix}_profile_{n}_shapes": text for n, text in zip(names, (least, best, most), strict=True)}


@pytest.mark.parametrize("known", [CUDA, TENSORRT, RTX], ids=lambda known: known.name)
def test_nothing_is_wrong_with_no_options(known):
    assert check(known) == []
    assert known.device_memory == "cuda"


@pytest.mark.parametrize("known", [TENSORRT, RTX], ids=lambda known: known.name)
class TestShapes:
    def test_ranges_that_fit_are_accepted(self, known):
        assert check(known, **shapes(known, "x:1x3,y:1", "x:4x3,y:2", "x:8x3,y:2")) == []

    def test_all_three_belong_together(self, known):
        options = shapes(known, "x:1x3", "x:4x3", "x:8x3")
        missing = list(options)[1]
        del options[missing]
        [(key, text)] = check(known, **options)
        assert key == missing
        assert "is missing" in text

    def test_a_range_upside_down_is_reported(self, known):
        [(key, text)] = check(known, **shapes(known, "x:4x3", "x:1x3", "x:8x3"))
        assert key.endswith("opt_shapes")
        assert "is below" in text

    @pytest.mark.parametrize("most", ["x:8", "x:8x3,x:9x3"])
    def test_another_number_of_sizes_is_reported(self, known, most):
        [(_, text)] = check(known, **shapes(known, "x:1x3", "x:4x3", most))
        assert "another number of sizes" in text

    def test_other_inputs_are_reported(self, known):
        [(_, text)] = check(known, **shapes(known, "x:1x3", "x:4x3", "z:8x3"))
        assert "names other inputs" in text

    @pytest.mark.parametrize("wrong", ["x", "x:", "x:1x", "x:axb", ":1", "x:1" + "x1" * 100, "x:9999999999"])
    def test_what_is_no_shape_is_reported(self, known, wrong):
        [(_, text)] = check(known, **shapes(known, wrong, "x:1", "x:1"))
        assert "expected `input:1x3x224x224`" in text


def test_names_of_inputs_may_have_colons():
    assert parse_shapes("serving:0:1x3; y:2") == {"serving:0": [(1, 3)], "y": [(2,)]}


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"tunable_op_tuning_enable": "1"}, "tunable_op_tuning_enable"),
        ({"tunable_op_max_tuning_duration_ms": "5"}, "tunable_op_max_tuning_duration_ms"),
        ({"enable_cudnn": "0", "cudnn_conv_algo_search": "HEURISTIC"}, "cudnn_conv_algo_search"),
    ],
)
def test_options_of_cuda_without_effect_are_reported(options, wrong):
    assert [key for key, _ in check(CUDA, **options)] == [wrong]


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"trt_dla_core": "1"}, ["trt_dla_core"]),
        ({"trt_dla_enable": "1", "trt_dla_core": "1"}, ["trt_dla_enable"]),
        ({"trt_dla_enable": "1", "trt_int8_enable": "true"}, []),
        ({"trt_layer_norm_fp32_fallback": "1"}, ["trt_layer_norm_fp32_fallback"]),
        ({"trt_layer_norm_fp32_fallback": "1", "trt_fp16_enable": "1"}, []),
    ],
)
def test_options_of_tensorrt_without_effect_are_reported(options, wrong):
    assert [key for key, _ in check(TENSORRT, **options)] == wrong


@pytest.mark.parametrize("budget", ["0", "-1", "1", "512M", "50%", "100%"])
def test_budgets_of_weights_are_accepted(budget):
    assert check(RTX, nv_weight_streaming_budget=budget) == []


@pytest.mark.parametrize("budget", ["", "-2", "512MB", "101%", "half", "\u0665"])
def test_other_budgets_are_reported(budget):
    assert [key for key, _ in check(RTX, nv_weight_streaming_budget=budget)] == ["nv_weight_streaming_budget"]


def test_timing_layers_excludes_replaying():
    assert [key for key, _ in check(RTX, nv_enable_profiling="1", enable_cuda_graph="1")] == ["nv_enable_profiling"]


def test_tf32_counts_as_half_precision_until_it_is_off():
    assert CUDA.numerics.rounds is not None
    assert [CUDA.numerics.rounds(options) for options in ({}, {"use_tf32": "0"}, {"use_tf32": "1"})] == [
        "half",
        "none",
        "half",
    ]
    assert TENSORRT.numerics.rounds is not None
    assert TENSORRT.numerics.rounds({"trt_fp16_enable": "0"}) == "half"


def test_engines_of_tensorrt_are_kept_in_the_devices_folder():
    deferral = TENSORRT.deferral
    assert deferral is not None
    assert (deferral.kind, deferral.folder_option) == ("cache", "trt_engine_cache_path")
    decided = {rule.key for rule in TENSORRT.options.rules if rule.decided}
    assert {deferral.folder_option, *deferral.options} <= decided


def test_engines_for_rtx_are_built_here_for_what_the_plugin_opens():
    compiler = RTX.compiler
    assert compiler is not None
    assert compiler.by_default
    assert compiler.lists == {"compute_capabilities": "devices"}
    meaning = next(rule.meaning for rule in compiler.options if rule.key == "compute_capabilities")
    assert all(capability in meaning for capability in COMPUTE_CAPABILITIES)


def check_compile(**settings: str) -> list[tuple[str, str]]:
    assert RTX.compiler is not None
    assert RTX.compiler.check is not None
    return list(RTX.compiler.check(settings))


def test_gpus_that_engines_can_be_built_for():
    assert check_compile(compute_capabilities="8.9") == []
    assert check_compile(here="1", compute_capabilities="8.6, 8.9,12.0") == []
    assert check_compile(here="0") == []


@pytest.mark.parametrize("wrong", ["9.9", "8.0", "8.9;8.6", "8,9", "1" * 1000, "\u0668.\u0669"])
def test_other_gpus_are_reported_with_those_that_can(wrong):
    problems = check_compile(compute_capabilities=wrong)
    assert {key for key, _ in problems} == {"compute_capabilities"}
    assert all("known: 8.6, 8.9, 12.0, 12.1" in text and len(text) < 200 for _, text in problems)


@pytest.mark.parametrize("spelling", ["sm89", "SM_89", "89"])
def test_a_gpu_by_its_other_name_is_put_right(spelling):
    assert check_compile(compute_capabilities=spelling)[0][1].endswith('write "8.9"')


def test_an_engine_for_no_gpu_is_reported():
    [(key, text)] = check_compile()
    assert key == "compute_capabilities"
    assert "here = false" in text


def test_cuda_itself_leaves_nothing_for_the_device():
    assert (CUDA.compiler, CUDA.deferral) == (None, None)
