"""Shapes that a user, a project or a target gives: what they fix, and what is refused with which words."""

from __future__ import annotations

import tomllib

import pytest

from bundler.model.errors import UsageError
from bundler.model.facts import ModelFacts
from bundler.model.open_sizes import YOUR_SIZES
from bundler.model.plan import BuildPlan
from bundler.model.shapes import Shape
from bundler.model.signature import Dimension, Port, Signature, ValueType
from bundler.planning.data import DataRequest
from tests.support.facts import make_facts
from tests.support.plans import plan_for

PHONE = "snapdragon-8g3"


def port(name: str, *shape: Dimension, kind: str = "tensor") -> Port:
    element = ValueType(element_type="float32", shape=shape)
    return Port(name=name, type=element if kind == "tensor" else ValueType(kind=kind, element=element))


def model(*inputs: Port) -> ModelFacts:
    return make_facts(signature=Signature(inputs=inputs, outputs=(port("y", None, 2),)))


TEXT_LINE = model(port("x", None, 3, None, None))
"""As PaddleOCR exports its models."""


def plan(facts: ModelFacts, target: str = PHONE, *overrides: str, **request: object) -> BuildPlan:
    return plan_for(target, *overrides, facts=facts, **request)


def refuse(facts: ModelFacts, target: str = PHONE, *overrides: str, **request: object) -> UsageError:
    with pytest.raises(UsageError) as caught:
        plan(facts, target, *overrides, **request)
    return caught.value


def test_sizes_without_a_name_are_refused_with_a_command_that_fixes_them() -> None:
    error = refuse(TEXT_LINE, command=("bundler", "build", "my models/cls.onnx", "--target", PHONE))
    assert error.details == ("x[0], x[2], x[3] are dynamic and unnamed",)
    assert "bundler build 'my models/cls.onnx' --target snapdragon-8g3 --shape x=1,3,64,64 (replace" in (
        error.hint or ""
    )


def test_a_project_file_is_reported_which_lines_it_needs() -> None:
    facts = model(port("serving default:0", None, 3, None, None), port("tokens", "rows", "length"))
    hint = refuse(facts, command=("bundler", "build"), project="bundler.toml").hint or ""
    assert hint.startswith("fix them, for example with shapes = {")
    reported, _, place = hint.partition("for example with ")[2].partition(" in bundler.toml")
    assert place == f", in the table of the model {YOUR_SIZES}"
    lines = reported.split(" and ")
    read = tomllib.loads("\n".join(lines))
    assert read["shapes"] == {"serving default:0": [1, 3, 64, 64]}
    assert set(read["dimensions"]) == {"rows", "length"}


@pytest.mark.parametrize("shape", [(2, 3, 48, 192), (20, 2, 3, 48, 192)])
def test_the_sizes_of_samples_come_before_those_that_axes_look_like(shape: tuple[int, ...]) -> None:
    facts = model(port("x", None, 3, None, None), port("tokens", "rows", "length"))
    samples = DataRequest(plain="samples", shapes={"x": shape, "tokens": (0, 2**40), "other": (1,)})
    hint = refuse(facts, samples=samples).hint or ""
    assert "--shape x=2,3,48,192 --dim rows=1 --dim length=16 (" in hint


@pytest.mark.parametrize("misfit", [{"shapes": {"x": (1, 3)}}, {"dimensions": {"bach": 1}}])
def test_a_project_is_reported_keys_for_sizes_that_do_not_fit(misfit: dict[str, object]) -> None:
    hint = refuse(TEXT_LINE, project="bundler.toml", **misfit).hint or ""
    assert 'shapes = { "x" = [1, 3, 64, 64] } in bundler.toml' in hint
    assert "--" not in hint


def test_a_name_of_an_input_is_quoted_for_the_shell_and_an_unprintable_one_is_not_reported() -> None:
    assert "--shape 'serving default:0=1,3,64,64'" in (
        refuse(model(port("serving default:0", None, 3, None, None))).hint or ""
    )
    hint = refuse(model(port("x\x1b[2J", None, 3))).hint or ""
    assert hint.isprintable()
    assert "--shape INPUT=SIZES" in hint


def test_a_shape_fixes_sizes_with_and_without_a_name() -> None:
    facts = model(port("x", "batch", 3, None, "width"))
    result = plan(facts, shapes={"x": (1, 3, 48, 320)})
    assert [(size.name, size.size, size.by, dict(size.axes)) for size in result.fixed_sizes] == [
        ("batch", 1, "user", {"x": (0,)}),
        ("width", 320, "user", {"x": (3,)}),
        ("x[2]", 48, "user", {"x": (2,)}),
    ]
    options = {"dimensions": {"batch": 1, "width": 320}, "shapes": {"x": [None, None, 48, None]}}
    assert result.step("fix_dimensions").options == options
    assert result.step("record_golden").options.items() >= options.items()
    decisions = {decision.subject: f"{decision.choice}, {decision.reason}" for decision in result.decisions}
    assert decisions["dimension x[2]"] == "48, given for this build"


def test_a_size_may_stay_open_where_the_provider_takes_that() -> None:
    result = plan(TEXT_LINE, "linux-x64", shapes={"x": (None, 3, 48, None)})
    decisions = {decision.subject: f"{decision.choice}, {decision.reason}" for decision in result.decisions}
    assert decisions["dimension x[0]"] == "dynamic, unnamed in the model, and not fixed"
    assert [size.name for size in result.fixed_sizes] == ["x[2]"]
    assert "x[0], x[3] are dynamic" in refuse(TEXT_LINE, shapes={"x": (None, 3, 48, None)}).details[0]


def test_what_is_asked_for_again_is_asked_for_whole() -> None:
    command = ("bundler", "build", "m.onnx", "--target", PHONE, "--shape", "x=?,3,48,?", "--no-prove")
    hint = refuse(TEXT_LINE, shapes={"x": (None, 3, 48, None)}, command=command).hint or ""
    assert "bundler build m.onnx --target snapdragon-8g3 --no-prove --shape x=1,3,48,64 (" in hint


def test_a_name_that_two_inputs_share_is_fixed_in_both_and_that_is_said() -> None:
    facts = model(port("x", "rows", 128), port("mask", "rows", None))
    result = plan(facts, "linux-x64", shapes={"x": (8, 128)})
    (note,) = result.notes
    assert note.text == "the given shape fixes rows = 8 wherever it occurs, including mask[0]"
    assert plan(facts, "linux-x64", shapes={"x": (8, 128), "mask": (8, 4)}).notes == ()


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({"y": (1,)}, "there is no input 'y' (did you mean 'x'?)"),
        ({"x": (1, 3, 48)}, "the shape 1,3,48 of input 'x': it has 4 sizes, not 3"),
        ({"x": (1, 4, 48, 48)}, "x[1] is 3 in the model; export it again to change that"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(shapes: dict[str, Shape], said: str) -> None:
    error = refuse(TEXT_LINE, shapes=shapes)
    assert said in error.details[0]
    assert error.details[-1] == "its inputs are: x: float32[?, 3, ?, ?]"
    assert "--shape x=1,3,64,64" in (error.hint or "")


def test_the_example_for_a_wrong_shape_is_a_shape() -> None:
    """Also for a model whose open sizes all have names: `--dim` was explained with the words for `--shape`."""
    hint = refuse(model(port("n", 4), port("x", "batch", 3)), shapes={"nothing": (1,)}).hint or ""
    assert "for example with --shape x=1,3 " in hint
    assert "--dim" not in hint


def test_what_has_no_sizes_is_refused() -> None:
    assert "it is a scalar and has no sizes" in refuse(model(port("s")), shapes={"s": (1,)}).details[0]
    nested = model(port("s", None, 3, kind="sequence"))
    assert "only tensors have sizes" in refuse(nested, shapes={"s": (1, 3)}).details[0]


def test_an_input_whose_number_of_sizes_is_unknown_needs_each() -> None:
    facts = make_facts(
        signature=Signature(inputs=(Port(name="x", type=ValueType(element_type="float32")),), outputs=())
    )
    assert "each size must be a number" in refuse(facts, shapes={"x": (1, None)}).details[0]
    assert [size.name for size in plan(facts, shapes={"x": (1, 3)}).fixed_sizes] == ["x[0]", "x[1]"]
    assert "--shape INPUT=SIZES" in (refuse(facts).hint or "")


def test_given_sizes_that_contradict_each_other_are_refused() -> None:
    facts = model(port("x", "rows", 128), port("mask", "rows", None))
    error = refuse(facts, dimensions={"rows": 4}, shapes={"x": (8, 128)})
    assert (
        error.details[0]
        == "rows is 4 by --dim rows=4, and 8 by the shape 8,128 of input 'x': a dimension has only one size"
    )
    assert "rows is 8 by" in refuse(facts, shapes={"x": (8, 128), "mask": (4, 4)}).details[0]
    assert plan(facts, dimensions={"rows": 8}, shapes={"x": (8, 128), "mask": (8, 4)})


def test_shapes_of_a_target_go_over_its_dimensions_and_below_what_is_given() -> None:
    facts = model(port("x", "batch", None))
    override = 'shapes.x="2,5"'
    of_target = plan(facts, PHONE, override)
    assert [(size.name, size.size, size.by) for size in of_target.fixed_sizes] == [
        ("batch", 2, "target"),
        ("x[1]", 5, "target"),
    ]
    assert "--dim batch=N --shape x=SIZES" in of_target.notes[0].text
    assert [size.by for size in plan(facts, PHONE, override, own_shapes=("x",)).fixed_sizes] == ["user", "user"]
    given = plan(facts, PHONE, override, shapes={"x": (1, 7)})
    assert [(size.name, size.size, size.by) for size in given.fixed_sizes] == [
        ("batch", 1, "user"),
        ("x[1]", 7, "user"),
    ]


def test_shapes_of_a_target_are_for_models_that_have_the_input() -> None:
    facts = model(port("x", 1, 5))
    assert plan(facts, PHONE, 'shapes.other="2,5"').fixed_sizes == ()
    assert "there is no input 'other'" in refuse(facts, PHONE, 'shapes.other="2,5"', own_shapes=("other",)).details[0]
    assert "the shapes of the target snapdragon-8g3 do not fit" in refuse(facts, PHONE, 'shapes.x="2,5"').message


def test_a_provider_that_leaves_nodes_of_unnamed_sizes_is_reported_with_what_fixes_them() -> None:
    notes = [note.text for note in plan(TEXT_LINE, "android-arm64").notes]
    assert any(
        "Android NNAPI runs nodes with dynamic sizes on the CPU" in text and "--shape x=1,3,64,64" in text
        for text in notes
    )
    assert plan(TEXT_LINE, "android-arm64", shapes={"x": (1, 3, 48, 192)}).notes == ()


def test_a_shape_may_name_its_model_once() -> None:
    facts = model(port("x", None, 3))
    assert [size.size for size in plan(facts, shapes={"cnn:x": (4, 3)}).fixed_sizes] == [4]
    assert refuse(facts, shapes={"x": (4, 3), "cnn:x": (5, 3)}).details == ("x is given as 4,3 and as 5,3",)
    assert "there is no input 'other:x'" in refuse(facts, shapes={"other:x": (4, 3)}).details[0]


def test_the_size_of_declared_pictures_is_the_example() -> None:
    options = {"kind": "images", "preprocessing": {"kind": "image", "size": [48, 192]}}
    error = refuse(TEXT_LINE, samples=DataRequest(options=options))
    assert "--shape x=1,3,48,192 (" in (error.hint or "")


def test_a_name_that_no_dimension_has_is_refused_with_what_reaches_those_without_one() -> None:
    error = refuse(TEXT_LINE, dimensions={"x": 3})
    assert error.details[1] == "unnamed, set with --shape: x[0], x[2], x[3]"
    assert "--shape x=1,3,64,64" in (error.hint or "")
