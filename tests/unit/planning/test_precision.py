from dataclasses import fields
from importlib import import_module

import pytest

from bundler.model.errors import UsageError
from bundler.model.plan import BuildPlan
from bundler.planning.data import EVALUATION, EVALUATION_LEAST, EVALUATION_MOST, GOLDEN, DataRequest
from bundler.planning.gate import choose_gate
from bundler.planning.plan import step_environments
from bundler.profiles.methods import METHODS
from bundler.profiles.resolve import resolve_target
from bundler.profiles.schema import Precision
from bundler.providers.registry import find_provider, provider_names
from bundler.stages.registry import find_stage
from tests.support.facts import make_facts
from tests.support.plans import plan_for

SAMPLES = DataRequest(inputs={"data": "samples"}, options={"kind": "samples"}, plain="samples")
IMAGES = DataRequest(inputs={"data": "calibration"}, options={"kind": "images"}, environment="media")
MADE_UP = DataRequest(options={"kind": "synthetic"}, synthetic=True)


def plan(*overrides: str, target: str = "linux-x64", **request: object) -> BuildPlan:
    return plan_for(target, *overrides, **request)


def choose(method: str) -> str:
    return f"precision.method={method}"


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_a_stage_with_its_options(name: str) -> None:
    method = METHODS[name]
    stage = find_stage(method.stage)
    options = import_module(f"bundler.stages.{method.stage}.spec").Options
    known = {field.name for field in fields(options)}
    assert stage.changes_model
    assert {*method.options, *method.takes.values()} <= known
    assert set(method.takes) <= set(Precision.model_fields)
    assert ("samples" in stage.inputs or "samples?" in stage.inputs) or not method.needs_calibration


@pytest.mark.parametrize("name", provider_names())
def test_providers_name_methods_that_exist(name: str) -> None:
    provider = find_provider(name)
    assert set(provider.numerics.tries) <= set(provider.numerics.precisions) <= set(METHODS)


def test_quantisation_precedes_optimisation_and_both_are_compared() -> None:
    made = plan(choose("dynamic-int8"), samples=SAMPLES)
    steps = [step.id for step in made.steps if step.variant == "cpu"]
    assert steps[:4] == ["cpu/quantize_dynamic", "cpu/quantize_dynamic/compare", "cpu/optimize", "cpu/optimize/compare"]
    assert made.step("cpu/optimize").inputs["model"] == "cpu/quantize_dynamic"
    assert made.variants[0].comparisons == ("cpu/quantize_dynamic/compare", "cpu/optimize/compare")


def test_a_rounded_model_is_judged_by_the_gate_of_its_bits_and_an_exact_one_by_the_exact_gate() -> None:
    facts, profile = make_facts(), resolve_target("linux-x64", (choose("weights-4bit"),))
    made = plan_for("linux-x64", choose("weights-4bit"), dimensions={"batch": 1})
    assert made.gates["fix_dimensions/compare"] == choose_gate(facts, profile)
    assert made.gates["cpu/quantize_weights/compare"] == choose_gate(facts, profile, "four-bit")
    assert made.gates["cpu/optimize/compare"] == choose_gate(facts, profile, "four-bit")


def test_samples_that_never_travel_judge_precision() -> None:
    made = plan(choose("dynamic-int8"), samples=SAMPLES)
    assert made.step("cpu/optimize/compare").inputs["golden"] == EVALUATION
    assert EVALUATION_LEAST <= made.step(EVALUATION).options["max_samples"] <= EVALUATION_MOST
    assert made.golden == GOLDEN
    assert made.step(made.variants[0].reproduction).inputs["golden"] == GOLDEN


def test_without_a_precision_the_golden_set_holds_all_that_is_recorded() -> None:
    made = plan(samples=SAMPLES)
    assert [step.id for step in made.steps if step.stage == "record_golden"] == [EVALUATION, GOLDEN]
    assert made.step(EVALUATION).options["max_samples"] == 16
    assert not made.variants[0].reproduction


def test_what_calibrates_never_judges() -> None:
    made = plan(choose("static-int8"), samples=SAMPLES, calibration=IMAGES)
    calibration = made.step("prepare_calibration")
    assert calibration.inputs["held_out"] == EVALUATION
    assert calibration.options["part"] == "all"
    assert calibration.environment == "media"
    assert made.step("cpu/quantize_static").inputs["samples"] == "prepare_calibration"


@pytest.mark.parametrize("given", [{"samples": SAMPLES}, {"calibration": SAMPLES}])
def test_of_one_set_a_share_is_held_out(given: dict[str, DataRequest]) -> None:
    made = plan(choose("static-int8"), **given)
    held_out, calibration = made.step("prepare_samples"), made.step("prepare_calibration")
    assert (held_out.options["part"], calibration.options["part"]) == ("held-out", "calibration")
    assert held_out.options["every"] == calibration.options["every"] == 5
    assert made.step(EVALUATION).inputs["samples"] == "prepare_samples"
    assert made.step(GOLDEN).inputs["recorded"] == EVALUATION


def test_a_method_without_its_data_says_how_to_give_some() -> None:
    with pytest.raises(UsageError, match="requires calibration data") as caught:
        plan(choose("static-int8"))
    assert "--calibration" in (caught.value.hint or "")


def test_made_up_data_calibrates_and_judges_nothing() -> None:
    made = plan(choose("static-int8"), calibration=MADE_UP)
    assert "held_out" not in made.step("prepare_calibration").inputs
    assert "samples" not in made.step(GOLDEN).inputs


def test_settings_reach_the_stage_as_plain_json() -> None:
    made = plan(
        choose("static-int8"),
        "precision.per_channel=false",
        'precision.exclude_nodes=["head"]',
        "precision.calibration=entropy",
        calibration=IMAGES,
    )
    options = made.step("cpu/quantize_static").options
    assert (options["per_channel"], options["exclude_nodes"], options["calibration"]) == (False, ["head"], "entropy")


def test_a_search_is_reported_the_gate() -> None:
    made = plan(choose("static-int8-mixed"), "accuracy.sqnr_db=33", calibration=IMAGES)
    assert made.step("cpu/quantize_static").options["least_sqnr_db"] == 33
    made = plan(choose("mixed-fp16"), "accuracy.sqnr_db=33", calibration=IMAGES)
    assert made.step("cpu/convert_float").options["gate"]["default"]["sqnr_db"] == 33


def test_variants_may_differ() -> None:
    made = plan("variants.webgpu.precision=weights-4bit", "variants.wasm.precision=dynamic-int8", target="web-webgpu")
    stages = {step.variant: step.stage for step in made.steps if step.stage.startswith("quantize")}
    assert stages == {"webgpu": "quantize_weights", "wasm": "quantize_dynamic"}


def test_what_was_chosen_by_trying_is_planned() -> None:
    made = plan(choose("auto"), methods={"cpu": "dynamic-int8"})
    assert made.step("cpu/quantize_dynamic")
    decision = next(item for item in made.decisions if item.subject == "precision of cpu")
    assert decision.choice == "dynamic-int8"


def test_an_open_choice_is_reported_and_changes_nothing() -> None:
    made = plan(choose("auto"))
    decision = next(item for item in made.decisions if item.subject == "precision of cpu")
    assert decision.choice == "auto"
    assert "static-int8" in decision.reason
    assert not [step for step in made.steps if step.stage.startswith("quantize")]


def test_presets_stand_for_what_optimum_documents() -> None:
    assert plan("optimization.preset=O1").step("cpu/optimize").options["level"] == "basic"
    third = plan("optimization.preset=O3")
    assert third.step("fuse_transformers").options["model_type"] == "auto"
    assert third.step("fuse_transformers").options["gelu_approximation"] is True
    assert third.step("cpu/optimize").options["level"] == "extended"
    assert not any(step.stage == "fuse_transformers" for step in plan("optimization.preset=O1").steps)


def test_half_precision_of_a_preset_is_for_gpus() -> None:
    with pytest.raises(UsageError) as caught:
        resolve_target("linux-x64", ("optimization.preset=O4",))
    assert "O3" in "".join(caught.value.details)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("precision.method=statc-int8", 'did you mean "static-int8"?'),
        ("precision.method=bf16", 'the provider "cpu" does not support bf16'),
        ('precision.order=["int9"]', "unknown precision method"),
    ],
)
def test_a_method_that_cannot_be_is_refused(override: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_target("linux-x64", (override,))
    assert said in "".join(caught.value.details)


def test_a_setting_that_the_method_does_not_read_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        resolve_target("linux-x64", (choose("dynamic-int8"), "precision.block_size=32"))
    assert "dynamic-int8 does not use this key" in "".join(caught.value.details)


def test_environments_are_those_that_may_be_needed() -> None:
    assert "nncf" in step_environments(resolve_target("linux-x64", (choose("nncf-int8"),)))
    assert "onnxslim" in step_environments(resolve_target("linux-x64", ("optimization.simplifier=onnxslim",)))
    assert "weight-only" in step_environments(resolve_target("linux-x64", (choose("auto"),)))
    assert "weight-only" not in step_environments(resolve_target("linux-x64"))
