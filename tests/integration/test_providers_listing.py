"""What a user gets from `bundler targets providers`."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine

NEAR = ("coreml", "nnapi", "xnnpack", "directml", "migraphx", "cann", "webgpu-native")
GONE = ("acl", "armnn", "onednn", "rknpu", "rocm", "tvm", "vitisai")


@pytest.mark.quick
def test_a_table_names_every_provider_and_what_became_of_those_that_are_gone(
    warm: CommandLine, snapshot: object
) -> None:
    text = warm.run("targets", "providers").expect(0).out
    lines = {line.split(" ")[0]: " ".join(line.split()) for line in text.splitlines()}
    assert [lines[name] for name in (*NEAR, *GONE)] == snapshot
    for name in GONE:
        assert f"\n  {name}: " in text


def test_json_is_one_document_with_packages_and_platforms(warm: CommandLine) -> None:
    listed = {entry["name"]: entry for entry in warm.run("targets", "providers", "--json").expect(0).document}
    assert listed["coreml"]["work"] == "on the device"
    assert listed["armnn"]["published"] is False
    (plugin, *_) = listed["webgpu-native"]["places"]
    assert (plugin["package"], plugin["plugin"]) == ("onnxruntime-ep-webgpu", True)
    page = warm.run("targets", "providers", "migraphx", "--json").expect(0).document
    assert page["cache_option"] == "migraphx_model_cache_dir"
    assert {"migraphx_fp16_enable", "device_id"} <= {option["key"] for option in page["options"]}


def test_an_unknown_provider_is_a_usage_error_with_the_nearest_name(warm: CommandLine) -> None:
    answer = warm.run("targets", "providers", "core-ml").expect(2)
    assert answer.out == ""
    assert 'did you mean "coreml"?' in answer.err


def test_help_has_examples(warm: CommandLine) -> None:
    assert "bundler targets providers coreml --json" in warm.run("targets", "providers", "--help").expect(0).out
