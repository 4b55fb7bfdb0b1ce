"""What is planned for accelerators."""

from typing import Any

import pytest

from bundler.model.errors import ProfileError, UsageError
from bundler.model.facts import ModelFacts
from bundler.model.plan import BuildPlan, VariantPlan
from bundler.model.signature import Port, Signature, ValueType
from bundler.planning.data import DataRequest
from bundler.planning.devices import computed_loss
from bundler.planning.gate import LOSSY
from bundler.planning.plan import step_environments
from bundler.planning.settle import SettledProfile
from bundler.profiles.methods import Loss
from bundler.profiles.resolve import resolve_target
from bundler.profiles.schema import Provider, Variant
from tests.support.facts import make_facts
from tests.support.plans import plan_for, settle

PHONE = "snapdragon-8g3"


def plan(target: str, *overrides: str, facts: ModelFacts | None = None, **request: object) -> BuildPlan:
    return plan_for(target, *overrides, facts=facts, **request)


def find_variant(result: BuildPlan, name: str) -> VariantPlan:
    return next(variant for variant in result.variants if variant.name == name)


def decisions(result: BuildPlan) -> dict[str, str]:
    return {decision.subject: decision.choice for decision in result.decisions}


def test_a_context_is_compiled_after_optimisation_and_run_in_emulation() -> None:
    result = plan(PHONE)
    htp = find_variant(result, "htp")
    assert htp.model == htp.compiled == "htp/compile_context"
    compiling, emulating = result.step(htp.compiled), result.step(f"{htp.compiled}/compare")
    assert compiling.inputs == {"model": "htp/optimize"}
    assert (compiling.environment, emulating.environment) == ("qnn", "qnn")
    assert compiling.options["options"]["soc_model"] == "57"
    assert emulating.options["check_providers"] is True
    assert emulating.inputs["model"] == htp.compiled
    assert "qnn" in step_environments(resolve_target(PHONE))


def test_a_session_on_a_context_never_compiles_in_silence() -> None:
    assert find_variant(plan(PHONE), "htp").session_config["session.disable_model_compile"] == "1"


def test_answers_of_an_npu_are_judged_as_those_of_half_precision() -> None:
    result = plan(PHONE)
    exact, coarse = (result.gates[f"htp/{step}/compare"] for step in ("optimize", "compile_context"))
    assert exact.default.absolute is not None
    assert coarse.default.absolute is None
    assert find_variant(result, "htp").gate == coarse
    assert find_variant(result, "cpu").gate == exact


def test_what_no_emulator_runs_is_run_from_the_model_that_was_compiled() -> None:
    result = plan("snapdragon-8-series")
    step = result.step("htp/compile_context/compare")
    assert result.step("htp/compile_context").options["options"]["soc_model"] == "43,57,69"
    assert step.inputs["model"] == "htp/optimize"
    assert dict(step.options["providers"])["QNNExecutionProvider"]["soc_model"] == "43"


def test_sizes_must_be_fixed_for_what_takes_no_others() -> None:
    shape = ValueType(element_type="float32", shape=("rows", 4))
    signature = Signature(inputs=(Port(name="x", type=shape),), outputs=(Port(name="y", type=shape),))
    facts = make_facts(signature=signature)
    with pytest.raises(UsageError, match="requires fixed sizes") as caught:
        plan(PHONE, facts=facts)
    assert caught.value.details == ("dimension 'rows' is dynamic",)
    assert caught.value.hint == "fix them, for example --dim rows=1 (replace the numbers by the sizes that you need)"
    assert plan(PHONE, facts=facts, dimensions={"rows": 4})


def test_a_chip_without_floating_point_asks_for_calibration_data() -> None:
    with pytest.raises(UsageError, match="requires a quantised model") as caught:
        plan("snapdragon-888")
    assert "--calibration" in (caught.value.hint or "")
    assert plan("snapdragon-888", facts=make_facts(quantized=True))


def test_calibration_data_bring_the_targets_own_recipe() -> None:
    data = DataRequest(plain="calibration")
    assert find_precision(settle(PHONE, calibration=data)) == "static-qnn"
    assert find_precision(settle(PHONE)) is None
    assert find_precision(settle(PHONE, facts=make_facts(quantized=True), calibration=data)) is None
    assert find_precision(settle(PHONE, "precision.method=none", calibration=data)) is None


def find_precision(settled: SettledProfile) -> str | None:
    return next(variant.precision for variant in settled.profile.variants if variant.name == "htp")


def test_an_engine_is_built_for_the_gpus_of_the_profile_and_not_run_here() -> None:
    result = plan("rtx-4090", dimensions={"batch": 1})
    engine = find_variant(result, "tensorrt-rtx")
    assert engine.compiled == "tensorrt-rtx/build_engine"
    assert list(result.step(engine.compiled).options["devices"]) == ["8.9"]
    assert "tensorrt-rtx/build_engine/compare" not in {step.id for step in result.steps}
    assert engine.prepare is None


def test_ranges_of_sizes_become_the_engines_profile() -> None:
    options = "variants.tensorrt-rtx.providers.tensorrt-rtx.options"
    given = [
        f"{options}.nv_profile_{kind}_shapes='image:{size}x3x8x8'"
        for kind, size in (("min", 1), ("opt", 2), ("max", 8))
    ]
    result = plan("rtx-4090", *given)
    assert result.step("tensorrt-rtx/build_engine").options["profiles"] == {
        "image": [[1, 3, 8, 8], [2, 3, 8, 8], [8, 3, 8, 8]]
    }


def test_an_engine_for_sizes_that_nobody_names_is_left_for_the_device() -> None:
    result = plan("rtx-4090")
    engine = find_variant(result, "tensorrt-rtx")
    assert not engine.compiled
    assert engine.prepare is not None
    assert decisions(result)["compiling for NVIDIA TensorRT for RTX of tensorrt-rtx"] == "on the device"


@pytest.mark.parametrize(("target", "name"), [("rtx-4090", "tensorrt-rtx"), ("a100", "tensorrt")])
def test_biases_stay_in_floating_point_for_a_parser_that_takes_no_others(target: str, name: str) -> None:
    """Neither here nor on the device does the runtime turn them into integers."""
    found = plan(target)
    (baking,) = (step for step in found.steps if step.id == f"{name}/optimize")
    assert list(baking.options["disabled_optimizers"]) == ["WeightBiasQuantization"]
    assert find_variant(found, name).disabled_optimizers == ("WeightBiasQuantization",)


def test_what_can_only_be_made_on_the_device_is_prepared_there() -> None:
    first = find_variant(plan("intel-xeon"), "openvino")
    assert (first.compiled, first.prepare.kind if first.prepare else "") == ("", "context")
    assert first.providers[0].library == "onnxruntime_ep_openvino"
    assert first.providers[0].select == {"ov_device": "CPU"}
    assert first.plugins == {"onnxruntime-ep-openvino": "1.8.1"}


def test_variants_of_runtimes_that_nobody_publishes_are_left_out_and_reported() -> None:
    result = plan("intel-xeon")
    assert [variant.name for variant in result.variants] == ["openvino", "cpu"]
    assert decisions(result)["variant onednn"] == "left out"
    own = plan("intel-xeon", "runtime.custom_build=true")
    assert [variant.name for variant in own.variants] == ["openvino", "onednn", "cpu"]


def test_a_target_with_nothing_but_such_variants_says_what_it_needs() -> None:
    with pytest.raises(ProfileError, match="requires a custom build of ONNX Runtime") as caught:
        plan("linux-x64", "variants.cpu.custom_build=true")
    assert "runtime.custom_build=true" in (caught.value.hint or "")


def test_a_classical_model_is_not_compiled_for_an_accelerator() -> None:
    zipmap = make_facts(operators={"ai.onnx.ml.TreeEnsembleClassifier": 1, "ai.onnx.ml.ZipMap": 1})
    with pytest.raises(UsageError, match=r"which has no operator of ai\.onnx\.ml") as caught:
        plan(PHONE, facts=zipmap)
    assert "models of ai.onnx.ml run on the CPU alone" in (caught.value.hint or "")
    assert plan("linux-x64", facts=zipmap).steps


def test_optimisation_for_an_accelerator_is_limited_to_portable_operators() -> None:
    levels = {step.variant: step.options["level"] for step in plan(PHONE).steps if step.stage == "optimize"}
    assert levels == {"htp": "basic", "gpu": "basic", "cpu": "extended"}


def test_mobile_providers_are_estimated_where_somebody_knows_them() -> None:
    steps = {step.id: step for step in plan("ios-arm64").steps}
    step = steps["coreml/check_placement"]
    assert step.options["function"] == "check_coreml_partitions"
    assert step.environment == f"onnxruntime=={resolve_target('ios-arm64').runtime.version}"


@pytest.mark.parametrize("target", ["ios-arm64", "l4", "rtx-4090-windows"])
def test_no_decision_speaks_of_a_loader_that_a_bundle_may_lack(target: str) -> None:
    """A folder of files has neither a `prewarm` nor a copy that its loader keeps."""
    facts = make_facts(operators={"Conv": 3})
    reasons = [decision.reason for decision in plan(target, facts=facts).decisions]
    assert any("is generated there, at installation or first start" in reason for reason in reasons)
    assert not [reason for reason in reasons if "prewarm" in reason or "kept there" in reason]


FIXED = Signature(
    inputs=(Port(name="image", type=ValueType(element_type="float32", shape=(1, 3, 8, 8))),),
    outputs=(Port(name="scores", type=ValueType(element_type="float32", shape=(1, 10))),),
)


@pytest.mark.parametrize("variant", ["npu", "gpu"])
def test_what_an_option_of_the_plugins_device_computes_in_is_what_its_answers_are_held_to(variant: str) -> None:
    found = find_variant(plan("intel-npu", facts=make_facts(signature=FIXED)), variant)
    assert found.gate is not None
    assert found.gate.default == LOSSY["half"]
    assert found.rounding == "computes in half precision"


@pytest.mark.parametrize(
    ("device", "named", "loss"),
    [("GPU", "GPU", "none"), ("GPU.1", "GPU", "none"), ("GPU", "CPU", "half"), ("CPU", "CPU", "none")],
)
def test_a_device_that_is_asked_to_compute_exactly_is_known_by_its_own_name(
    device: str, named: str, loss: Loss
) -> None:
    config = f'{{"{named}": {{"INFERENCE_PRECISION_HINT": "f32"}}}}'
    options = {"device_type": device, "load_config": config}
    variant = Variant(name="own", providers=(Provider(name="openvino", options=options),))
    assert computed_loss(resolve_target("intel-npu"), variant, "none") == loss


def gates_of(result: BuildPlan) -> dict[str, str]:
    return {row.subject: row.reason for row in result.decisions if row.subject.startswith("accuracy gate")}


def test_decisions_on_gates_name_the_variants_and_what_they_compute_in() -> None:
    facts = make_facts(signature=FIXED)
    found = gates_of(plan("intel-npu", facts=facts))
    assert list(found) == ["accuracy gate", "accuracy gate of npu, gpu on the device"]
    assert found["accuracy gate of npu, gpu on the device"].startswith("FP16 rounds every value")
    assert list(gates_of(plan("linux-x64", facts=facts))) == ["accuracy gate"]


def test_tf32_is_a_reason_of_its_own() -> None:
    found = gates_of(plan("rtx-4090"))
    (reason,) = (reason for subject, reason in found.items() if "cuda" in subject)
    assert reason.startswith("TF32 keeps 10 bits of each factor")
    assert find_variant(plan("rtx-4090"), "cuda").rounding == "may compute in TF32 (10 bits of fraction)"


def test_a_gate_that_the_profile_sets_is_one_for_all() -> None:
    asked = [f"accuracy.{name}=0" for name in ("absolute", "relative")]
    limits = [f"accuracy.{name}=60" for name in ("sqnr_db", "low_sqnr_db", "worst_sqnr_db", "typical_sqnr_db")]
    shares = [f"accuracy.{name}=1" for name in ("top1_agreement", "agreement")]
    result = plan("intel-npu", *asked, *limits, *shares, facts=make_facts(signature=FIXED))
    assert {variant.gate.default.sqnr_db for variant in result.variants if variant.gate} == {60.0}


TEXT = Port(name="letters", type=ValueType(element_type="str", shape=(None, 8)))


@pytest.mark.parametrize("target", ["web-webgpu", "web-webnn"])
@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"operators": {"ai.onnx.ml.Scaler": 1, "MatMul": 3}}, "the model has ai.onnx.ml.Scaler"),
        ({"operators": {"TfIdfVectorizer": 1}}, "the model has TfIdfVectorizer"),
        ({"signature": Signature(inputs=(TEXT,), outputs=())}, "strings: 'letters'"),
    ],
)
def test_the_web_builds_with_a_gpu_lack_classical_operators_and_strings(
    target: str, changes: dict[str, Any], detail: str
) -> None:
    """Such a bundle was built whole before the browser could not open it, with a hint to take a newer browser."""
    facts = make_facts(**changes)
    with pytest.raises(UsageError, match="the builds of the runtime with Web") as caught:
        plan(target, facts=facts)
    assert caught.value.details == (detail,)
    assert "--target web-wasm" in (caught.value.hint or "")
    assert plan("web-wasm", facts=facts).steps
