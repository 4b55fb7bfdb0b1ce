"""Small trained models of public packages, as they come: each becomes a bundle that reproduces it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import onnx
import pytest

from bundler.execution.locks import hold
from tests.support.command_line import ROOT, CommandLine
from tests.support.documents import read_document

MODELS = {
    "silero_vad_op15": "If",
    "pp_ocrv6_rec_tiny": "Softmax",
    "phase_forest": "TreeEnsemble",
    "validity_forest": "TreeEnsembleClassifier",
    "hey_mycroft": "LSTM",
    "pp_ocrv6_det_tiny": "ConvTranspose",
}
"""Weights in branches, an alphabet in the metadata, a forest, audio, a detector; each with an operator that it has."""


@pytest.fixture(scope="module")
def listed() -> ModuleType:
    """The list of real models, and what fetches them: the benchmarks build all of it."""
    spec = importlib.util.spec_from_file_location("real_models", ROOT / "benchmarks" / "real_models.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their own module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fetch(listed: ModuleType, shared: Path) -> Callable[[str], Path]:
    """`fetch(name)` is the model's path; it is fetched once a session."""

    def find(name: str) -> Path:
        (model,) = (model for model in listed.list_models() if model.name == name)
        with hold(shared / "public-models.lock"):
            path: Path = listed.fetch_model(model, shared / "public-models")
        return path

    return find


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_a_package_is_verified_as_it_comes(
    name: str, fetch: Callable[[str], Path], bundler: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    path = fetch(name)
    assert MODELS[name] in {node.op_type for node in onnx.load(path).graph.node}
    built = bundler.build(path, *here, "--name", name, "--output", tmp_path)
    assert read_document(Path(built["bundle"]) / "bundle.json")["proof"]["level"] == "executed"
    bundler.run("verify", built["bundle"]).expect(0)


NPU = ("--target", "snapdragon-8g3", "--format", "files", "--dim", "batch=1", "--dim", "sequence=576")


def test_a_recurrent_model_with_decided_branches_runs_whole_on_an_npu(
    fetch: Callable[[str], Path], bundler: CommandLine, tmp_path: Path
) -> None:
    path = fetch("silero_vad_half")
    assert "If" in {node.op_type for node in onnx.load(path).graph.node}
    built = bundler.build(path, *NPU, "--output", tmp_path)
    manifest = read_document(Path(built["bundle"]) / "bundle.json")
    (step,) = (item for item in manifest["components"][0]["stages"] if item["step"] == "htp/compile_context")
    assert (step["facts"]["contexts"], step["facts"]["left"]) == (1, 0)


def test_an_npu_that_cannot_choose_by_an_input_is_refused_by_name(
    fetch: Callable[[str], Path], bundler: CommandLine, tmp_path: Path
) -> None:
    """Both rates in one model: the compiler leaves the condition, and with it nearly all nodes, to the CPU."""
    failed = bundler.run("build", fetch("silero_vad_ifless"), *NPU, "--output", tmp_path).expect(6)
    assert "variant htp: 3 of 90 nodes assigned to QNNExecutionProvider" in failed.err
    assert (
        "the branch that gives 'output', 'stateN' depends on the input 'sr'; export the model without this choice"
        in failed.err
    )
    assert "--set variants.htp.shortfall=report" in failed.err


def test_a_package_with_another_digest_is_refused(listed: ModuleType, tmp_path: Path) -> None:
    (model,) = (model for model in listed.list_models() if model.name == "validity_forest")
    other = replace(model, package=replace(model.package, sha256="0" * 64))
    with pytest.raises(listed.FetchError, match="cannot get surfaces-onnx-files"):
        listed.fetch_model(other, tmp_path)
    assert not any(tmp_path.iterdir())
