"""Every stage that writes a model writes sorted graphs, also for a model with unsorted nodes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto

from bundler.onnxkit.node_order import sort_model, write_sorted
from bundler.onnxkit.structure import read_structure
from bundler.profiles.methods import METHODS
from tests.support import models
from tests.support.encoders import sentences, tiny_encoder
from tests.support.sample_sets import write_samples
from tests.support.stage_calls import call_stage


def shuffle(model: ModelProto) -> ModelProto:
    nodes = [NodeProto.FromString(node.SerializeToString()) for node in model.graph.node]
    random.Random(1).shuffle(nodes)  # noqa: S311 - the same order each time
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    return models.save(shuffle(tiny_encoder(batch=1, sequence=16, opset=17)), tmp_path / "shuffled")


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    whole = models.save(tiny_encoder(batch=1, sequence=16, opset=17), tmp_path / "whole")
    return write_samples(tmp_path / "samples", whole, [sentences(1, 16, seed=seed) for seed in range(2)])


def is_sorted(path: Path) -> bool:
    return not sort_model(read_structure(path))


WRITERS: dict[str, tuple[str, dict[str, Any]]] = {
    "optimize": ("optimize", {"level": "basic"}),
    "float16": ("convert_float", {}),
    "dynamic": ("quantize_dynamic", {}),
    "weights": ("quantize_weights", {}),
    "static": ("quantize_static", {}),
    "qnn": ("quantize_static", dict(METHODS["static-qnn"].options)),
    "tensorrt": ("quantize_static", dict(METHODS["static-tensorrt"].options)),
    "fused": ("fuse_transformers", {}),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_what_a_stage_writes_is_sorted(tmp_path: Path, encoder: Path, samples: Path, kind: str) -> None:
    stage, options = WRITERS[kind]
    inputs = {"model": encoder} | ({"samples": samples} if stage == "quantize_static" else {})
    assert not is_sorted(encoder)
    result = call_stage(stage, tmp_path / "out", inputs, **options)
    assert result.entry is not None
    assert is_sorted(tmp_path / "out" / result.entry)


def test_fixed_dimensions(tmp_path: Path) -> None:
    source = models.save(shuffle(tiny_encoder(opset=17)), tmp_path / "shuffled")
    call_stage("fix_dimensions", tmp_path / "out", {"model": source}, dimensions={"batch": 1, "sequence": 16})
    assert is_sorted(tmp_path / "out" / "model.onnx")


@pytest.mark.parametrize("save", [models.save, models.save_external])
@pytest.mark.parametrize("external", [False, True])
def test_a_sorted_copy_holds_the_same_weights(
    tmp_path: Path, save: Callable[[ModelProto, Path], Path], *, external: bool
) -> None:
    source = save(shuffle(models.mlp(hidden=64)), tmp_path / "in")
    copy = write_sorted(source, tmp_path / "sorted.onnx", external=external)
    assert is_sorted(copy)
    assert (tmp_path / "sorted.onnx.data").exists() == external
    for one, other in zip(onnx.load(source).graph.initializer, onnx.load(copy).graph.initializer, strict=True):
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(one), onnx.numpy_helper.to_array(other))


def test_a_sorted_model_is_not_copied(tmp_path: Path) -> None:
    source = models.save(models.mlp(), tmp_path / "in")
    assert write_sorted(source, tmp_path / "sorted.onnx", external=False) == source
    assert not (tmp_path / "sorted.onnx").exists()
