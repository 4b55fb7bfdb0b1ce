"""Sizes that a target or the user fixes, and what a person hears of them."""

import pytest

from bundler.model.errors import UsageError
from bundler.model.facts import ModelFacts
from bundler.model.signature import Port, Signature, ValueType
from bundler.planning.request import PlanRequest
from bundler.planning.settle import settle_profile
from bundler.profiles.resolve import resolve_target
from tests.support.facts import make_facts
from tests.support.plans import plan_for

PHONE = "snapdragon-8g3"
"""Its profile fixes `batch` and `sequence`, among others."""


def audio(*names: str) -> ModelFacts:
    """A model of windows of audio, whose `sequence` is no sentence."""
    ports = tuple(
        Port(name=f"x{place}", type=ValueType(element_type="float32", shape=(name, 80)))
        for place, name in enumerate(names)
    )
    return make_facts(signature=Signature(inputs=ports, outputs=ports))


def plan(facts: ModelFacts, target: str = PHONE, *overrides: str, **request: object):
    return plan_for(target, *overrides, facts=facts, **request)


def reasons(result) -> dict[str, str]:
    return {decision.subject: f"{decision.choice}, {decision.reason}" for decision in result.decisions}


def test_a_size_of_the_target_is_reported_as_the_targets_before_anything_runs() -> None:
    result = plan(audio("sequence"))
    (note,) = result.notes
    assert f"the target {PHONE} fixes sequence = 128" in note.text
    assert "--dim sequence=N" in note.text, "the way out for a model that means another thing by it"
    assert reasons(result)["dimension sequence"] == "128, fixed by the target"
    assert "fixed by the target" in result.step("fix_dimensions").reason


def test_a_size_of_the_user_is_not_reported_as_the_targets() -> None:
    result = plan(audio("sequence"), dimensions={"sequence": 3000})
    assert result.notes == ()
    assert reasons(result)["dimension sequence"] == "3000, given for this build"


def test_a_size_that_the_user_put_into_the_profile_is_the_users() -> None:
    result = plan(audio("sequence"), PHONE, "dimensions.sequence=16", own_dimensions=("sequence",))
    assert (result.notes, result.fixed_sizes[0].by) == ((), "user")


def test_a_free_size_is_promised_nothing() -> None:
    assert reasons(plan(audio("frames"), "linux-x64"))["dimension frames"] == "dynamic, not fixed"


def test_the_loader_learns_which_axes_were_fixed() -> None:
    shape = ("batch", "sequence", "sequence")
    port = Port(name="mask", type=ValueType(element_type="int64", shape=shape))
    result = plan(make_facts(signature=Signature(inputs=(port,), outputs=(port,))))
    assert {size.name: (size.size, size.by, dict(size.axes)) for size in result.fixed_sizes} == {
        "batch": (1, "target", {"mask": (0,)}),
        "sequence": (128, "target", {"mask": (1, 2)}),
    }


def test_a_provider_that_leaves_nodes_of_free_sizes_is_reported_before_the_build() -> None:
    (note,) = plan(make_facts(), "web-webnn").notes
    assert note.level == "warning"
    assert "variant webnn: WebNN runs nodes with dynamic sizes on the CPU (dimension 'batch' is dynamic)" in note.text
    assert plan(make_facts(), "web-webnn", dimensions={"batch": 1}).notes == ()


def test_a_project_is_reported_keys_of_its_file_and_no_options() -> None:
    (left,) = plan(make_facts(), "web-webnn", project="bundler.toml").notes
    assert 'dimensions = { "batch" = 1 } in bundler.toml, in the table of the model' in left.text
    profile = resolve_target("linux-x64").model_copy(update={"dimensions": {"frames": 4}})
    (chosen,) = settle_profile(profile, audio("frames"), PlanRequest(project="bundler.toml")).notes
    assert chosen.text.endswith('give dimensions = { "frames" = N } in bundler.toml, in the table of the model')
    assert "--" not in left.text + chosen.text


def test_the_npu_of_openvino_takes_fixed_sizes_only() -> None:
    with pytest.raises(UsageError, match="variant npu runs on Intel OpenVINO, which requires fixed sizes") as caught:
        plan(audio("frames"), "intel-npu")
    assert "--dim frames=16 (" in caught.value.hint
    assert plan(audio("frames"), "intel-npu", dimensions={"frames": 100}).variants[0].name == "npu"


def test_the_cpu_of_openvino_takes_free_sizes() -> None:
    assert plan(audio("frames"), "intel-core-cpu").variants[0].name == "openvino"


def test_a_name_of_the_model_cannot_control_the_terminal() -> None:
    facts, name = audio("seq\x1b[2J\n"), "seq\x1b[2J\n"
    profile = resolve_target("linux-x64").model_copy(update={"dimensions": {name: 4}})
    (note,) = settle_profile(profile, facts, PlanRequest()).notes
    assert note.text.isprintable()
