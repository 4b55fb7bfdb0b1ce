"""Call the compiler. Its files depend on the path of the model and on what the process compiled before, so the
model is named relative to the current folder, and each compiler starts in a process that has not used it yet.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import onnx
import onnxruntime

from bundler.model.errors import StageError
from bundler.model.free_dimensions import shown_name
from bundler.onnxkit.plugins import Plugin, is_fresh
from bundler.onnxkit.sessions import RUNTIME_ERRORS, SessionSettings, clean_message, session_options
from bundler.onnxkit.structure import find_doubles

_SHARE: Final = "ep.share_ep_contexts"
_LAST: Final = "ep.stop_share_ep_contexts"


class NothingAssignedError(Exception):
    """No node was assigned to the provider; the text is the runtime's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to compile: `models` are paths below `folder` with the absolute paths of the results."""

    provider: str
    library: str
    options: Mapping[str, str]
    select: Mapping[str, str]
    embed: bool
    folder: str
    models: tuple[tuple[str, str], ...] = field(default=())


def compile_models(job: Job) -> None:
    """Compile all models of a job. Raises `StageError`, and `NothingAssignedError` when nothing was compiled."""
    if not is_fresh(job.provider):
        raise StageError(f"this process has used {job.provider} before, so its result would not be reproducible")
    with contextlib.chdir(job.folder):
        for index, (source, target) in enumerate(job.models):
            _compile(job, source, target, index)


def _compile(job: Job, source: str, target: str, index: int) -> None:
    settings = SessionSettings(
        providers=((job.provider, job.options),),
        plugins={job.provider: Plugin(library=job.library, select=job.select)},
        session_config=_sharing(index, len(job.models)),
    )
    options = session_options(settings)
    flags = onnxruntime.OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED
    try:
        compiler = onnxruntime.ModelCompiler(options, source, embed_compiled_data_into_model=job.embed, flags=flags)
        compiler.compile_to_file(target)
    except RUNTIME_ERRORS as cause:
        message = clean_message(cause, Path(job.folder, source))
        if "Unable to compile any nodes" in message:
            raise NothingAssignedError(message) from cause
        hint = "check the provider's options, or compile on the device"
        model = onnx.load(Path(job.folder, source), load_external_data=False)
        ports = {port.name for port in (*model.graph.input, *model.graph.output)}
        doubles = [name for name in find_doubles(model) if name not in ports]
        if doubles:
            hint = f"export the model in float32: {shown_name(doubles[0])} is float64, which accelerators lack"
        raise StageError(f"{job.provider} cannot compile the model", details=(message,), hint=hint) from cause


def _sharing(index: int, count: int) -> dict[str, str]:
    if count == 1:
        return {}
    return {_SHARE: "1"} | ({_LAST: "1"} if index == count - 1 else {})
