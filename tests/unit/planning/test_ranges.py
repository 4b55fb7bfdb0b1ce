"""Ranges of sizes: what becomes of them for providers that take them, and for others."""

from __future__ import annotations

from bundler.model.shapes import SizeRange, parse_shape
from tests.unit.planning.test_shapes import model, plan, port, refuse

GPU = "rtx-4090"
LINE = model(port("x", "batch", 3, None, None))
SHAPE = parse_shape("1..4,3,48,64..192..320")


def test_a_range_becomes_the_options_of_the_provider_that_takes_it() -> None:
    result = plan(LINE, GPU, shapes={"x": SHAPE})
    first, *others = result.variants
    (provider, options) = (first.providers[0].name, first.providers[0].options)
    assert provider == "NvTensorRTRTXExecutionProvider"
    assert {key: value for key, value in options.items() if "profile" in key} == {
        "nv_profile_min_shapes": "x:1x3x48x64",
        "nv_profile_opt_shapes": "x:4x3x48x192",
        "nv_profile_max_shapes": "x:4x3x48x320",
    }
    assert all("profile" not in key for variant in others for entry in variant.providers for key in entry.options)
    (build,) = (step for step in result.steps if step.stage == "build_engine")
    assert build.options["profiles"] == {"x": [[1, 3, 48, 64], [4, 3, 48, 192], [4, 3, 48, 320]]}


def test_what_a_range_bounds_stays_open_and_the_golden_set_stays_within() -> None:
    result = plan(LINE, GPU, shapes={"x": SHAPE})
    assert [size.name for size in result.fixed_sizes] == ["x[2]"]
    options = result.step("record_golden").options
    assert options["ranges"] == {
        "batch": {"least": 1, "best": 4, "most": 4},
        "x[3]": {"least": 64, "best": 192, "most": 320},
    }
    decisions = {decision.subject: decision.choice for decision in result.decisions}
    assert (decisions["dimension batch"], decisions["dimension x[3]"]) == ("1 to 4", "64 to 320")


def test_a_name_has_its_range_in_every_input() -> None:
    facts = model(port("x", "rows", 3), port("mask", "rows"))
    options = plan(facts, GPU, shapes={"x": (SizeRange(least=1, best=2, most=8), 3)}).variants[0].providers[0].options
    assert options["nv_profile_max_shapes"] == "x:8x3,mask:8"


def test_every_open_size_needs_a_range_where_one_has() -> None:
    error = refuse(LINE, GPU, shapes={"x": parse_shape("?,3,48,64..320")})
    assert error.details == ("without one: batch",)


def test_a_range_is_refused_where_no_provider_takes_one() -> None:
    error = refuse(LINE, "linux-x64", shapes={"x": SHAPE})
    assert error.message == "no provider of linux-x64 supports a range of sizes"
    assert error.details[0] == "requested: batch = 1..4, x[3] = 64..192..320"


def test_a_range_and_a_size_for_one_dimension_are_refused() -> None:
    error = refuse(LINE, GPU, dimensions={"batch": 2}, shapes={"x": SHAPE})
    assert "batch is 2 by --dim batch=2, and 1..4 by the shape" in error.details[0]


def test_a_size_that_the_model_fixes_has_no_range() -> None:
    error = refuse(LINE, GPU, shapes={"x": parse_shape("1,2..4,48,64")})
    assert "x[1] is 3 in the model" in error.details[0]
