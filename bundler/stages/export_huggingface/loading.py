"""Load a PyTorch model from a folder without running the folder's code or inventing weights.

Imported only in the environment of Optimum, after `run` has disabled the network.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Final

import torch  # type: ignore[import-not-found, unused-ignore]
import transformers  # type: ignore[import-not-found, unused-ignore]
from optimum.exporters.tasks import TasksManager  # type: ignore[import-not-found, unused-ignore]
from safetensors import SafetensorError  # type: ignore[import-not-found, unused-ignore]

from bundler.model.errors import ModelError, UsageError
from bundler.stages.export_huggingface.folder import ModelFolder

AUTO: Final = "auto"
WITH_PAST: Final = "-with-past"
GENERATION: Final = "text-generation"
_SEVERAL_FILES: Final = ("metaclip_2", "musicgen", "sam", "speecht5")
"""Model types that Optimum exports as several models for every task."""
LIBRARY_ERRORS: Final = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NotImplementedError, OSError,
    RuntimeError, SafetensorError, TypeError, ValueError,
)  # fmt: skip
"""Errors of the libraries for a configuration, weights or a graph that they do not support."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model in float32, ready to run. `missing` are the parameters that the checkpoint lacks (they hold
    seeded random numbers), `unused` is the number of weights that only the checkpoint has.
    """

    model: Any
    task: str
    missing: tuple[str, ...]
    unused: int


def load_model(folder: ModelFolder, task: str) -> Loaded:
    """Load the model for `task` (or `auto`). Raises `ModelError` and `UsageError`."""
    _check_type(folder)
    owner = _named_class(folder)
    chosen = _infer_task(folder, owner) if task == AUTO else TasksManager.map_from_synonym(task)
    _check_task(folder, chosen, given=task)
    loader = owner if task == AUTO else _class_for(chosen, folder)
    torch.manual_seed(0)
    try:
        model, info = loader.from_pretrained(
            str(folder.path),
            dtype=torch.float32,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except LIBRARY_ERRORS as error:
        raise ModelError(
            f"the weights and the configuration are not those of a {folder.architecture or folder.model_type} model",
            details=(first_line(error, folder),),
            hint="save the model again with `save_pretrained`, or try another task",
        ) from error
    _configure_outputs(model)
    return Loaded(
        model=model.eval(),
        task=chosen,
        missing=tuple(sorted(info["missing_keys"])),
        unused=len(info["unexpected_keys"]),
    )


def first_line(error: BaseException, folder: ModelFolder) -> str:
    """A library's message in one line, without paths and control characters."""
    text = str(error).strip().partition("\n")[0].replace(str(folder.path), folder.path.name)
    plain = "".join(character if character.isprintable() else " " for character in text)
    return f"{type(error).__name__}: {plain[:300]}" if plain else type(error).__name__


def _check_type(folder: ModelFolder) -> None:
    name = folder.model_type
    if name not in transformers.CONFIG_MAPPING:
        raise _unknown(folder, f"Transformers {transformers.__version__} does not support models of type {name!r}")
    if not _tasks_of(name):
        raise _unknown(folder, f"Optimum does not export models of type {name!r}")
    if name in _SEVERAL_FILES:
        raise _several(folder, f"models of type {name!r} are exported as several")


def _tasks_of(model_type: str) -> list[str]:
    """The tasks for which Optimum can export a model type."""
    try:
        return sorted(TasksManager.get_supported_tasks_for_model_type(model_type, "onnx", library_name="transformers"))
    except KeyError:
        return []


def _unknown(folder: ModelFolder, message: str) -> ModelError:
    hint = "export it yourself (`torch.onnx.export`) and give the .onnx file"
    if folder.brings_code:
        message += ", and bundler does not run Python code from a model's folder"
        hint = "if you trust that code, export the model yourself and give the .onnx file"
    return ModelError(message, hint=hint)


def _several(folder: ModelFolder, why: str) -> ModelError:
    return ModelError(
        f"{folder.architecture or folder.model_type} cannot be exported as one ONNX model: {why}",
        hint="bundles of language models that generate are not supported yet; give a task for one model, like "
        f"`hf:{folder.path.name}?task=feature-extraction` (this one has: {', '.join(_single_tasks(folder)) or 'none'})",
    )


def _single_tasks(folder: ModelFolder) -> list[str]:
    tasks = [task for task in _tasks_of(folder.model_type) if not task.endswith(WITH_PAST)]
    several = TasksManager._ENCODER_DECODER_TASKS  # noqa: SLF001 - not available in a public form
    return [task for task in tasks if not (folder.config.get("is_encoder_decoder") and task.startswith(several))]


def _named_class(folder: ModelFolder) -> Any:
    """The library's class that the configuration names, or None."""
    found: Any = getattr(transformers, folder.architecture, None) if folder.architecture else None
    return found if inspect.isclass(found) and issubclass(found, transformers.PreTrainedModel) else None


def _infer_task(folder: ModelFolder, owner: Any) -> str:
    hint = f"name it: `hf:{folder.path.name}?task=TASK`, with one of {', '.join(_single_tasks(folder)) or 'none'}"
    if owner is None and folder.brings_code:
        raise _unknown(folder, f"Transformers does not have the model {folder.architecture!r}")
    if owner is None:
        name = folder.architecture or "none"
        raise UsageError(
            f"the task is unknown: Transformers does not have the architecture in config.json ({name})", hint=hint
        )
    try:
        # Its public form does not accept a class with its own metaclass.
        return str(TasksManager._infer_task_from_model_or_model_class(model_class=owner))  # noqa: SLF001
    except LIBRARY_ERRORS as error:
        details = (first_line(error, folder),)
        raise UsageError(f"the task of {folder.architecture} is unknown", details=details, hint=hint) from error


def _check_task(folder: ModelFolder, task: str, given: str) -> None:
    known = _tasks_of(folder.model_type)
    if task.startswith(TasksManager._ENCODER_DECODER_TASKS) and folder.config.get("is_encoder_decoder"):  # noqa: SLF001
        raise _several(folder, f"for {task} its encoder and its decoder are exported separately")
    if task.endswith(WITH_PAST) or (task == GENERATION and given == AUTO and task + WITH_PAST in known):
        raise _several(folder, "it generates text step by step, with a cache of past keys and values")
    if task not in known:
        hint = f"use one of: {', '.join(_single_tasks(folder)) or 'none'}"
        raise UsageError(f"Optimum does not export {folder.model_type} models for the task {task!r}", hint=hint)


def _class_for(task: str, folder: ModelFolder) -> Any:
    try:
        return TasksManager.get_model_class_for_task(task, framework="pt", model_type=folder.model_type)
    except LIBRARY_ERRORS as error:
        raise UsageError(
            f"Transformers has no class for the task {task!r} of {folder.model_type}",
            details=(first_line(error, folder),),
        ) from error


def _configure_outputs(model: Any) -> None:
    """Configure the model to return all outputs of one call by name, and to keep no cache."""
    for name, value in (("use_cache", False), ("torchscript", False), ("return_dict", True)):
        if hasattr(model.config, name):
            setattr(model.config, name, value)
