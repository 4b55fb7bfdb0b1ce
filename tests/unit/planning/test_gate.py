"""Which gate a model is held to: the profile's figures, and what fits the loss for those that it leaves out."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from syrupy.assertion import SnapshotAssertion

from bundler.model.errors import UsageError
from bundler.planning.gate import FLOAT, LOSSY, Loss, choose_gate, gate_decision
from bundler.profiles.methods import Loss as MethodLoss
from bundler.profiles.resolve import resolve_target
from bundler.profiles.schema import TargetProfile
from tests.support.facts import make_facts

LOSSES = get_args(Loss)


def profile(*overrides: str) -> TargetProfile:
    return resolve_target("linux-x64", overrides)


def test_every_loss_of_a_method_has_a_gate() -> None:
    assert set(LOSSES) == set(get_args(MethodLoss)) == {"none", *LOSSY}


def test_the_more_is_lost_the_less_is_asked() -> None:
    gates = [choose_gate(make_facts(), profile(), loss).default for loss in LOSSES]
    for name in ("sqnr_db", "low_sqnr_db", "worst_sqnr_db", "scores_top1_agreement", "agreement"):
        limits = [1.0 if getattr(gate, name) is None else getattr(gate, name) for gate in gates]
        assert limits == sorted(limits, reverse=True)
    assert [gate.absolute for gate in gates] == [FLOAT.absolute, *(None for _ in LOSSES[1:])]


@pytest.mark.parametrize("loss", LOSSES)
def test_figures_of_the_profile_count_whatever_is_lost(loss: Loss) -> None:
    gate = choose_gate(make_facts(), profile("accuracy.sqnr_db=33", "accuracy.top1_agreement=0.9"), loss)
    assert (gate.default.sqnr_db, gate.default.top1_agreement) == (33.0, 0.9)


def test_a_ratio_that_the_user_sets_holds_for_rounding_errors_too() -> None:
    assert not choose_gate(make_facts(), profile("accuracy.sqnr_db=400")).default.waives_rounding
    assert choose_gate(make_facts(), profile("accuracy.absolute=0")).default.waives_rounding


def test_one_limit_on_elements_alone_leaves_no_room_beside_it() -> None:
    asked = profile("accuracy.relative=0.1")
    assert choose_gate(make_facts(), asked, "eight-bit").default.allow(2.0) == pytest.approx(0.2)
    assert choose_gate(make_facts(), asked).default.allow(2.0) == pytest.approx(0.2001)


def test_an_output_has_its_own_limits_over_those_for_all() -> None:
    name = make_facts().signature.outputs[0].name
    gate = choose_gate(make_facts(), profile("accuracy.cosine=0.9", f'accuracy.outputs."{name}".sqnr_db=60'))
    strict = replace(FLOAT, cosine=0.9, waives_rounding=False)
    assert gate.of(name) == replace(strict, sqnr_db=60.0, low_sqnr_db=55.0, worst_sqnr_db=50.0)
    assert gate.of("another") == gate.default == strict
    assert not choose_gate(make_facts(), profile(f'accuracy.outputs."{name}".judged=false')).of(name).judged


def test_an_output_that_the_model_has_not_is_a_mistake(snapshot: SnapshotAssertion) -> None:
    name = make_facts().signature.outputs[0].name
    reported = []
    for wrong in (name[:-1], "zzz"):
        with pytest.raises(UsageError) as caught:
            choose_gate(make_facts(), profile(f"accuracy.outputs.{wrong}.sqnr_db=60"))
        reported.append("\n".join((caught.value.message, *caught.value.details, f"hint: {caught.value.hint}")))
    assert "\n\n".join(reported) == snapshot


def test_the_gates_as_a_plan_tells_them(snapshot: SnapshotAssertion) -> None:
    name = make_facts().signature.outputs[0].name
    decisions = [gate_decision(make_facts(), profile(), loss) for loss in LOSSES]
    decisions.append(gate_decision(make_facts(quantized=True), profile()))
    asked = ("accuracy.cosine=0.99", f'accuracy.outputs."{name}".judged=false')
    decisions.append(gate_decision(make_facts(), profile(*asked), "half"))
    assert "\n".join(f"{one.subject}: {one.choice}: {one.reason}" for one in decisions) == snapshot


def test_limits_of_single_samples_follow_the_one_that_is_given() -> None:
    gate = choose_gate(make_facts(), profile("accuracy.sqnr_db=25"), "eight-bit").default
    assert (gate.sqnr_db, gate.low_sqnr_db, gate.worst_sqnr_db) == (25.0, 20.0, 15.0)
    own = choose_gate(make_facts(), profile("accuracy.sqnr_db=25", "accuracy.worst_sqnr_db=-3"), "eight-bit").default
    assert (own.low_sqnr_db, own.worst_sqnr_db) == (20.0, -3.0)


def test_top_1_agreement_that_is_asked_of_all_replaces_that_of_scores() -> None:
    assert choose_gate(make_facts(), profile(), "eight-bit").default.scores_top1_agreement == 0.95
    asked = choose_gate(make_facts(), profile("accuracy.top1_agreement=0.8"), "eight-bit").default
    assert (asked.top1_agreement, asked.scores_top1_agreement) == (0.8, None)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("accuracy.sqnr_db=20", "accuracy.worst_sqnr_db=30"), "`worst_sqnr_db` 30 is above `sqnr_db` 20"),
        (("accuracy.low_sqnr_db=5", "accuracy.worst_sqnr_db=6"), "`worst_sqnr_db` 6 is above `low_sqnr_db` 5"),
        (("accuracy.sqnr_db=-10000",), "accuracy.sqnr_db"),
        (
            ("accuracy.outputs.y.judged=false", "accuracy.outputs.y.cosine=0.9"),
            "with the limit `cosine`",
        ),
    ],
)
def test_gates_that_contradict_each_other_are_a_mistake(overrides: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        profile(*overrides)
    assert said in "\n".join(caught.value.details)
