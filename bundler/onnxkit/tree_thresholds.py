"""Find the thresholds that tree ensembles compare an input's columns with, and draw values on both sides of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from bundler.onnxkit.value_flow import ValueFlow, read_flow

Item = TypeVar("Item")
Thresholds = Mapping[int, tuple[float, ...]]
"""The thresholds of each column, in ascending order."""

_DOMAIN: Final = "ai.onnx.ml"
_SPLITS: Final = {
    "TreeEnsembleClassifier": ("nodes_values", "nodes_values_as_tensor"),
    "TreeEnsembleRegressor": ("nodes_values", "nodes_values_as_tensor"),
    "TreeEnsemble": ("nodes_splits",),
}
"""The attributes that hold thresholds, by operator; the first that is there counts."""
_KEEPING: Final = frozenset({"Cast", "Identity"})
"""Operators that keep every number in its column."""
_MAX_THRESHOLDS: Final = 64
"""Thresholds of a column that are kept, evenly spread."""
_LARGEST: Final = float(np.finfo(np.float32).max)


def tree_thresholds(model: ModelProto, names: tuple[str, ...]) -> dict[str, Thresholds]:
    """For each input whose columns reach a tree ensemble unchanged: the thresholds of its columns."""
    if not any(node.op_type in _SPLITS for node in model.graph.node):
        return {}
    flow = read_flow(model)
    found = {name: _by_column(name, flow) for name in names}
    return {name: columns for name, columns in found.items() if columns}


def draw_around(values: np.ndarray, columns: Thresholds, generator: np.random.Generator) -> np.ndarray:
    """`values` with new ones in these columns of the last axis: each interval between thresholds is as likely, and so
    are those below the first and above the last.
    """
    drawn = np.array(values, np.float64)
    for column in sorted(columns):
        if drawn.ndim and column < drawn.shape[-1]:
            edges = _edges(np.array(columns[column]))
            places = generator.integers(0, len(edges) - 1, drawn.shape[:-1])
            shares = generator.random(drawn.shape[:-1])
            drawn[..., column] = edges[places] + shares * (edges[places + 1] - edges[places])
    return drawn


def _edges(thresholds: np.ndarray) -> np.ndarray:
    """The thresholds, and a limit below and above them as far away as they are from each other."""
    least, most = thresholds[0], thresholds[-1]
    step = (most - least) / (len(thresholds) - 1) if len(thresholds) > 1 else max(abs(least), 1.0)
    edges: np.ndarray = np.clip([least - step, *thresholds, most + step], -_LARGEST, _LARGEST)
    return edges


def _by_column(start: str, flow: ValueFlow) -> Thresholds:
    columns: dict[int, set[float]] = {}
    for node in _ensembles(start, flow):
        for column, threshold in _splits(node):
            columns.setdefault(column, set()).add(threshold)
    return {column: tuple(spread(sorted(values), _MAX_THRESHOLDS)) for column, values in columns.items()}


def spread(values: Sequence[Item], most: int) -> Sequence[Item]:
    """At most so many of the values, evenly spread, the first and the last among them."""
    if len(values) <= most:
        return values
    return [values[place] for place in np.linspace(0, len(values) - 1, most).astype(int)]


def _ensembles(start: str, flow: ValueFlow) -> Iterator[NodeProto]:
    pending, seen = [start], {start}
    while pending:
        for node, _ in flow.readers.get(pending.pop(), ()):
            if node.domain == _DOMAIN and node.op_type in _SPLITS:
                yield node
            elif node.op_type in _KEEPING:
                fresh = [name for name in node.output if name not in seen]
                seen.update(fresh)
                pending.extend(fresh)


def _splits(node: NodeProto) -> Iterator[tuple[int, float]]:
    """Column and threshold of each node that is not a leaf. A file may hold lists of different lengths, or no numbers;
    the runtime's error about those is the better one.
    """
    given = {item.name: item for item in node.attribute}
    name = next((name for name in _SPLITS[node.op_type] if name in given), None)
    if name is None or "nodes_featureids" not in given:
        return
    try:
        values = given[name]
        numbers = numpy_helper.to_array(values.t) if values.HasField("t") else np.array(values.floats)
        modes = given["nodes_modes"].strings if "nodes_modes" in given else ()
        columns = helper.get_attribute_value(given["nodes_featureids"])
        rows = list(zip(columns, np.ravel(numbers).astype(np.float64).tolist(), strict=False))
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError):
        return
    for place, (column, number) in enumerate(rows):
        is_leaf = place < len(modes) and modes[place] == b"LEAF"
        if not is_leaf and column >= 0 and abs(number) <= _LARGEST:
            yield column, number
