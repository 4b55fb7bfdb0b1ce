"""States that grow, and what a build or a provider has against it."""

from __future__ import annotations

import pytest

from bundler.model.errors import UsageError
from bundler.model.facts import ModelFacts
from bundler.model.signature import Port, Signature, ValueType
from bundler.model.state import parse_state
from bundler.planning.plan import make_plan
from bundler.planning.request import PlanRequest
from bundler.planning.settle import SettledProfile, settle_profile
from bundler.profiles.resolve import resolve_target
from tests.support.facts import make_facts


def port(name: str, *sizes: int | str) -> Port:
    return Port(name=name, type=ValueType(element_type="float32", shape=sizes))


DECODER = make_facts(
    signature=Signature(
        inputs=(port("x", 1, 8), port("past_k", 1, 4, "past", 8)),
        outputs=(port("y", 1, 8), port("present_k", 1, 4, "total", 8)),
    )
)


def settle(target: str, facts: ModelFacts = DECODER, *overrides: str, **given: int) -> SettledProfile:
    request = PlanRequest(dimensions=given, state=parse_state(["past_k=present_k,grows=2"]))
    settled = settle_profile(resolve_target(target, overrides), facts, request)
    make_plan(settled, request)
    return settled


def test_a_target_of_dynamic_sizes_keeps_its_variants() -> None:
    assert not settle("linux-x64").left_out
    assert [variant.name for variant in settle("web-webgpu").profile.variants] == ["webgpu", "wasm"]


def test_variants_of_fixed_sizes_are_left_out_with_a_reason() -> None:
    settled = settle("snapdragon-8g3")
    assert [variant.name for variant in settled.profile.variants] == ["cpu"]
    assert [(decision.subject, decision.reason) for decision in settled.left_out] == [
        ("variant htp", "Qualcomm QNN requires fixed sizes, but a state grows: past_k"),
        ("variant gpu", "Qualcomm QNN requires fixed sizes, but a state grows: past_k"),
    ]


def test_nodes_that_stay_on_the_cpu_are_not_to_be_fixed() -> None:
    notes = [note.text for note in settle("ios-arm64").notes]
    assert notes[0].startswith("variant coreml: Apple Core ML runs nodes with dynamic sizes on the CPU")
    assert notes[0].endswith("a state that grows keeps them dynamic")


def test_a_target_without_any_other_variant_is_refused() -> None:
    profile = resolve_target("snapdragon-8g3")
    only = profile.model_copy(update={"variants": profile.variants[:1]})
    request = PlanRequest(state=parse_state(["past_k=present_k,grows=2"]))
    with pytest.raises(UsageError, match="no variant of snapdragon-8g3 can run a state that grows") as caught:
        settle_profile(only, DECODER, request)
    assert caught.value.details == ("htp: Qualcomm QNN requires fixed sizes, but a state grows: past_k",)
    assert caught.value.hint


def test_a_size_that_the_build_fixes_does_not_grow() -> None:
    with pytest.raises(UsageError, match="cannot grow along a size that the build fixes") as caught:
        settle("linux-x64", past=16)
    assert caught.value.details == ("past_k grows along axis 2, where past = 16 is given for this build",)
    with pytest.raises(UsageError) as caught:
        settle("linux-x64", DECODER, "dimensions.past=16")
    assert "past = 16 is fixed by the target" in caught.value.details[0]
