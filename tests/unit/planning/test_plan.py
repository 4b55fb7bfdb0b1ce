import pytest

from bundler.model.errors import UsageError
from bundler.model.plan import BuildPlan
from bundler.model.runtime import Gate
from bundler.planning.data import DataRequest
from bundler.planning.gate import FLOAT, QUANTIZED, choose_gate
from bundler.planning.rules import choose_optimization, find_obstacles
from bundler.profiles.resolve import resolve_target
from bundler.providers.graph_optimizers import LAYOUT_OPTIMIZERS, OPTIMIZERS
from tests.support.facts import make_facts
from tests.support.plans import plan_for

TREES = {"ai.onnx.ml.TreeEnsembleClassifier": 1}


def plan(*, target: str = "linux-x64", overrides: tuple[str, ...] = (), **request: object) -> BuildPlan:
    return plan_for(target, *overrides, **request)


def test_every_input_of_a_step_comes_before_it() -> None:
    known = {"model", "samples"}
    for step in plan(dimensions={"batch": 1}, overrides=(), samples=DataRequest(plain="samples")).steps:
        assert set(step.inputs.values()) <= known
        known.add(step.id)


def test_a_synthetic_golden_set_without_samples_is_asked_to_have_no_effect() -> None:
    reported = "--golden synthetic has no effect: no samples were given"
    assert any(note.text.startswith(reported) for note in plan(golden="synthetic").notes)
    for request in ({}, {"golden": "synthetic", "samples": DataRequest(plain="samples")}):
        assert not any(reported in note.text for note in plan(**request).notes)


def test_outputs_are_compared_after_every_stage_that_changes_the_model() -> None:
    steps = plan(dimensions={"batch": 1}, overrides=("optimization.simplifier=onnxscript",)).steps
    changing = [step.id for step in steps if step.stage in {"fix_dimensions", "simplify", "optimize", "convert_ort"}]
    compared = [step.inputs["model"] for step in steps if step.stage == "compare"]
    assert changing == compared == ["fix_dimensions", "simplify", "cpu/optimize"]


def test_the_model_that_ships_is_compared_as_the_bundle_will_open_it() -> None:
    result = plan()
    variant = result.variants[0]
    final = result.step(f"{variant.model}/compare")
    assert final.options["disabled_optimizers"] == list(variant.disabled_optimizers)
    assert final.options["session"] == {**variant.session, "intra_op_num_threads": 1}, "as the reference was recorded"


def test_targets_that_differ_in_their_threads_share_the_comparison() -> None:
    """It judges what the model computes: how many threads of the device do so is no part of it."""
    six, four = (
        plan(target="snapdragon-8g3", overrides=(f"variants.cpu.session.intra_op_num_threads={count}",))
        for count in (6, 4)
    )
    assert [variant.session for variant in six.variants] != [variant.session for variant in four.variants]
    assert six.step("cpu/optimize/compare") == four.step("cpu/optimize/compare")


@pytest.mark.parametrize(("method", "rounds"), [("none", None), ("fp16", True), ("auto", True)])
def test_seeded_inputs_of_a_method_have_several_larger_sizes(method: str, rounds: bool | None) -> None:  # noqa: FBT001
    found = plan(overrides=(f"precision.method={method}",))
    assert found.step("record_golden").options.get("rounds") == rounds


def test_an_unknown_dimension_is_answered_with_those_that_exist() -> None:
    with pytest.raises(UsageError) as caught:
        plan(dimensions={"bacth": 1})
    assert "'bacth'" in caught.value.message
    assert "'batch'" in caught.value.details[0]


def test_equal_requests_give_equal_plans() -> None:
    assert plan() == plan()


def test_samples_replace_the_seeded_inputs() -> None:
    made = plan(samples=DataRequest(plain="samples"))
    assert made.step("record_evaluation").inputs["samples"] == "samples"
    golden = made.step("record_golden")
    assert golden.inputs["recorded"] == "record_evaluation"
    assert "seed" not in golden.options
    assert "samples ship" in made.notes[-1].text


def test_seeded_inputs_ship_in_place_of_samples_that_judge_everything() -> None:
    made = plan(samples=DataRequest(plain="samples"), golden="synthetic", dimensions={"batch": 1})
    assert made.step("record_golden").options["alike"]
    compared = [step.inputs["golden"] for step in made.steps if step.id in made.gates]
    assert set(compared) == {"record_evaluation"}
    assert made.variants[0].reproduction
    assert "do not ship" in made.notes[-1].text


def test_convolutions_keep_the_layout_optimisers_for_the_device() -> None:
    rule = choose_optimization(make_facts(), resolve_target("linux-x64"))
    assert set(OPTIMIZERS) - set(rule.disabled_optimizers) == set(LAYOUT_OPTIMIZERS)
    assert rule.device_cache
    assert [stage.name for stage in rule.stages] == ["optimize"]


def test_without_convolutions_nothing_is_left_to_optimise_on_the_device() -> None:
    rule = choose_optimization(make_facts(operators={"MatMul": 4}), resolve_target("linux-x64"))
    assert rule.session["graph_optimization_level"] == "ORT_DISABLE_ALL"
    assert not rule.device_cache


def test_tree_ensembles_become_ort_format() -> None:
    rule = choose_optimization(make_facts(operators=TREES), resolve_target("linux-x64"))
    assert [stage.name for stage in rule.stages] == ["optimize", "convert_ort"]


@pytest.mark.parametrize(("operator", "stages"), [("TreeEnsemble", 1), ("TreeEnsembleClassifier", 2)])
def test_trees_that_are_tensors_stay_onnx_where_a_loader_opens_from_memory(operator: str, stages: int) -> None:
    facts = make_facts(operators={f"ai.onnx.ml.{operator}": 1})
    jar = resolve_target("linux-x64", ('bundle.ecosystem="jvm"', 'bundle.format="jar"'))
    assert len(choose_optimization(facts, jar).stages) == stages
    assert len(choose_optimization(facts, resolve_target("linux-x64")).stages) == 2


@pytest.mark.parametrize("overrides", [(), ("optimization.format=ort",)])
def test_a_model_over_two_gigabytes_never_becomes_ort_format(overrides: tuple[str, ...]) -> None:
    facts = make_facts(operators=TREES, external_bytes=3_000_000_000)
    rule = choose_optimization(facts, resolve_target("linux-x64", overrides))
    assert [stage.name for stage in rule.stages] == ["optimize"]
    assert any("2 GB" in decision.reason for decision in rule.decisions)


def test_weights_that_are_large_go_into_a_file_of_their_own() -> None:
    onnx = choose_optimization(make_facts(), resolve_target("linux-x64")).stages[0].options
    ort = choose_optimization(make_facts(operators=TREES), resolve_target("linux-x64")).stages[0].options
    assert onnx["external_threshold"] == 16_384
    assert onnx["external_minimum"] == 1_000_000
    assert ort["external_threshold"] is None


@pytest.mark.parametrize(
    ("weight_bytes", "choice"), [(1_000_000, None), (200_000_000, "parallel"), (1_500_000_000, "sequential")]
)
def test_only_weights_that_memory_holds_twice_are_packed_on_all_threads(weight_bytes: int, choice: str | None) -> None:
    facts = make_facts(operators={"MatMul": 4}, weight_bytes=weight_bytes)
    rule = choose_optimization(facts, resolve_target("linux-x64"))
    decided = {decision.subject: decision.choice for decision in rule.decisions}
    assert decided.get("weight packing") == choice
    assert ("session.prepack.enable_parallel" in rule.session_config) is (choice == "parallel")


def test_the_target_and_not_this_machine_decides_about_signed_integers() -> None:
    x64 = choose_optimization(make_facts(), resolve_target("linux-x64")).stages[0].options["int8_allowed"]
    arm = choose_optimization(make_facts(), resolve_target("raspberry-pi-5")).stages[0].options["int8_allowed"]
    assert (x64, arm) == (False, True)


def test_a_model_over_the_budget_is_an_obstacle() -> None:
    profile = resolve_target("linux-x64", ("budget.model_mb=1.0",))
    assert "budget is 1 MB" in find_obstacles(make_facts(), profile)[0]
    assert find_obstacles(make_facts(), resolve_target("linux-x64")) == ()


def test_a_quantised_model_gets_a_gate_of_steps_unless_the_profile_says_otherwise() -> None:
    profile, strict = resolve_target("linux-x64"), resolve_target("linux-x64", ("accuracy.absolute=1e-6",))
    assert choose_gate(make_facts(), profile) == Gate(default=FLOAT)
    assert choose_gate(make_facts(quantized=True), profile) == Gate(default=QUANTIZED)
    assert choose_gate(make_facts(quantized=True), strict).default.absolute == 1e-6


SMALL = {"node_count": 5, "weight_bytes": 100, "operators": {"Gemm": 1}}


def test_only_what_is_small_in_every_way_runs_on_one_thread() -> None:
    profile = resolve_target("linux-x64")
    tiny = make_facts(**SMALL, peak_memory_bytes=2_000)
    assert choose_optimization(tiny, profile).session["intra_op_num_threads"] == 1
    for change in ({"peak_memory_bytes": None}, {"peak_memory_bytes": 10**8}, {"generated_bytes": 10**8}):
        facts = make_facts(**{**SMALL, "peak_memory_bytes": 2_000, **change})
        assert "intra_op_num_threads" not in choose_optimization(facts, profile).session


def test_weights_that_a_model_generates_are_not_stored_in_the_bundle() -> None:
    rule = choose_optimization(make_facts(file_bytes=15_000, generated_bytes=500_000_000), resolve_target("linux-x64"))
    assert rule.stages[0].options["level"] == "none"
    assert rule.session["graph_optimization_level"] == "ORT_ENABLE_ALL"
    assert not rule.device_cache


@pytest.mark.parametrize("asked", [{}, {"dimensions": {"batch": 4}}])
def test_sizes_that_the_user_fixes_are_known_to_every_rule(asked: dict[str, object]) -> None:
    (variant,) = plan(**asked).variants
    assert ("enable_mem_reuse" in variant.session) is not bool(asked)


def test_reasons_follow_from_the_decision_alone() -> None:
    found = {row.subject: row.reason for row in plan().decisions}
    assert (
        found["simplifier"] == "no simplifier reduced size or time of the benchmark models; none runs unless requested"
    )
    assert found["level"] == "the highest level that is independent of the building machine's CPU"
    plain = plan_for("linux-x64", facts=make_facts(operators={"Gemm": 1}))
    reasons = {row.subject: row.reason for row in plain.decisions}
    assert reasons["format"] == "above 1 MB of weights, large tensors are stored in a file that the runtime maps"
