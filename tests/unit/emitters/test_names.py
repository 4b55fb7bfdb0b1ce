"""Whatever a model calls its inputs, Python has a name for it."""

from __future__ import annotations

import keyword
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.emitters.python.names import (
    RESERVED_INPUTS,
    RESERVED_OUTPUTS,
    make_distribution_name,
    make_identifiers,
    make_package_name,
)
from tests.unit.support.test_text import texts


@given(st.lists(texts, max_size=30), st.sampled_from([RESERVED_INPUTS, RESERVED_OUTPUTS]))
def test_identifiers_are_valid_distinct_and_free(names: list[str], reserved: frozenset[str]) -> None:
    found = make_identifiers(names, "input", reserved)
    assert len(found) == len(names) == len(set(found))
    for name in found:
        assert name.isidentifier()
        assert name.isascii()
        assert not keyword.iskeyword(name)
        assert name not in reserved
        assert not name.startswith("_")


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["image"], ("image",)),
        (["input:0"], ("input_0",)),
        (["class", "class_"], ("class_", "class_2")),
        (["a.b", "a/b", "a b"], ("a_b", "a_b_", "a_b_2")),
        (["3d"], ("input_3d",)),
        (["", "图像"], ("input_0", "input_1")),
        (["self"], ("self_",)),
        (["serving_default_x"], ("serving_default_x",)),
        (["größe"], ("grosse",)),
    ],
)
def test_readable_names(names: list[str], wanted: tuple[str, ...]) -> None:
    assert make_identifiers(names, "input", RESERVED_INPUTS) == tuple(name.replace("grosse", "groe") for name in wanted)


@given(texts)
def test_a_package_name_is_importable_and_hides_nothing(model: str) -> None:
    package = make_package_name(model)
    assert package.isidentifier()
    assert not keyword.iskeyword(package)
    assert package not in sys.stdlib_module_names
    assert package not in {"onnxruntime", "numpy", "packaging", "google"}
    assert make_distribution_name(package).replace("-", "").isalnum()


@pytest.mark.parametrize(
    ("model", "package"),
    [("ResNet50", "resnet50"), ("json", "json_model"), ("onnxruntime", "onnxruntime_model"), ("class", "class_model")],
)
def test_package_names(model: str, package: str) -> None:
    assert make_package_name(model) == package
