"""The user's own pipeline, over the original models and over what the bundle ships."""

from __future__ import annotations

from pathlib import Path
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
    found = bundle.sum_up.run(**{"values": grown}).total
    return [Line(text="big" if found[0] > 10 else "small", score=float(found[0]))]
"""


def write_model(path: Path, text: str) -> Path:
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def write_models(folder: Path, factor: float) -> dict[str, Path]:
    folder.mkdir()
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    grow = f"{head} g (float[3] x) => (float[3] y) <float f = {{{factor}}}> {{ y = Mul(x, f) }}"
    total = f"{head} g (float[3] values) => (float[1] total) {{ total = ReduceSum<keepdims = 1>(values) }}"
    return {"grow": write_model(folder / "a.onnx", grow), "sum_up": write_model(folder / "b.onnx", total)}


COMPONENTS = [
    {"name": "grow", "inputs": {"x": "x"}, "outputs": {"y": "y"}},
    {"name": "sum_up", "inputs": {"values": "values"}, "outputs": {"total": "total"}},
]


def judge(tmp_path: Path, factor: float = 2.0, code: str = PIPELINE, **options: Any) -> Facts:
    (tmp_path / "pipeline.py").write_text(code)
    samples = tmp_path / "samples"
    samples.mkdir()
    for number in (1, 2):
        np.savez(samples / f"{number}.npz", x=np.full(3, number, np.float32))
    models = {"original": write_models(tmp_path / "original", 2.0), "model": write_models(tmp_path / "own", factor)}
    inputs = {f"{role}.{name}": path for role, found in models.items() for name, path in found.items()}
    inputs |= {"function": tmp_path / "pipeline.py", "samples": samples}
    given = {"entry": ":run", "components": COMPONENTS, "absolute": 1e-4, "relative": 1e-3, **options}
    return decode(Facts, dict(call_stage("run_pipeline", tmp_path / "out", inputs, **given).facts))


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
        "1.npz[0].score: 3 in place of 6",
        "2.npz[0].text: 'small' in place of 'big'",
        "2.npz[0].score: 6 in place of 12",
    )


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("def run(bundle, sample):\n    pass", "returned nothing for 1.npz"),
        ("def run(bundle, sample):\n    return object()", "returned a value of type object"),
        ("import random\ndef run(bundle, sample):\n    return random.random()", "answers otherwise each time"),
        ("def run(bundle, sample):\n    return 1 / 0", "pipeline.py failed with ZeroDivisionError"),
        ("def run(bundle, sample):\n    return bundle.grow.run(z=1)", "grow.run was given z, which is none of its"),
        ("def run(bundle, sample):\n    return bundle.grow.run(x=1)", "grow.run failed"),
        ("def other(bundle, sample):\n    return 1", "there is no function 'run' in pipeline.py"),
        ("def run(bundle, sample):\n    return bundle.detect.run()", "failed with AttributeError"),
    ],
)
def test_a_function_that_cannot_be_judged_is_refused(tmp_path: Path, code: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        judge(tmp_path, code=code)


def test_a_function_that_fails_with_the_bundles_models_alone_says_so(tmp_path: Path) -> None:
    code = "def run(bundle, sample):\n    return {12.0: 'big', 6.0: 'small'}[bundle.grow.run(**sample).y.sum()]"
    with pytest.raises(StageError, match="answers with the original models, and fails with those of the bundle"):
        judge(tmp_path, 1.5, code)


def test_a_folder_without_samples_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    (tmp_path / "samples").mkdir()
    inputs = {"function": tmp_path / "pipeline.py", "samples": tmp_path / "samples"}
    with pytest.raises(UsageError, match="there are no samples for the pipeline"):
        call_stage("run_pipeline", tmp_path / "out", inputs, entry=":run", components=[], absolute=0.0, relative=0.0)


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
    assert found.text == "an array float64[4] in place of an array float64[3]"
