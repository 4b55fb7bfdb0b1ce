"""The quantiser leaves nodes out by their names, so each needs one of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import onnx

from bundler.stages.quantize_static.quantizing import Loaded
from bundler.workbench.quantization.preparing import save
from bundler.workbench.quantization.reference import own_errors
from bundler.workbench.structure import read_structure


def with_names(loaded: Loaded, scratch: Path) -> Loaded:
    """The model itself where every node has its own name, else a copy in which it has. Raises `StageError`."""
    names = [node.name for node in read_structure(loaded.path).graph.node]
    if "" not in names and len(set(names)) == len(names):
        return loaded
    with own_errors("the model cannot be read whole"):
        model = onnx.load(loaded.path)
    taken, seen = set(names), set()
    for place, node in enumerate(model.graph.node):
        if not node.name or node.name in seen:
            node.name = next(name for name in _proposals(f"{node.op_type}_{place}") if name not in taken)
            taken.add(node.name)
        seen.add(node.name)
    save(model, scratch / "named.onnx", large=loaded.large)
    return replace(loaded, path=scratch / "named.onnx")


def _proposals(stem: str) -> Iterator[str]:
    yield stem
    yield from (f"{stem}_{number}" for number in itertools.count())
