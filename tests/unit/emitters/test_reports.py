"""What a loader reports is believed only where the bundle does not say otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.devices.contract import Outcome
from bundler.emitters.reports import list_outcomes, read_ending, read_outcome, read_recorded, read_report
from bundler.model.runtime import (
    SOLE,
    Compatibility,
    Gate,
    ProviderEntry,
    RuntimeComponent,
    RuntimeVariant,
    Tolerance,
)
from bundler.model.signature import Port, Signature, ValueType

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "reports.json").read_text("utf-8"))
CASES = {case["name"]: case for case in VECTORS["cases"]}
KINDS = VECTORS["outputs"].items()
RECORDED = read_recorded(json.dumps(VECTORS["index"]).encode())


def make_variant(name: str, provider: str) -> RuntimeVariant:
    return RuntimeVariant(
        name=name,
        model="models/model.onnx",
        files=(),
        providers=(ProviderEntry(name=provider, options={}),),
        session={},
        session_config={},
        disabled_optimizers=(),
        requires=Compatibility(systems=(), machines=(), runtime="1.31.1"),
        gate=Gate(default=Tolerance(**VECTORS["gate"])),
    )


VARIANTS = {"cpu": make_variant("cpu", "CPUExecutionProvider"), "gpu": make_variant("gpu", "CUDAExecutionProvider")}
COMPONENT = RuntimeComponent(
    name=SOLE,
    model="m",
    model_digest="",
    signature=Signature(
        inputs=(),
        outputs=tuple(Port(name=name, type=ValueType(element_type=kind, shape=("n",))) for name, kind in KINDS),
    ),
    variants=tuple(VARIANTS.values()),
    golden="golden",
    golden_digest="",
)


@pytest.mark.parametrize("name", CASES)
def test_each_report_gets_its_verdict(name: str) -> None:
    case: dict[str, Any] = CASES[name]
    code = None if case["code"] == "late" else case["code"]
    ending = read_ending(Outcome(code=code, output=json.dumps(case["report"]), errors="", seconds=5.0))
    found = read_report(ending, COMPONENT, VARIANTS[case.get("variant", "cpu")], RECORDED)
    assert found.passed is case["verdict"], found.reason
    assert case["says"] in found.reason
    if found.passed:
        assert found.comparison is not None
        assert (found.figures, found.nodes) == ({"opening_seconds": 0.1}, {"CPUExecutionProvider": 3})


GOOD = CASES["all outputs meet the gate"]["report"]


@pytest.mark.parametrize(
    "output",
    ["", "{", "null", '"passed"', "[" * 100_000, f"hello\n{json.dumps(GOOD)}", json.dumps(GOOD) * 2],
    ids=["nothing", "a part", "null", "a word", "nested", "a line before it", "twice"],
)
def test_what_is_not_one_document_is_no_report(output: str) -> None:
    ending = read_ending(Outcome(code=0, output=output, errors="boom", seconds=1.0))
    assert (list_outcomes(ending), ending.failure) == ({}, "it exited with code 0: boom")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.floats() | st.sampled_from(["passed", "y", "NaN", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD["variants"][0]]), inner),
    max_leaves=8,
)


@given(place=st.sampled_from([*GOOD["variants"][0]]), value=JSON)
def test_any_value_anywhere_gets_a_verdict(place: str, value: Any) -> None:
    """Only what says the same may pass."""
    outcome = {**GOOD["variants"][0], place: value}
    found = read_outcome(outcome, COMPONENT, VARIANTS["cpu"], RECORDED)
    if place in ("outputs", "samples", "status") and value != GOOD["variants"][0][place]:
        assert not found.passed


@given(figure=st.sampled_from([*GOOD["variants"][0]["outputs"][0]]), value=JSON)
def test_any_figure_gets_a_verdict(figure: str, value: Any) -> None:
    output = {**GOOD["variants"][0]["outputs"][0], figure: value}
    outcome = {**GOOD["variants"][0], "outputs": [output, *GOOD["variants"][0]["outputs"][1:]]}
    assert read_outcome(outcome, COMPONENT, VARIANTS["cpu"], RECORDED).passed in (True, False)


@pytest.mark.parametrize("index", [b"", b"[]", b"{}", b'{"samples": [], "outputs": 1}', b'{"samples": 3}', b"\xff"])
def test_an_index_of_another_form_is_refused(index: bytes) -> None:
    with pytest.raises((LookupError, TypeError, ValueError, AttributeError)):
        read_recorded(index)
