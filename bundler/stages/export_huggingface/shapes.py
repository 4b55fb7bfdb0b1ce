"""Correct sizes that an export declares dynamic although they are fixed, and the reverse.

Optimum names the height and width of every image, also where the model accepts one size only or where tracing made the
traced size a constant; and it declares fixed sizes for outputs that do depend on the input. Devices that require fixed
sizes, and generators of inputs, need the real ones. So each is tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import onnx
import torch  # type: ignore[import-not-found, unused-ignore]

from bundler.model.errors import StageError
from bundler.onnxkit.running import RunError
from bundler.stages.export_huggingface.differences import LIMIT, Arrays, differences
from bundler.stages.export_huggingface.reference import Trial
from bundler.stages.export_huggingface.trials import Pair

_MIN_RANK: Final = 3
"""Images and spectra; lengths of texts and sounds are tried by the comparison, and must be dynamic."""


def find_fixed(pair: Pair, trial: Trial) -> tuple[dict[str, int], list[Arrays]]:
    """Symbols that accept one size only, with that size, and PyTorch's outputs where another was accepted."""
    fixed: dict[str, int] = {}
    results: list[Arrays] = []
    feeds = pair.feeds(trial.inputs)
    shapes = {port.name: port.shape for port in pair.session.get_inputs()}
    for symbol, size in _candidates(shapes, feeds).items():
        doubled = {name: _double(value, shapes.get(name, []), symbol) for name, value in trial.inputs.items()}
        expected = pair.ask_model(doubled)
        if expected is None or not _agrees(pair, doubled, expected):
            fixed[symbol] = size
        else:
            results.append(expected)
    return fixed, results


def write_shapes(path: Path, fixed: Mapping[str, int], trials: Iterable[Arrays], others: Iterable[Arrays]) -> None:
    """Correct the declared shapes of the model at `path`. `trials` are outputs that differ in the sizes that are
    always dynamic (batch, length), `others` in the rest. External data is not changed.
    """
    model = onnx.load(str(path), load_external_data=False)
    for port in model.graph.input:
        for dimension in port.type.tensor_type.shape.dim:
            if dimension.dim_param in fixed:
                dimension.dim_value = fixed[
                    dimension.dim_param
                ]  # this removes the name: a dimension has one of the two
    seen, all_seen = list(trials), [*trials, *others]
    still = len(seen) > 1 and not _free_symbols(model)
    for port in model.graph.output:
        for axis, dimension in enumerate(port.type.tensor_type.shape.dim):
            sizes = {result[port.name].shape[axis] for result in all_seen if port.name in result}
            if dimension.HasField("dim_value") and sizes != {dimension.dim_value}:
                dimension.Clear()
            elif still and axis and len(sizes) == 1:
                dimension.dim_value = sizes.pop()
    del model.graph.value_info[:]  # inner sizes, of the traced inputs
    path.write_bytes(model.SerializeToString())


def _candidates(shapes: Mapping[str, list[Any]], feeds: Arrays) -> dict[str, int]:
    return {
        symbol: feeds[name].shape[axis]
        for name, shape in shapes.items()
        if len(shape) >= _MIN_RANK and feeds[name].dtype.kind == "f"
        for axis, symbol in enumerate(shape)
        if axis and isinstance(symbol, str)
    }


def _double(value: Any, shape: list[Any], symbol: str) -> Any:
    for axis, name in enumerate(shape):
        if name == symbol:
            value = torch.cat([value, value], dim=axis)
    return value


def _agrees(pair: Pair, inputs: Mapping[str, Any], expected: Arrays) -> bool:
    """Whether the export's outputs equal PyTorch's at another size than the traced one."""
    try:
        found = differences(pair.ask_export(pair.feeds(inputs)), expected)
    except (RunError, StageError):
        return False
    return all(item.max_relative <= LIMIT for item in found.values())


def _free_symbols(model: onnx.ModelProto) -> bool:
    """Whether anything but the first axis of an input is dynamic."""
    dimensions = (dim for port in model.graph.input for dim in port.type.tensor_type.shape.dim[1:])
    return any(not dimension.HasField("dim_value") for dimension in dimensions)
