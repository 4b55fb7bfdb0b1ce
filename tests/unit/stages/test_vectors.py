"""The stages compute the figures and verdicts of the conformance vectors."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from bundler.model.codec import decode
from bundler.model.runtime import Tolerance
from tests.vectors.write import TOLERANCES, cases, find_differences, is_within, make_case, measure, read_cases

CASES = read_cases()


def vars_of(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_stages_find_the_expected_figures(case: dict[str, Any]) -> None:
    pairs = [(sample["actual"], sample["reference"]) for sample in case["samples"]]
    known, found = measure(pairs, quantity=case["reference"]["quantity"])
    assert (found.mismatch is not None) == case["mismatch"]
    if not case["mismatch"]:
        assert find_differences(vars_of(found), case["figures"]) == {}
    wanted = {**case["reference"], "signals": known.signals, "doubts": known.doubts}
    assert find_differences(vars_of(known), wanted) == {}
    assert list(known.signals) == pytest.approx(case["reference"]["signals"], rel=1e-12)
    for gate in case["gates"]:
        assert is_within(found, decode(Tolerance, gate["tolerance"])) == gate["within"], gate["name"]
        assert is_within(found, TOLERANCES[gate["name"]]) == gate["within"], gate["name"]


def test_every_case_stands_in_the_file() -> None:
    assert [case["name"] for case in CASES] == list(cases())
    for case in CASES:
        json.dumps(make_case(case["name"], cases()[case["name"]]), allow_nan=False)
