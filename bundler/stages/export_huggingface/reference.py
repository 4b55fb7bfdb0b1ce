"""Does the export answer what PyTorch answers? On seeded inputs of two sizes, so that what is dynamic moves.

The model is asked as its user would ask it, not as it was patched for the exporter.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
import torch  # type: ignore[import-not-found, unused-ignore]

from bundler.model.errors import ModelError, StageError
from bundler.stages.export_huggingface.exporting import quiet
from bundler.stages.export_huggingface.loading import LIBRARY_ERRORS, Loaded
from bundler.workbench.running import RunError, run_session
from bundler.workbench.sessions import REFERENCE, open_session

LIMIT: Final = 1e-3
"""The largest difference that is taken for rounding, as a share of an output's largest value."""

SIZES: Final[tuple[Mapping[str, int], ...]] = (
    {},
    {"batch_size": 3, "sequence_length": 11, "width": 96, "height": 64, "audio_sequence_length": 12000},
)
"""Those that the exporter traced with (Optimum's own), and others."""

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The largest difference of one output over all trials, as it is and as a share of the output's largest value."""

    max_absolute: float
    max_relative: float


def compare_with_reference(loaded: Loaded, config: Any, path: Path) -> tuple[dict[str, Difference], int]:
    """The difference by output, and how many trials it is over. Raises `StageError` where it is no rounding, and where
    weights that the checkpoint has not decide an output.
    """
    session = open_session(path, REFERENCE, error=StageError)
    names = [output.name for output in session.get_outputs()]
    differences: dict[str, Difference] = {}
    trials = 0
    for number, sizes in enumerate(SIZES):
        inputs = _make_inputs(config, sizes, seed=number)
        feeds = _feeds(config, inputs, session)
        if inputs is None or not _fits(session, feeds):
            continue
        expected = _ask(loaded, config, inputs, names)
        if expected is None:
            continue  # the model itself is made for one size
        _check_missing(loaded, config, inputs, expected, names)
        _join(differences, _differences(_answer(session, feeds), expected))
        trials += 1
    _judge(differences, names, trials)
    return differences, trials


def _make_inputs(config: Any, sizes: Mapping[str, int], seed: int) -> dict[str, Any] | None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - Optimum draws from the old generator
    try:
        return dict(config.generate_dummy_inputs(framework="pt", **sizes))
    except LIBRARY_ERRORS:
        if not sizes:
            raise
        return None


def _feeds(config: Any, inputs: Mapping[str, Any] | None, session: onnxruntime.InferenceSession) -> Arrays:
    wanted = [port.name for port in session.get_inputs()]
    ordered = config.generate_dummy_inputs_for_validation(dict(inputs or {}), wanted)
    return {name: value.numpy() for name, value in ordered.items() if name in wanted}


def _fits(session: onnxruntime.InferenceSession, feeds: Arrays) -> bool:
    """Whether the inputs have the sizes that the export fixes."""
    return all(
        port.name in feeds
        and len(port.shape) == feeds[port.name].ndim
        and all(
            not isinstance(want, int) or want == have
            for want, have in zip(port.shape, feeds[port.name].shape, strict=True)
        )
        for port in session.get_inputs()
    )


def _ask(loaded: Loaded, config: Any, inputs: Mapping[str, Any], names: list[str]) -> Arrays | None:
    """What PyTorch answers under the export's names; None when it refuses these inputs."""
    own = _run_model(loaded, config, inputs)
    if own is None or set(names) <= set(own):
        return own
    with config.patch_model_for_export(loaded.model):  # outputs that Optimum itself adds or names
        return _run_model(loaded, config, inputs)


def _run_model(loaded: Loaded, config: Any, inputs: Mapping[str, Any]) -> Arrays | None:
    copies = {name: value.clone() if hasattr(value, "clone") else value for name, value in inputs.items()}
    try:
        with quiet(), torch.inference_mode():
            answer = loaded.model(**config.rename_ambiguous_inputs(copies))
    except LIBRARY_ERRORS:
        return None
    renamed = dict(config.torch_to_onnx_output_map)
    flat: Arrays = {}
    for key, value in answer.items():
        name = renamed.get(key, key)
        values = (
            config.flatten_output_collection_property(name, value)
            if isinstance(value, (list, tuple))
            else {name: value}
        )
        flat |= {item: tensor.numpy() for item, tensor in values.items() if hasattr(tensor, "numpy")}
    return flat


def _answer(session: onnxruntime.InferenceSession, feeds: Arrays) -> Arrays:
    try:
        return {name: np.asarray(value) for name, value in run_session(session, feeds).items()}
    except RunError as error:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in feeds.items())
        raise StageError(
            "the exported model does not run on inputs that PyTorch takes",
            details=(f"inputs: {shapes}", str(error)),
            hint=_HINT,
        ) from error


def _differences(found: Arrays, expected: Arrays) -> dict[str, Difference]:
    return {name: _difference(name, found[name], expected[name]) for name in found if name in expected}


def _difference(name: str, found: np.ndarray, expected: np.ndarray) -> Difference:
    if found.shape != expected.shape:
        raise StageError(
            f"the exported model answers {name!r} in another shape than PyTorch",
            details=(f"PyTorch: {list(expected.shape)}", f"export: {list(found.shape)}"),
            hint=_HINT,
        )
    one, other = found.astype(np.float64), expected.astype(np.float64)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    gap = np.where(same, 0.0, np.abs(one - other))
    if not np.isfinite(gap).all():
        raise StageError(f"the exported model answers NaN or infinity in {name!r} where PyTorch does not", hint=_HINT)
    scale = float(np.abs(other[np.isfinite(other)]).max(initial=0.0))
    largest = float(gap.max(initial=0.0))
    return Difference(max_absolute=largest, max_relative=largest / max(scale, 1e-6))


def _join(all_of_them: dict[str, Difference], found: Mapping[str, Difference]) -> None:
    for name, item in found.items():
        before = all_of_them.get(name, item)
        all_of_them[name] = Difference(
            max_absolute=max(item.max_absolute, before.max_absolute),
            max_relative=max(item.max_relative, before.max_relative),
        )


def _check_missing(loaded: Loaded, config: Any, inputs: Mapping[str, Any], expected: Arrays, names: list[str]) -> None:
    """Weights that the checkpoint has not hold random numbers: with others, the outputs must stay as they are."""
    tensors = {**dict(loaded.model.named_parameters()), **dict(loaded.model.named_buffers())}
    held = [tensors[name] for name in loaded.missing if name in tensors and tensors[name].is_floating_point()]
    if not held:
        return
    kept = [tensor.detach().clone() for tensor in held]
    try:
        _overwrite(held, [tensor + torch.rand_like(tensor) for tensor in kept])
        again = _ask(loaded, config, inputs, names) or {}
    finally:
        _overwrite(held, kept)
    changed = [name for name in names if not np.array_equal(expected[name], again[name], equal_nan=True)]
    if changed:
        raise ModelError(
            f"{len(loaded.missing)} weights that {', '.join(changed)} depends on are not in the checkpoint",
            details=loaded.missing[:10],
            hint=f"the checkpoint was not trained for {loaded.task}: give the task that it was made for (`?task=…`)",
        )


def _overwrite(tensors: list[Any], values: list[Any]) -> None:
    with torch.no_grad():
        for tensor, value in zip(tensors, values, strict=True):
            tensor.copy_(value)


def _judge(differences: Mapping[str, Difference], names: list[str], trials: int) -> None:
    if not trials or set(differences) != set(names):
        lost = sorted(set(names) - set(differences))
        raise StageError(
            "the export could not be compared with PyTorch",
            details=(f"outputs without a counterpart: {', '.join(lost)}",) if lost and trials else (),
            hint=_HINT,
        )
    wrong = {name: item for name, item in differences.items() if item.max_relative > LIMIT}
    if wrong:
        lines = tuple(
            f"{name}: {item.max_absolute:g} ({item.max_relative:.2%} of its range)" for name, item in wrong.items()
        )
        raise StageError("the exported model does not answer what PyTorch answers", details=lines, hint=_HINT)


_HINT: Final = "try another opset (`?opset=17`), or export the model yourself and give the .onnx file"
