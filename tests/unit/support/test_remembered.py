"""Whatever becomes of what was remembered: it is the same, or it is nothing; reading it never fails and never hangs."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundler.model.codec import conforms
from bundler.model.facts import ModelFacts
from bundler.stages.registry import find_stage
from bundler.support.remembered import read_bounded, recall, remember, seal, seal_bytes, unseal, unseal_bytes

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(value=JSON, about=st.text())
def test_what_is_remembered_comes_back(value: Any, about: str) -> None:
    assert unseal(seal(value, about), about) == value


@given(value=JSON, data=st.data())
def test_any_byte_altered_cut_or_added_is_nothing(value: Any, data: st.DataObject) -> None:
    good = seal(value, "this")
    place = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[place] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(bad), good[:place], good + data.draw(st.binary(min_size=1, max_size=3))):
        assert unseal(damaged, "this") is None


@given(content=st.binary(), here=st.text(), there=st.text())
def test_an_answer_to_another_question_is_none(content: bytes, here: str, there: str) -> None:
    found = unseal_bytes(seal_bytes(content, here), there)
    assert found == (content if here == there else None)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 100_000, "NaN x", "\ud800"])
def test_what_no_parser_takes_is_nothing(text: str) -> None:
    assert unseal(seal_bytes(text.encode("utf-8", "surrogatepass"), "this"), "this") is None


def test_what_is_no_plain_file_is_not_opened(tmp_path: Path) -> None:
    remember(tmp_path / "real", 1, "this")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "endless").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert recall(tmp_path / "real", "this") == 1
    for name in ("link", "endless", "pipe", "folder", "missing"):
        assert recall(tmp_path / name, "this") is None


def test_no_more_is_read_than_there_may_be(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(11))
    assert len(read_bounded(tmp_path / "large", 11)) == 11
    with pytest.raises(OSError, match="larger than 10 bytes"):
        read_bounded(tmp_path / "large", 10)


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        remember(tmp_path / "taken", 1, "this")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


GOOD: dict[str, Any] = {
    "name": "m",
    "ir_version": 8,
    "opsets": {"ai.onnx": 17},
    "producer": "",
    "signature": {"inputs": [], "outputs": []},
    "operators": {"Add": 1},
    "node_count": 1,
    "parameter_count": 0,
    "file_bytes": 10,
    "weight_bytes": 0,
    "external_bytes": 0,
    "external_files": [],
    "custom_domains": [],
    "random_operators": [],
    "control_flow": False,
    "quantized": False,
    "peak_memory_bytes": None,
}


def test_facts_as_a_stage_gives_them_conform() -> None:
    assert conforms(ModelFacts, GOOD)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ["a", "list"]),
        ("name", None),
        ("node_count", "1"),
        ("node_count", True),
        ("node_count", 1.5),
        ("node_count", 10**400),
        ("operators", [1]),
        ("operators", {"Add": "many"}),
        ("external_files", "file"),
        ("external_files", [["/dev/zero"]]),
        ("control_flow", 0),
        ("signature", {"inputs": [{}], "outputs": []}),
        ("peak_memory_bytes", "much"),
        ("another", 1),
    ],
)
def test_facts_of_another_type_do_not_conform(field: str, value: Any) -> None:
    assert not conforms(ModelFacts, {**GOOD, field: value})


GOLDEN: dict[str, Any] = {
    "samples": 1,
    "synthetic": True,
    "unstable_outputs": [],
    "non_finite_outputs": [],
    "dimensions": {},
    "tried_dimensions": [],
    "references": [{"name": "y", "signals": [1, 2.5]}],
    "weaknesses": [],
}


@pytest.mark.parametrize(
    "change",
    [{"references": [{"name": "y", "signals": 1e300}]}, {"references": {}}, {"samples": "8"}, {"weaknesses": [{}]}],
)
def test_facts_of_a_golden_set_have_their_types_and_nothing_else(change: dict[str, Any]) -> None:
    kind = find_stage("record_golden").facts
    assert conforms(kind, GOLDEN)
    assert not conforms(kind, {**GOLDEN, "more": ["of", "it"]})
    assert not conforms(kind, {**GOLDEN, **change})
    assert not conforms(kind, {name: fact for name, fact in GOLDEN.items() if name not in change})


READ_BY_BUILDS = (
    *("attribute_error", "compare", "fix_dimensions", "inspect"),
    *("measure_metric", "prepare_data", "record_golden", "time_model"),
)


@pytest.mark.parametrize("stage", READ_BY_BUILDS)
def test_a_stage_whose_facts_a_build_reads_names_their_type(stage: str) -> None:
    kind = find_stage(stage).facts
    assert dataclasses.is_dataclass(kind)
    assert not conforms(kind, {})


def test_facts_that_lack_something_do_not_conform() -> None:
    assert all(not conforms(ModelFacts, {k: v for k, v in GOOD.items() if k != name}) for name in GOOD)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(field=st.sampled_from(sorted(GOOD)), value=JSON | st.floats())
def test_whatever_stands_in_facts_they_conform_or_not_and_nothing_is_raised(field: str, value: Any) -> None:
    assert conforms(ModelFacts, {**GOOD, field: value}) in {True, False}


def test_json_that_nests_too_deep_does_not_conform() -> None:
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    assert not conforms(dict[str, Any], {"a": deep})
    assert not conforms(dict[str, Any], {"a": float("nan")})
