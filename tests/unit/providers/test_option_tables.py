"""The tables hold what the libraries have: `library_keys.json` was read from these libraries, not from the tables.

onnxruntime-qnn 2.6.0 (strings), onnxruntime-ep-openvino 1.8.1 and the older onnxruntime-openvino 1.24.1 (strings),
onnxruntime-gpu 1.31.1 (strings), onnxruntime-ep-nv-tensorrt-rtx-cu13 0.5.0 (its header).
"""

import json
from pathlib import Path

import pytest

from bundler.profiles.methods import METHODS
from bundler.providers.registry import find_provider
from bundler.providers.values import normalize_value

KEYS: dict[str, list[str]] = json.loads((Path(__file__).parent / "library_keys.json").read_text())
NAMES = sorted(KEYS)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "openvino"])
def test_every_key_of_the_library_is_in_the_table_and_no_other(name):
    assert sorted(rule.key for rule in find_provider(name).options.rules) == KEYS[name]


def test_every_key_of_openvino_is_valid_or_replaced():
    known = find_provider("openvino")
    keys = {rule.key for rule in known.options.rules}
    assert set(KEYS["openvino"]) <= keys | set(known.options.replaced)
    assert keys <= set(KEYS["openvino"])


@pytest.mark.parametrize("name", NAMES)
def test_no_key_is_both_valid_and_replaced(name):
    known = find_provider(name)
    assert not {rule.key for rule in known.options.rules} & set(known.options.replaced)


@pytest.mark.parametrize("name", NAMES)
def test_keys_stand_once_and_defaults_are_values(name):
    rules = find_provider(name).options.rules
    assert len({rule.key for rule in rules}) == len(rules)
    for rule in rules:
        if rule.default:
            normalize_value(rule, rule.default)


@pytest.mark.parametrize("name", NAMES)
def test_replacements_name_options_that_exist(name):
    known = find_provider(name)
    valid = {rule.key for rule in known.options.rules if not rule.decided}
    for text in known.options.replaced.values():
        for quoted in text.split("`")[1::2]:
            if quoted.replace("_", "").isalnum() and quoted not in ("dimensions", "prewarm"):
                assert quoted in valid, text


@pytest.mark.parametrize("name", NAMES)
def test_methods_are_known_and_tried_ones_run(name):
    known = find_provider(name)
    assert set(known.numerics.precisions) <= set(METHODS)
    assert set(known.numerics.tries) <= set(known.numerics.precisions)


@pytest.mark.parametrize("name", NAMES)
def test_a_path_or_an_address_is_not_for_a_profile(name):
    for rule in find_provider(name).options.rules:
        if rule.key.endswith(("_path", "_dir", "_stream", "_bytestream", "_alloc", "_array")) and rule.kind == "text":
            assert rule.decided or rule.key == "profiling_file_path", rule.key


@pytest.mark.parametrize("name", NAMES)
def test_compilers_tables_begin_with_where(name):
    compiler = find_provider(name).compiler
    if compiler is not None:
        assert compiler.options[0].key == "here"
