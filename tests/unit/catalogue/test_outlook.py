"""What becomes of a variant is said before anything is built."""

from collections.abc import Iterator

import pytest

from bundler.catalogue.outlook import foresee_variants
from bundler.model.plan import VariantPlan
from bundler.profiles.asked import shipped_variants
from bundler.profiles.resolve import resolve_target, target_ids
from bundler.profiles.schema import Runtime
from tests.support.facts import make_facts
from tests.support.plans import plan_for
from tests.unit.profiles.devices import CPU, make_target, make_variant, register_known


@pytest.fixture(autouse=True)
def providers() -> Iterator[None]:
    with register_known():
        yield


def fate(variant):
    (found,) = foresee_variants(make_target(variant))
    return found.fate, found.text


def test_a_plain_variant_is_opened_as_it_ships():
    assert fate(CPU) == ("as it is", "the runtime loads the model as shipped")


def test_work_is_done_here_where_the_compiler_needs_no_device():
    assert fate(make_variant("htp", "npu")) == ("here", "compiled for Example NPU before shipping")


def test_what_free_sizes_leave_to_the_device_is_said_with_its_condition():
    condition = " where sizes are fixed (--dim, --shape) or have ranges, else on the device"
    assert fate(make_variant("engine", "ranges"))[1].endswith(condition)
    given = make_variant("engine", "ranges", options={"least": "x:1", "most": "x:8"})
    assert fate(given) == ("here", "compiled for Example Ranges before shipping")


@pytest.mark.parametrize("here", [False, "false", 0])
def test_work_is_left_to_the_device_where_the_profile_says_so(here):
    found, text = fate(make_variant("htp", "npu", compile={"here": here}))
    assert found == "on the device"
    assert text == "the NPU context is generated on the device, at install or first start"


def test_work_that_only_the_device_can_do():
    assert fate(make_variant("trt", "engine"))[0] == "on the device"


def test_a_variant_for_a_runtime_of_ones_own_is_left_out_with_what_replaces_it():
    old = make_variant("old", "museum", custom_build=True)
    found, text = fate(old)
    assert found == "left out"
    assert "runtimes have it no more since 1.20. Replacement: the provider cpu" in text
    assert shipped_variants(make_target(old, CPU)) == (CPU,)


def test_with_such_a_runtime_it_is_a_variant_like_others():
    profile = make_target(
        make_variant("old", "museum", custom_build=True), runtime=Runtime(version="1.31.1", custom_build=True)
    )
    assert foresee_variants(profile)[0].fate == "as it is"


def find_fate(variant: VariantPlan | None) -> str:
    if variant is None:
        return "left out"
    return "here" if variant.compiled else "on the device" if variant.prepare else "as it is"


@pytest.mark.parametrize("name", target_ids())
def test_what_is_said_of_a_target_is_what_a_plan_does(name):
    made = plan_for(name, facts=make_facts(quantized=True), dimensions={"batch": 1})
    planned = {variant.name: variant for variant in made.variants}
    for found in foresee_variants(resolve_target(name)):
        assert found.fate == find_fate(planned.get(found.name)), found.name


@pytest.mark.parametrize(
    ("shortfall", "text"),
    [
        ("fail", "requires at least 90% of the nodes; otherwise the build fails"),
        ("report", "requires at least 90% of the nodes; otherwise a warning, also in the manifest"),
    ],
)
def test_a_threshold_is_reported_with_what_follows(shortfall, text):
    (found,) = foresee_variants(make_target(make_variant("htp", "npu", least_share=0.9, shortfall=shortfall)))
    assert found.threshold == text
