"""The report says what an accelerator took of the graph, what it left and why, and what is made where."""

import dataclasses
import json

import pytest

from bundler.model.open_sizes import Asker
from bundler.model.placement import read_placement
from bundler.model.plan import Step
from bundler.model.proof import VariantProof
from bundler.model.runtime import Preparation
from bundler.reporting.checks import read_comparison
from bundler.reporting.placement import chart_placements, find_placement
from bundler.reporting.report import render_report
from bundler.reporting.story import describe_proof
from tests.unit.reporting.builds import change_report, make_report
from tests.unit.reporting.test_report import ATTACKS, assert_harmless, words

TAKEN = {
    "provider": "ExampleNpu",
    "assigned": 182,
    "left": 12,
    "share": 0.938,
    "left_nodes": [{"name": "/up/Resize", "operator": "Resize", "reason": "it takes no cubic interpolation"}],
    "contexts": 2,
    "devices": ["43", "57"],
    "sdk": "2.51.0",
    "statement": "v2:6",
    "bytes": 712_345,
}
ESTIMATED = {"provider": "ExampleNpu", "assigned": 60, "left": 134, "left_nodes": [], "estimated": True}


@pytest.fixture
def data(manifest, request_of_build):
    return make_report(manifest, request_of_build)


def with_variant(data, *facts, **changes):
    """`data` with a variant `npu` before the others, and a step of its own for each of `facts`."""
    (part,) = data.components
    outcome = part.outcomes[-1]
    ids = [f"npu/step{number}" for number in range(len(facts))]
    steps = [Step(id=name, stage="optimize", inputs={}, variant="npu") for name in ids]
    outcomes = [dataclasses.replace(outcome, step=name, facts=own) for name, own in zip(ids, facts, strict=True)]
    npu = dataclasses.replace(part.plan.variants[0], name="npu", **changes)
    plan = dataclasses.replace(part.plan, steps=(*part.plan.steps, *steps), variants=(npu, *part.plan.variants))
    return change_report(data, plan=plan, outcomes=(*part.outcomes, *outcomes))


def test_what_fixed_sizes_would_gain_is_said_to_whoever_asks(data):
    found = {**ESTIMATED, "fixed": {"assigned": 190, "left": 4, "options": ["--dim", "n=1"]}}
    (placement,) = chart_placements(with_variant(data, found).components[0])
    assert "for example with --dim batch=1 (" in placement.verdict
    data = change_report(data, asker=Asker(project="bundler.toml"))
    (placement,) = chart_placements(with_variant(data, found).components[0])
    assert (
        'for example with dimensions = { "batch" = 1 } in bundler.toml, in the table of the model' in placement.verdict
    )


def test_a_build_without_accelerators_has_no_such_part(data):
    assert chart_placements(data.components[0]) == ()
    assert "Node assignment" not in words(render_report(data))


def test_the_split_its_threshold_and_what_was_left_are_shown(data):
    page = render_report(with_variant(data, TAKEN, least_share=0.9))
    assert_harmless(page)
    text = words(page)
    assert "93.8% of the nodes assigned to ExampleNpu (min 90%)" in text
    assert "ExampleNpu 182 (94%)" in text
    assert "others 12 (6%)" in text
    assert "The first 1 of 12 nodes on other providers" in text
    assert "it takes no cubic interpolation" in text
    assert "43, 57 (the compiler's names of devices)" in text
    assert "2.51.0" in text
    assert "712 kB" in text


def test_too_few_nodes_are_said_loudly(data):
    (placement,) = chart_placements(
        with_variant(data, ESTIMATED, least_share=0.5, tolerates_shortfall=True).components[0]
    )
    assert placement.tone == "bad"
    assert placement.verdict == (
        "30.9% of the nodes assigned to ExampleNpu (estimated): fewer than the required 50%, which the profile "
        "tolerates"
    )


def test_too_few_nodes_stand_among_what_was_not_proven(data):
    text = words(render_report(with_variant(data, ESTIMATED, least_share=0.5, tolerates_shortfall=True)))
    assert "Variant npu: 30.9% of the nodes assigned to ExampleNpu (estimated)" in text[text.index("What was not") :]


def test_what_a_device_rounds_away_is_reported_beside_its_proof(data):
    (record,) = [record for record in data.manifest.proof.variants if record.passed][:1]
    comparison = next(
        read_comparison(outcome.facts) for outcome in data.components[0].outcomes if outcome.stage == "compare"
    )
    rounded = tuple(dataclasses.replace(output, sqnr_db=34.62) for output in comparison.outputs)
    proof = VariantProof(
        variant=record.variant,
        level=record.level,
        passed=True,
        comparison=dataclasses.replace(comparison, outputs=rounded),
        reason=record.reason,
        figures={},
    )
    proven, _ = describe_proof(change_report(data, proofs=(proof,)))
    assert proven[0].endswith("Lowest SQNR of its outputs: 34.6 dB.")


def test_almost_all_is_not_called_all(data):
    facts = {**TAKEN, "assigned": 99_999, "left": 1}
    (placement,) = chart_placements(with_variant(data, facts).components[0])
    assert "99.9% of the nodes" in placement.verdict


def test_what_was_compiled_counts_before_what_was_estimated(data):
    found = with_variant(data, TAKEN, ESTIMATED)
    facts = find_placement(found.components[0], found.components[0].plan.variants[0])
    assert facts is not None
    assert (facts.assigned, facts.estimated) == (182, False)


def test_the_proof_tells_where_no_step_does(data):
    found = with_variant(data, least_share=0.8)
    found = change_report(found, assignments={"npu": {"ExampleProvider": 90, "OtherProvider": 10}})
    (placement,) = chart_placements(found.components[0])
    assert placement.verdict == "90% of the nodes assigned to ExampleProvider (min 80%)"


def test_work_for_the_device_is_named_where_nothing_was_compiled(data):
    prepare = Preparation(kind="cache", thing="TensorRT engine")
    (placement,) = chart_placements(with_variant(data, prepare=prepare, least_share=0.8).components[0])
    assert placement.segments == ()
    assert placement.verdict == "The assignment of nodes is only known on the device (min 80%)"
    assert placement.facts[0][0] == "Generated on the device"
    assert "TensorRT engine" in placement.facts[0][1]


@pytest.mark.parametrize("attack", ATTACKS)
def test_names_of_nodes_stay_text(data, attack):
    node = {"name": attack, "operator": attack, "reason": attack}
    facts = {**TAKEN, "provider": attack, "left_nodes": [node], "devices": [attack], "sdk": attack}
    assert_harmless(render_report(with_variant(data, facts, prepare=Preparation(kind="context", thing=attack))))


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"provider": None, "assigned": 1, "left": 1},
        {"provider": "x", "assigned": "many", "left": 1},
        {"assigned": 3, "left": 1},
    ],
)
def test_facts_of_other_stages_are_no_placement(facts):
    assert read_placement(facts) is None


def test_odd_facts_break_no_page(data):
    odd = json.loads(
        '{"provider": "x", "assigned": -4, "left": 0, "left_nodes": [1, null, {}], "devices": 5, "bytes": "n"}'
    )
    assert_harmless(render_report(with_variant(data, odd, least_share=1.0)))


def test_nodes_that_a_step_counted_are_not_called_uncounted(data):
    uncounted = change_report(data, assignments={})
    assert "no runtime reported the assignment" in words(render_report(uncounted))
    text = words(render_report(with_variant(uncounted, ESTIMATED)))
    assert "no runtime reported the assignment" not in text
    assert "Not measured: no runtime counted them in a run; see the compiled or estimated assignment above." in text
