"""Compile a model ahead of time with a provider's own compiler, and verify the result."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import onnx
from onnx import ModelProto

from bundler.model.codec import decode
from bundler.model.errors import StageError, error_from_json
from bundler.model.free_dimensions import place_label
from bundler.model.open_sizes import NOBODY, explain_command
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.placement import CONTEXT, explain_conditions, explain_left, left_behind, summarize_left
from bundler.onnxkit.placement_facts import LeftNode, count_placement, counted_nodes
from bundler.onnxkit.plugins import is_fresh
from bundler.onnxkit.signatures import model_signature
from bundler.onnxkit.structure import count_operators, external_names, qualified_name, read_structure
from bundler.stages.compile_context.apart import NOTHING_ASSIGNED, start_compiler
from bundler.stages.compile_context.byte_casts import widen_byte_casts
from bundler.stages.compile_context.captures import has_subgraphs, write_with_own_weights
from bundler.stages.compile_context.compiling import Job, NothingAssignedError, compile_models
from bundler.stages.compile_context.finishing import (
    Compiled,
    holds_all,
    read_compiled,
    rename_contexts,
    write_canonical,
)
from bundler.stages.compile_context.spec import Options
from bundler.support.text import count_things

ENTRY: Final = "model.onnx"
PARTNER: Final = "partner.onnx"
_CRASH_HINT: Final = "the compiler is defective: exclude part of the model, or compile on the device"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """One model of the call: its path, its structure, and the path of the result."""

    source: Path
    before: ModelProto
    target: Path


def run(request: StageRequest, report: Report) -> StageResult:
    """`model.onnx` with the compiled part. Raises `StageError`."""
    options = decode(Options, dict(request.options))
    models = [_open(request, "model", ENTRY)]
    if "partner" in request.inputs:
        models.append(_open(request, "partner", PARTNER))
    report(0.0, "compiling")
    with tempfile.TemporaryDirectory(dir=request.output) as scratch:
        folder = _stand(models, Path(scratch))
        widened = sum(_widen(folder / _place(index)) for index in range(len(models))) if options.wide_casts else 0
        _compile(models, options, folder)
        report(0.9, "checking")
        compiled = [
            read_compiled(model.target, options.provider, model.before, (folder / _place(index)).parent)
            for index, model in enumerate(models)
        ]
    rename_contexts([item.model for item in compiled], request.output)
    for model, item in zip(models, compiled, strict=True):
        write_canonical(item.model, model.before, model.target)
    written = sum(path.stat().st_size for path in request.output.iterdir())
    facts = [_check_placement(model, item, options, written) for model, item in zip(models, compiled, strict=True)]
    partner = {"partner": facts[1]} if len(facts) > 1 else {}
    return StageResult(facts={**facts[0], **partner}, entry=ENTRY, notes=(*_notes(facts[0]), *_note_casts(widened)))


def _open(request: StageRequest, role: str, name: str) -> _Model:
    source = request.input(role)
    before = read_structure(source)
    if any(qualified_name(node) == CONTEXT for node in counted_nodes(before)):
        hint = "give the original model"
        raise StageError(f"the {role} is already compiled for a device", hint=hint)
    return _Model(source=source, before=before, target=request.output / name)


def _compile(models: list[_Model], options: Options, folder: Path) -> None:
    job = Job(
        provider=options.provider,
        library=options.library,
        options=options.options,
        select=options.select,
        embed=options.embed,
        folder=str(folder),
        models=tuple((_place(index), str(model.target)) for index, model in enumerate(models)),
    )
    try:
        _start(job, folder)
    except NothingAssignedError as cause:
        raise _nothing_assigned(models[0].before, options, str(cause)) from cause


def _stand(models: list[_Model], scratch: Path) -> Path:
    """The folder that holds copies of the models under fixed names: compilers write paths into their results, and
    temporary files beside the model, where another build would find its artifact altered.
    """
    for index, model in enumerate(models):
        place = scratch / _place(index)
        place.parent.mkdir(exist_ok=True)
        if has_subgraphs(model.before):
            write_with_own_weights(model.source, place)
        else:
            shutil.copyfile(model.source, place)
        for name in external_names(model.before):
            (place.parent / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(model.source.parent / name, place.parent / name)
    return scratch


def _widen(place: Path) -> int:
    model = onnx.load(place, load_external_data=False)
    count = widen_byte_casts(model)
    if count:
        place.write_bytes(model.SerializeToString(deterministic=True))
    return count


def _note_casts(count: int) -> tuple[Note, ...]:
    if not count:
        return ()
    text = f"{count_things(count, 'cast')} from uint8 to floating point made through int32"
    return (Note(text=f"{text}: the compiler would take the bytes for truth values"),)


def _place(index: int) -> str:
    return f"{index}/{ENTRY}" if index else ENTRY


def _start(job: Job, scratch: Path) -> None:
    if is_fresh(job.provider):
        compile_models(job)
        return
    result = start_compiler(asdict(job), scratch / "result.json")
    if "crash" in result:
        raise StageError(f"the compiler of {job.provider} {result['crash']}", hint=_CRASH_HINT)
    if "error" in result:
        raise error_from_json(result["error"])
    if NOTHING_ASSIGNED in result:
        raise NothingAssignedError(result[NOTHING_ASSIGNED])


_SUPPORT_HINT = (
    "check that it supports the device that the options name, and that the model has a precision that the device "
    "supports (quantise it, or allow half precision)"
)
_CPU_OPERATORS = "ai.onnx.ml."
_CPU_HINT = "models of ai.onnx.ml run on the CPU alone: choose a target of the CPU; `bundler targets list` shows all"


def _nothing_assigned(model: ModelProto, options: Options, message: str) -> StageError:
    dynamic = list(_dynamic_dimensions(model))
    if dynamic:
        return StageError(
            f"no node can be assigned to {options.provider}: the model has dynamic dimensions",
            details=tuple(f"{port} has the dimension {name}" for port, name in dynamic),
            hint=f"fix them{explain_command(model_signature(model), NOBODY)}",
        )
    asked = ", ".join(f"{key}={value}" for key, value in sorted(options.options.items()))
    operators = count_operators(model)
    conditions = [f"If {name!r}: {reason}" for name, reason in explain_conditions(model).items()]
    return StageError(
        f"no node can be assigned to {options.provider}",
        details=(
            message,
            *conditions[:8],
            f"options: {asked}",
            f"the model has {', '.join(operators)}"[:600],
        ),
        hint=_CPU_HINT if any(name.startswith(_CPU_OPERATORS) for name in operators) else _SUPPORT_HINT,
    )


def _dynamic_dimensions(model: ModelProto) -> Iterator[tuple[str, str]]:
    for port in model_signature(model).inputs:
        for index, size in enumerate(port.type.shape or ()):
            if not isinstance(size, int):
                yield port.name, size or place_label(port.name, index)


def _check_placement(model: _Model, compiled: Compiled, options: Options, written: int) -> dict[str, Any]:
    left = explain_left(model.before, left_behind(model.before, compiled.model))
    total = len(counted_nodes(model.before, nested=True))
    inside = len(left_behind(model.before, compiled.model, nested=True)) - len(left)
    _check_statement(compiled, options, model.target.parent)
    if left and not options.partial:
        raise StageError(
            f"{len(left) + inside} of {total} nodes are not assigned to {options.provider}",
            details=summarize_left(left),
            hint="replace those operators, or allow the CPU to run them",
        )
    return {
        **count_placement(options.provider, total, left, inside),
        "contexts": compiled.contexts,
        "devices": list(_devices(options)),
        "sdk": compiled.sdk,
        "statement": compiled.statement,
        "bytes": written,
    }


def _devices(options: Options) -> tuple[str, ...]:
    asked = next((options.options[key] for key in options.device_options if options.options.get(key)), "")
    return _items(asked) if asked else tuple(value for _, value in sorted(options.select.items()))


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _check_statement(compiled: Compiled, options: Options, folder: Path) -> None:
    """A compiler that does not know a device's name compiles for a generic device, with a warning in its log only."""
    stated = {_items(part) for part in compiled.statement.split(":")}
    asked = {key: options.options[key] for key in options.device_options if options.options.get(key)}
    unstated = {key: value for key, value in asked.items() if _items(value) not in stated}
    wrong = tuple(
        f"{key}={value} was requested"
        for key, value in unstated.items()
        if key not in options.records or not holds_all(compiled.model, folder, options.records[key], _items(value))
    )
    if wrong:
        hint = "this version of it may not support that device"
        details = (*wrong, f"it states {compiled.statement or 'nothing'!r}")
        raise StageError(f"{options.provider} compiled for another device than requested", details=details, hint=hint)


def _notes(facts: dict[str, Any]) -> tuple[Note, ...]:
    if not facts["left"]:
        return ()
    left = summarize_left([LeftNode(**node) for node in facts["left_nodes"]])
    total = facts["assigned"] + facts["left"]
    return (Note(text=f"{facts['left']} of {total} nodes are assigned to the CPU: {'; '.join(left)}"),)
