"""Names for Kotlin, Java and Maven out of anything that a model may say."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.emitters.jvm.names import KEYWORDS, choose_names, make_properties, make_version, name_getter, name_types
from bundler.model.errors import UsageError

ANYTHING = st.text(max_size=60)


@given(ANYTHING)
def test_any_model_has_a_package(model: str) -> None:
    names = choose_names(model, None)
    assert re.fullmatch(r"bundle\.[a-z][a-z0-9_]*", names.package)
    assert names.package.split(".")[1] not in KEYWORDS
    assert re.fullmatch(r"[A-Z][A-Za-z0-9_]*", names.type)
    assert re.fullmatch(r"[a-z][a-z0-9-]*", names.artifact)


@given(st.lists(ANYTHING, max_size=12))
def test_properties_are_identifiers_that_differ_in_java_too(names: list[str]) -> None:
    found = make_properties(names, "input")
    assert len({name.lower() for name in found}) == len(names)
    for name in found:
        assert re.fullmatch(r"[a-z][A-Za-z0-9]*", name)
        assert name not in KEYWORDS


@given(st.lists(st.from_regex(r"[a-z][a-z0-9_]{0,31}", fullmatch=True), unique=True, max_size=8))
def test_classes_of_components_differ(names: list[str]) -> None:
    parts = ("", "Inputs", "Outputs", "Stream", "StreamInputs", "StreamOutputs")
    made = [f"{type_}{part}".lower() for type_ in name_types(names, "Ocr") for part in parts]
    assert len(set(made)) == len(made)
    assert "ocrbundle" not in made


@pytest.mark.parametrize(
    ("given_name", "expected"),
    [
        ("input_ids", "inputIds"),
        ("save_infer_model/scale_0.tmp_1", "saveInferModelScale0Tmp1"),
        ("class", "classValue"),
        ("fun", "funValue"),
        ("int", "intValue"),
        ("7", "input7"),
        ("", "input0"),
        ("日本", "input0"),
        ('"); System.exit(1); //', "systemExit1"),
        ("${x}", "x"),
    ],
)
def test_a_property_reads_like_the_name(given_name: str, expected: str) -> None:
    assert make_properties([given_name], "input") == (expected,)


def test_names_that_differ_in_case_alone_are_kept_apart() -> None:
    assert make_properties(["x", "X", "x_", "aB", "a_b"], "input") == ("x", "xValue", "x2", "aB", "aBValue")


def test_a_class_does_not_take_the_name_of_what_it_uses() -> None:
    assert choose_names("stream", None).type == "StreamModel"
    assert choose_names("tensor", None).type == "TensorModel"
    assert choose_names("main", None).type == "MainModel"


def test_the_users_package_is_taken_as_it_is() -> None:
    names = choose_names("m", "com.acme.text-orientation")
    assert (names.package, names.group, names.artifact) == ("com.acme.text_orientation", "com.acme", "text-orientation")
    assert (names.type, names.loader) == ("TextOrientation", "com.acme.text_orientation.loader")


@pytest.mark.parametrize(
    "name",
    [
        "model",
        "Com.Acme",
        "com..x",
        "com.class",
        "com.1x",
        "../x",
        "com.x;",
        "a." * 80,
        "java.x",
        "com.x_",
        "com.fun",
        "",
    ],
)
def test_what_is_no_package_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        choose_names("m", name)


@pytest.mark.parametrize("version", ["1.2.3", "1.0.0-rc1", "2026.11", "1.0+cpu"])
def test_a_version_stays(version: str) -> None:
    assert make_version(version) == version


@pytest.mark.parametrize("version", ["", "1/2", "${x}", "1..2", "<a>", "1.0 ", "-1", "1" * 200, "1\n2"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(UsageError):
        make_version(version)


@pytest.mark.parametrize(
    ("property_", "getter"),
    [("inputIds", "getInputIds"), ("isCrowd", "isCrowd"), ("is2", "is2"), ("is", "getIs"), ("island", "getIsland")],
)
def test_java_reads_a_property_by_its_getter(property_: str, getter: str) -> None:
    assert name_getter(property_) == getter
