"""Compare the export's outputs with PyTorch's, on seeded inputs of two sizes, so that dynamic dimensions vary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch  # type: ignore[import-not-found, unused-ignore]

from bundler.model.errors import ModelError, StageError
from bundler.onnxkit.running import RunError
from bundler.stages.export_huggingface.differences import HINT, LIMIT, Arrays, Difference, differences, join_differences
from bundler.stages.export_huggingface.trials import Pair

SIZES: Final[tuple[Mapping[str, int], ...]] = (
    {},
    {"batch_size": 3, "sequence_length": 11, "width": 96, "height": 64, "audio_sequence_length": 12000},
)
"""The sizes that the exporter traced with (Optimum's own), and others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Inputs by PyTorch's names, and its outputs by the export's names."""

    inputs: Mapping[str, Any]
    expected: Arrays


def make_trials(pair: Pair) -> tuple[Trial, ...]:
    """PyTorch's outputs on inputs of each size that it and the export accept. Raises `ModelError` when weights that the
    checkpoint lacks decide an output, `StageError` when there is no trial.
    """
    trials = []
    for number, sizes in enumerate(SIZES):
        inputs = pair.make_inputs(sizes, seed=number)
        expected = pair.ask_model(inputs) if inputs is not None and pair.fits(pair.feeds(inputs)) else None
        if inputs is not None and expected is not None:
            _check_missing(pair, inputs, expected)
            trials.append(Trial(inputs=inputs, expected=expected))
    if not trials:
        raise StageError("the export cannot be compared: PyTorch rejects Optimum's inputs", hint=HINT)
    return tuple(trials)


def compare(pair: Pair, trials: tuple[Trial, ...]) -> dict[str, Difference]:
    """The difference by output over all trials that the export accepts. Raises `StageError` when it is not rounding."""
    found: dict[str, Difference] = {}
    for trial in trials:
        feeds = pair.feeds(trial.inputs)
        if pair.fits(feeds):
            join_differences(found, differences(_run_export(pair, feeds), trial.expected))
    lost = sorted(set(pair.outputs) - set(found))
    if lost:
        raise StageError(f"the export's outputs {', '.join(lost)} have no counterpart in PyTorch", hint=HINT)
    wrong = {name: item for name, item in found.items() if item.max_relative > LIMIT}
    if wrong:
        shown = ((name, item.max_absolute, item.max_relative) for name, item in wrong.items())
        lines = tuple(f"{name}: differs by {absolute:g}, {share:.2%} of its range" for name, absolute, share in shown)
        raise StageError("the exported model's outputs differ from PyTorch's", details=lines, hint=HINT)
    return found


def _run_export(pair: Pair, feeds: Arrays) -> Arrays:
    try:
        return pair.ask_export(feeds)
    except RunError as error:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in feeds.items())
        details = (f"inputs: {shapes}", str(error))
        message = "the exported model does not run on inputs that PyTorch accepts"
        raise StageError(message, details=details, hint=HINT) from error


def _check_missing(pair: Pair, inputs: Mapping[str, Any], expected: Arrays) -> None:
    """Weights that the checkpoint lacks hold random numbers: with others, the outputs must not change."""
    loaded, names = pair.loaded, [name for name in pair.outputs if name in expected]
    tensors = {**dict(loaded.model.named_parameters()), **dict(loaded.model.named_buffers())}
    held = [tensors[name] for name in loaded.missing if name in tensors and tensors[name].is_floating_point()]
    if not held:
        return
    kept = [tensor.detach().clone() for tensor in held]
    try:
        _overwrite(held, [tensor + torch.rand_like(tensor) for tensor in kept])
        again = pair.ask_model(inputs) or {}
    finally:
        _overwrite(held, kept)
    changed = [name for name in names if not np.array_equal(expected[name], again[name], equal_nan=True)]
    if changed:
        raise ModelError(
            f"{len(loaded.missing)} weights that {', '.join(changed)} depends on are not in the checkpoint",
            details=loaded.missing[:10],
            hint=f"the checkpoint is not for {loaded.task}: give the task that it was trained for (`?task=…`)",
        )


def _overwrite(tensors: list[Any], values: list[Any]) -> None:
    with torch.no_grad():
        for tensor, value in zip(tensors, values, strict=True):
            tensor.copy_(value)
