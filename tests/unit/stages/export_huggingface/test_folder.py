"""Errors about a folder before any library reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundler.model.errors import ModelError
from bundler.stages.export_huggingface.folder import read_folder
from tests.support.huggingface import write_folder, write_safetensors


def test_a_folder_lists_its_contents_and_the_files_that_decide(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model")
    for name in ("tokenizer.json", "vocab.txt", "pytorch_model.bin", "modeling_own.py", "README.md", "modules.json"):
        (folder / name).write_text("x")
    found = read_folder(folder)
    assert (found.architecture, found.model_type, found.weights) == ("BertModel", "bert", ("model.safetensors",))
    assert found.preprocessing == ("tokenizer.json", "vocab.txt")
    assert found.pooled
    assert not found.brings_code
    assert [path.name for path in found.files] == ["config.json", "model.safetensors", "tokenizer.json", "vocab.txt"]


def test_weights_in_parts_belong_together(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    names = ["model-00002-of-00002.safetensors", "model-00001-of-00002.safetensors"]
    for name in names:
        write_safetensors(folder / name, {name: np.ones(2, np.float32)})
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": names[0], "b": names[1], "c": names[1]}}))
    found = read_folder(folder)
    assert found.weights == tuple(sorted(names))
    assert [path.name for path in found.files] == ["config.json", index.name, *sorted(names)]
    (folder / names[0]).unlink()
    with pytest.raises(ModelError, match="1 of 2 weight files are missing"):
        read_folder(folder)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "model.bin", "a/b.safetensors", ""])
def test_a_list_of_weights_leads_nowhere_else(name: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(ModelError, match="which is not a safetensors file next to it"):
        read_folder(folder)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": 3}', "{", "[" * 100_000])
def test_a_list_of_weights_that_is_none_is_said(text: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ModelError, match="is not a list of weights"):
        read_folder(folder)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "has no config.json, so it contains no model"),
        ("model_index.json", "a pipeline of several models"),
        ("adapter_config.json", "an adapter without its model"),
        ("model.onnx", "an ONNX model already"),
    ],
)
def test_a_folder_without_a_configuration_is_said_with_what_it_is(name: str, message: str, tmp_path: Path) -> None:
    if name:
        (tmp_path / name).write_text("{}")
    with pytest.raises(ModelError, match=message) as caught:
        read_folder(tmp_path)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pytorch_model.bin", "a pickle .* which can run code"),
        ("tf_model.h5", "not for PyTorch"),
        ("nothing", "there are no weights: model.safetensors is missing"),
    ],
)
def test_only_safetensors_are_weights(name: str, message: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model")
    (folder / "model.safetensors").rename(folder / name)
    with pytest.raises(ModelError, match=message) as caught:
        read_folder(folder)
    assert "sav" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is truncated"),
        (b"\x01", "is truncated"),
        (b"\xff" * 8, "is truncated"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is a Git LFS pointer"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00{}12", "has 2 bytes of weights, but its header declares 0"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00[]", "has a header that cannot be read"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00\xff\xff", "has a header that cannot be read"),
    ],
    ids=["empty", "one-byte", "endless", "pointer", "surplus", "list", "no-text"],
)
def test_broken_weights_are_said(data: bytes, message: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model")
    (folder / "model.safetensors").write_bytes(data)
    with pytest.raises(ModelError, match=f"model.safetensors {message}") as caught:
        read_folder(folder)
    assert caught.value.hint


def test_weights_that_were_cut_while_they_came_are_said(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model")
    whole = (folder / "model.safetensors").read_bytes()
    for length in range(len(whole)):
        (folder / "model.safetensors").write_bytes(whole[:length])
        with pytest.raises(ModelError):
            read_folder(folder)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=64))
def test_any_bytes_for_weights_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    folder = write_folder(tmp_path / "model")
    (folder / "model.safetensors").write_bytes(len(data).to_bytes(8, "little") + data)
    with pytest.raises(ModelError):
        read_folder(folder)


@pytest.mark.parametrize("text", ["", "null", "[]", '"x"', "{", "[" * 100_000])
def test_a_configuration_that_is_none_is_said(text: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model")
    (folder / "config.json").write_text(text)
    with pytest.raises(ModelError, match=r"config\.json"):
        read_folder(folder)


def test_a_configuration_of_any_size_is_not_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model")
    with (folder / "config.json").open("wb") as stream:
        stream.truncate(1 << 30)
    with pytest.raises(ModelError, match="bytes, too many for a configuration"):
        read_folder(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": None},
        {"model_type": 3},
        {"model_type": "../../x"},
        {"model_type": "\x1b[2J"},
        {"architectures": "BertModel"},
        {"architectures": [3]},
        {"architectures": ["os.system('x')"]},
        {"architectures": ["A" * 10_000]},
        {"architectures": {"a": 1}},
        {"quantization_config": {"quant_method": "gptq"}},
        {"quantization_config": ["\x1b"]},
    ],
    ids=str,
)
def test_strings_of_a_configuration_are_checked_before_they_are_used(change: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        read_folder(write_folder(tmp_path / "model", **change))
    text = caught.value.message + " ".join(caught.value.details)
    assert text.isprintable()
    assert len(text) < 400


def test_code_that_comes_with_a_model_is_noticed(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", auto_map={"AutoModel": "own.Own"}, architectures=None)
    assert read_folder(folder).brings_code
    assert read_folder(folder).architecture == ""
