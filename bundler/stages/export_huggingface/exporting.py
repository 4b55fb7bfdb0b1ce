"""Export a PyTorch model to one ONNX file, through Optimum."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch  # type: ignore[import-not-found, unused-ignore]
import transformers  # type: ignore[import-not-found, unused-ignore]
from optimum.exporters.onnx import export  # type: ignore[import-not-found, unused-ignore]
from optimum.exporters.tasks import TasksManager  # type: ignore[import-not-found, unused-ignore]

from bundler.model.errors import StageError, UsageError
from bundler.stages.export_huggingface.folder import ModelFolder
from bundler.stages.export_huggingface.loading import LIBRARY_ERRORS, Loaded, first_line

OPSETS: Final = (9, 20)
"""The oldest opset whose constants the exporter folds, and the newest that it supports."""


def export_config(loaded: Loaded, folder: ModelFolder) -> Any:
    """Optimum's description of the model's inputs and outputs for the task. Raises `StageError`."""
    try:
        constructor = TasksManager.get_exporter_config_constructor(
            model=loaded.model, exporter="onnx", task=loaded.task, library_name="transformers"
        )
        return constructor(loaded.model.config, int_dtype="int64", float_dtype="fp32")
    except LIBRARY_ERRORS as error:
        raise StageError(
            f"Optimum cannot describe {folder.architecture or folder.model_type} for {loaded.task}",
            details=(first_line(error, folder),),
            hint="check the numbers in config.json, or export the model yourself and give the .onnx file",
        ) from error


def export_model(loaded: Loaded, config: Any, opset: int, target: Path, folder: ModelFolder) -> int:
    """Write the model to `target`, with external data beside it where it is large; returns the opset. Raises
    `UsageError` for an opset that the exporter does not support, `StageError` when the export fails.
    """
    low, high = OPSETS
    if opset and not low <= opset <= high:
        raise UsageError(
            f"the exporter supports opset {low} to {high}, not {opset}", hint="remove the opset, or change it"
        )
    chosen = opset or int(config.DEFAULT_ONNX_OPSET)
    torch.manual_seed(0)
    try:
        with quiet():
            export(loaded.model, config, target, opset=chosen, device="cpu", do_constant_folding=True)
    except LIBRARY_ERRORS as error:
        raise StageError(
            f"Optimum cannot export {folder.architecture or folder.model_type} for {loaded.task} at opset {chosen}",
            details=(first_line(error, folder),),
            hint=_hint(folder),
        ) from error
    return chosen


def _hint(folder: ModelFolder) -> str:
    if "preprocessor_config.json" not in folder.preprocessing:
        return "the folder has no preprocessor_config.json, which sets the image size of some models: add it"
    return "try another opset (`?opset=17`) or another task, or export the model yourself and give the .onnx file"


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the libraries' logs and warnings."""
    transformers.utils.logging.set_verbosity_error()
    for name in ("optimum", "transformers", "torch.onnx"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
