"""The user's own pipeline, over the original models and over what the bundle ships."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.model.codec import decode
from bundler.model.errors import StageError, UsageError
from bundler.stages.run_pipeline.answers import Tolerance, compare_answers, read_answer
from bundler.stages.run_pipeline.spec import Facts
from tests.support.stage_calls import call_stage

PIPELINE = """
from dataclasses import dataclass


@dataclass
class Line:
    text: str
    score: float


def run(bundle, sample):
    values = sample["x"]
    grown = bundle.grow.run(x=values).y
    found = bundle.sum_up.run(**{"values": grown})
    assert found["all/0.tmp_1"] is found["total"] is found.total is found[0]
    found = found.total
    return [Line(text="big" if found[0] > 10 else "small", score=float(found[0]))]
"""

TOTAL = "all/0.tmp_1"


def write_model(path: Path, text: str) -> Path:
    model = onnx.parser.parse_model(text)
    for port in (*model.graph.output, *model.graph.node):  # a name that the parser of texts cannot read
        if isinstance(port, onnx.NodeProto):
            port.output[:] = [name.replace("total", TOTAL) for name in port.output]
        else:
            port.name = port.name.replace("total", TOTAL)
    onnx.save(model, path)
    return path


def write_models(folder: Path, factor: float) -> dict[str, Path]:
    folder.mkdir()
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    grow = f"{head} g (float[3] x) => (float[3] y) <float f = {{{factor}}}> {{ y = Mul(x, f) }}"
    total = f"{head} g (float[3] values) => (float[1] total) {{ total = ReduceSum<keepdims = 1>(values) }}"
    return {"grow": write_model(folder / "a.onnx", grow), "sum_up": write_model(folder / "b.onnx", total)}


COMPONENTS = [
    {"name": "grow", "inputs": {"x": "x"}, "outputs": {"y": "y"}},
    {"name": "sum_up", "inputs": {"values": "values"}, "outputs": {"total": TOTAL}},
]


def judge(
    tmp_path: Path,
    factor: float = 2.0,
    code: str = PIPELINE,
    *,
    inputs: Mapping[str, Path] = MappingProxyType({}),
    **options: Any,
) -> Facts:
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "pipeline.py").write_text(code)
    samples = tmp_path / "samples"
    samples.mkdir()
    for number in (1, 2):
        np.savez(samples / f"{number}.npz", x=np.full(3, number, np.float32))
    models = {"original": write_models(tmp_path / "original", 2.0), "model": write_models(tmp_path / "own", factor)}
    opened = {f"{role}.{name}": path for role, found in models.items() for name, path in found.items()}
    opened |= {"function": tmp_path / "pipeline.py", "samples": samples, **inputs}
    given = {"entry": ":run", "components": COMPONENTS, "absolute": 1e-4, "relative": 1e-3, **options}
    return decode(Facts, dict(call_stage("run_pipeline", tmp_path / "out", opened, **given).facts))


def test_equal_answers_are_equal(tmp_path: Path) -> None:
    assert judge(tmp_path) == Facts(samples=2, equal=2, max_absolute=0.0, differences=())


def test_numbers_within_the_tolerance_are_equal_and_the_largest_error_is_told(tmp_path: Path) -> None:
    facts = judge(tmp_path, 2.0002)
    assert (facts.equal, facts.differences) == (2, ())
    assert facts.max_absolute == pytest.approx(0.0012, rel=0.01)


def test_other_text_is_another_answer(tmp_path: Path) -> None:
    facts = judge(tmp_path, 1.0)
    assert facts.equal == 0
    assert facts.differences == (
        "1.npz[0].score: 3 instead of 6",
        "2.npz[0].text: 'small' instead of 'big'",
        "2.npz[0].score: 6 instead of 12",
    )


UNPRINTABLE = "class Key:\n    def __str__(self):\n        raise OSError('no text')\n\n"
OBJECTS = "import numpy as np\n\n"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("def run(bundle, sample):\n    pass", "returned nothing for 1.npz"),
        ("def run(bundle, sample):\n    return object()", "returned a value of type object"),
        ("import random\ndef run(bundle, sample):\n    return random.random()", "gives a different answer each time"),
        ("def run(bundle, sample):\n    return 1 / 0", "pipeline.py failed with ZeroDivisionError"),
        ("def run(bundle, sample):\n    raise KeyboardInterrupt", "pipeline.py failed with KeyboardInterrupt"),
        ("def run(bundle, sample):\n    raise GeneratorExit", "pipeline.py failed with GeneratorExit"),
        (f"{UNPRINTABLE}def run(bundle, sample):\n    return {{Key(): 1}}", "pipeline.py failed with OSError: no text"),
        (f"{OBJECTS}def run(bundle, sample):\n    return np.array([object()])", "returned a value of type object"),
        ("def run(bundle, sample):\n    return bundle.grow.run(z=1)", "grow.run has no input z"),
        ("def run(bundle, sample):\n    return bundle.grow.run(x=1)", "grow.run failed"),
        ("def other(bundle, sample):\n    return 1", "there is no function 'run' in pipeline.py"),
        ("def run(bundle, sample):\n    return bundle.detect.run()", "no 'detect'; its components are grow, sum_up"),
    ],
)
def test_a_function_that_cannot_be_judged_is_refused(tmp_path: Path, code: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        judge(tmp_path, code=code)


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("import nowhere_installed", "name its package in the project file"),
        ("def run(bundle, sample):\n    return 1 / 0", "this is your code: correct it"),
    ],
)
def test_only_an_import_that_fails_asks_for_packages(tmp_path: Path, code: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        judge(tmp_path, code=code)
    assert hint in (caught.value.hint or "")


AROUND = f"{PIPELINE}\nwhole = run\n"
REMEMBERED = """
kept = {}

def run(bundle, sample):
    place = float(sample["x"][0])
    if place not in kept:
        kept[place] = whole(bundle, sample)
    return kept[place]
"""


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        ("def run(bundle, sample):\n    return 'fine'", "it did not call grow, sum_up"),
        (f"{AROUND}def run(*given):\n    whole(*given)\n    return 'fine'", "outputs of grow, sum_up changed none"),
        (f"{AROUND}def run(*given):\n    whole(*given)\n    return float('nan')", "of grow, sum_up changed none"),
        (AROUND + REMEMBERED, "of grow, sum_up changed none"),
    ],
    ids=["constant", "unused", "nan", "remembered"],
)
def test_a_function_that_answers_the_same_whatever_the_models_answer_is_refused(
    tmp_path: Path, code: str, detail: str
) -> None:
    with pytest.raises(UsageError, match="returns the same answers for any outputs of the models") as refused:
        judge(tmp_path, 7.0, code)
    assert any(detail in line for line in refused.value.details)


def test_limits_that_nothing_can_exceed_are_refused(tmp_path: Path) -> None:
    code = f"{AROUND}def run(*given):\n    return whole(*given)[0].score"
    with pytest.raises(UsageError, match="for any outputs of the models"):
        judge(tmp_path, 7.0, code, absolute=1e9)


def test_models_that_make_no_difference_are_named(tmp_path: Path) -> None:
    first = "def run(bundle, sample):\n    return bundle.grow.run(**sample).y"
    assert judge(tmp_path / "uncalled", code=first).uncalled == ("sum_up",)
    ignored = (
        "def run(bundle, sample):\n    bundle.sum_up.run(values=sample['x'])\n    return bundle.grow.run(**sample).y"
    )
    facts = judge(tmp_path / "unnoticed", code=ignored)
    assert (facts.uncalled, facts.unnoticed) == ((), ("sum_up",))
    assert judge(tmp_path / "all").unnoticed == ()


def test_a_loop_that_altered_outputs_never_end_makes_a_difference(tmp_path: Path) -> None:
    code = (
        "def run(bundle, sample):\n    value, steps = sample['x'], 0\n    while value.max() < 50:\n"
        "        value, steps = bundle.grow.run(x=value).y, steps + 1\n"
        "    return [steps, float(bundle.sum_up.run(values=value).total[0])]"
    )
    assert judge(tmp_path, code=code).unnoticed == ()


def test_a_function_that_fails_with_the_bundles_models_alone_says_so(tmp_path: Path) -> None:
    code = "def run(bundle, sample):\n    return {12.0: 'big', 6.0: 'small'}[bundle.grow.run(**sample).y.sum()]"
    with pytest.raises(StageError, match="runs with the original models, but fails with the models of the bundle"):
        judge(tmp_path, 1.5, code)


def test_a_folder_without_samples_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    (tmp_path / "samples").mkdir()
    inputs = {"function": tmp_path / "pipeline.py", "samples": tmp_path / "samples"}
    with pytest.raises(UsageError, match="there are no samples for the pipeline"):
        call_stage("run_pipeline", tmp_path / "out", inputs, entry=":run", components=[], absolute=0.0, relative=0.0)


METRIC = """
def right(samples):
    return sum(one.answer[0]["text"] == LABELS[one.name] for one in samples) / len(samples)

LABELS = {"1.npz": "small", "2.npz": "big"}
"""


def measure(tmp_path: Path, factor: float, metric: str = METRIC) -> Facts:
    (tmp_path / "metric").mkdir(parents=True)
    (tmp_path / "metric" / "score.py").write_text(metric)
    return judge(tmp_path, factor, metric=":right", inputs={"metric": tmp_path / "metric" / "score.py"})


def test_the_users_metric_sees_the_answers_and_those_of_the_original_models(tmp_path: Path) -> None:
    facts = measure(tmp_path / "near", 2.1)
    assert (facts.equal, facts.value, facts.reference) == (0, 1.0, 1.0)
    assert measure(tmp_path / "far", 1.0).value == 0.5
    given = "def right(samples):\n    return float(sum(one.sample['x'].sum() for one in samples))"
    assert measure(tmp_path / "samples", 2.0, given).value == 9.0


def test_a_metric_that_gives_no_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the metric in score.py returned nothing, not a number"):
        measure(tmp_path, 2.0, "def right(samples):\n    pass")


ANSWERS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
EXACT = Tolerance(absolute=0.0, relative=0.0)


@given(ANSWERS)
def test_an_answer_equals_itself(answer: Any) -> None:
    assert list(compare_answers(read_answer(answer), read_answer(answer), EXACT)) == []


@given(ANSWERS, ANSWERS)
def test_answers_differ_both_ways_or_neither(one: Any, other: Any) -> None:
    first, second = read_answer(one), read_answer(other)
    assert bool(list(compare_answers(first, second, EXACT))) is bool(list(compare_answers(second, first, EXACT)))


def test_arrays_are_compared_element_by_element() -> None:
    first, second = np.array([1.0, np.nan, np.inf]), np.array([1.5, np.nan, -np.inf])
    (found,) = compare_answers(first, second, EXACT)
    assert (found.text, found.counts) == ("2 of 3 values differ, by up to inf", True)
    assert list(compare_answers(first, first.copy(), EXACT)) == []
    (found,) = compare_answers(np.zeros(3), np.zeros(4), EXACT)
    assert found.text == "an array float64[4] instead of an array float64[3]"
