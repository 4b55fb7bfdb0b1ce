"""What is planned for a browser."""

import pytest

from bundler.model.errors import UsageError
from bundler.model.plan import BuildPlan
from bundler.planning.data import DataRequest
from bundler.planning.plan import step_environments
from bundler.planning.rules import DISABLE_ALL, ENABLE_ALL, find_obstacles
from bundler.profiles.resolve import resolve_target
from tests.support.facts import make_facts
from tests.support.plans import plan_for

CAPTURE = "variants.webgpu.session.enable_graph_capture=true"


def plan(target: str = "web-webgpu", *overrides: str, **request: object) -> BuildPlan:
    return plan_for(target, *overrides, **request)


def test_models_are_optimised_with_the_version_that_ships() -> None:
    baked = [step for step in plan().steps if step.stage == "optimize"]
    assert {step.environment for step in baked} == {"onnxruntime==1.30.0"}
    assert "onnxruntime==1.30.0" in step_environments(resolve_target("web-webgpu"))


def test_a_variant_names_the_builds_that_have_its_provider() -> None:
    gpu, cpu = plan().variants
    assert [entry.name for entry in gpu.providers] == ["webgpu"]
    assert gpu.builds == ("jspi", "asyncify")
    assert [entry.name for entry in cpu.providers] == ["wasm"]
    assert cpu.builds == ("wasm",)


def test_the_comparison_on_the_building_machine_uses_a_provider_that_it_has() -> None:
    result = plan()
    for variant in result.variants:
        options = result.step(f"{variant.model}/compare").options
        assert options["providers"] == [["CPUExecutionProvider", {}]]


def test_optimisation_for_a_device_is_limited_to_portable_operators() -> None:
    levels = {step.variant: step.options["level"] for step in plan().steps if step.stage == "optimize"}
    assert levels == {"webgpu": "basic", "wasm": "extended"}
    reported = {decision.subject: decision.choice for decision in plan().decisions}
    assert reported["level of webgpu"] == "basic"
    assert reported["level of wasm"] == "extended"
    assert reported["format"] == "onnx"


@pytest.mark.parametrize(
    ("level", "remains"), [("basic", DISABLE_ALL), ("extended", DISABLE_ALL), ("none", ENABLE_ALL)]
)
def test_a_browser_does_not_fuse_what_the_level_leaves_apart(level: str, remains: str) -> None:
    _, wasm = plan("web-webgpu", f"optimization.level={level}").variants
    assert wasm.session["graph_optimization_level"] == remains


def test_outputs_stay_on_the_device_when_the_profile_asks_for_it() -> None:
    kept = plan("web-webgpu", "variants.webgpu.keep_on_device=true").variants[0]
    assert kept.providers[0].device == "gpu-buffer"
    assert plan().variants[0].providers[0].device is None


def test_recording_the_gpus_commands_needs_fixed_sizes() -> None:
    with pytest.raises(UsageError, match="requires fixed sizes") as caught:
        plan("web-webgpu", CAPTURE)
    assert "'batch'" in caught.value.details[0]
    assert plan("web-webgpu", CAPTURE, dimensions={"batch": 1}).variants[0].session["enable_graph_capture"] is True


def test_a_model_beyond_the_address_space_does_not_fit_a_browser() -> None:
    facts = make_facts(external_bytes=5_000_000_000)
    assert "WebAssembly can address 4 GB" in find_obstacles(facts, resolve_target("web-wasm"))[0]
    assert find_obstacles(facts, resolve_target("linux-x64")) == ()


@pytest.mark.parametrize("method", ["fp16", "mixed-fp16"])
def test_half_precision_is_not_undone_by_optimising_on_a_cpu(method: str) -> None:
    data = DataRequest(inputs={"data": "calibration"}, options={"kind": "images"}, environment="media")
    result = plan("web-webgpu", f"variants.webgpu.precision={method}", calibration=data)
    levels = {step.variant: step.options["level"] for step in result.steps if step.stage == "optimize"}
    assert levels == {"webgpu": "none", "wasm": "extended"}
    gpu, cpu = result.variants
    assert (gpu.features, cpu.features) == (("shader-f16",), ())
    assert gpu.session["graph_optimization_level"] == ENABLE_ALL
    assert {decision.choice for decision in result.decisions if decision.subject == "level of webgpu"} == {"none"}
