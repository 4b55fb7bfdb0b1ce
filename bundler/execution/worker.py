"""The worker's side of the pipe. Runs as a script, by path, in any tool environment.

Besides its environment's packages it can import only those that a request names: bundler and that of the stage
(PYTHONPATH would expose all of bundler's own environment). Requests and answers are lines of JSON. The protocol uses
the original standard output; file descriptor 1 is redirected to the log, because native libraries print to it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.abc
import importlib.util
import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import IO, Any

TRACEBACK_LINES = 12


class PackageFinder(importlib.abc.MetaPathFinder):
    """Finds the top-level packages in `folders`, and no others."""

    def __init__(self) -> None:
        self.folders: dict[str, str] = {}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of a named top-level package; its submodules are then found through its `__path__`."""
        del path, target
        folder = self.folders.get(fullname)
        if folder is None:
            return None
        initial = Path(folder, "__init__.py")
        if initial.exists():
            return importlib.util.spec_from_file_location(fullname, initial, submodule_search_locations=[folder])
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [folder]
        return spec


class Answers:
    """Writes whole lines to the protocol, from any thread."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, message: Mapping[str, Any]) -> None:
        """One message."""
        text = json.dumps(message, ensure_ascii=True)
        with self._lock:
            self._stream.write(text + "\n")
            self._stream.flush()


def main() -> None:
    """Serve requests until the parent closes the pipe or dies."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    gc.set_threshold(100_000, 50, 100)  # of what the tools import, next to nothing is garbage
    os.chdir(Path(__file__).parent)  # the folder that the parent started in may be removed meanwhile
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    if len(sys.argv) > 1:
        _bound_process(int(sys.argv[1]), int(sys.argv[2]))
    finder = PackageFinder()
    sys.meta_path.insert(0, finder)
    requests, answers = _take_pipes()
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(requests, waiting), daemon=True).start()
    while True:
        request = json.loads(waiting.get())
        finder.folders.update(request.get("packages", {}))
        answers.send({"id": request["id"], **_serve(request, answers)})


def _take_pipes() -> tuple[IO[str], Answers]:
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, Answers(answers)


def _receive(requests: IO[str], waiting: queue.SimpleQueue[str]) -> None:
    """Queue the requests. The end of the pipe ends the process at once, also in the middle of a stage."""
    with contextlib.suppress(OSError):
        for line in requests:
            waiting.put(line)
    os._exit(0)


def _bound_process(memory: int, file: int) -> None:
    """Limit the memory and the file size of this process and its children to these bytes (-1: no limit).

    If memory runs out all the same, the system ends this process first.
    """
    import resource  # noqa: PLC0415 - POSIX alone

    for kind, size in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_FSIZE, file), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        if size >= 0 and (hard == resource.RLIM_INFINITY or size < hard):
            resource.setrlimit(kind, (size, size))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500", "ascii")


def _serve(request: Mapping[str, Any], answers: Answers) -> dict[str, Any]:
    try:
        if "warm" in request:
            return _warm(request["warm"])
        return {"result": _run_stage(request, answers)}
    except BaseException as error:  # noqa: BLE001 - the worker's edge: any exception of a stage becomes an answer
        return {"error": _describe(error, request)}


def _warm(modules: list[str]) -> dict[str, Any]:
    """Import ahead of the first request; the stage that needs a module reports one that cannot be imported."""
    for module in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    return {"result": None}


def _run_stage(request: Mapping[str, Any], answers: Answers) -> Any:
    from bundler.model.codec import encode  # noqa: PLC0415 - importable once the finder is installed
    from bundler.model.stage import StageRequest  # noqa: PLC0415

    def report(fraction: float, text: str) -> None:
        answers.send({"id": request["id"], "progress": float(fraction), "text": str(text)})

    run = importlib.import_module(request["module"]).run
    inputs = {role: Path(path) for role, path in request["inputs"].items()}
    compiler = Path(request["compiler"]) if request.get("compiler") else None
    output = Path(request["output"])
    with contextlib.chdir(request["folder"]):
        result = run(StageRequest(inputs=inputs, options=request["options"], output=output, compiler=compiler), report)
    encoded = encode(result)
    json.dumps(encoded, allow_nan=False)
    return encoded


def _describe(error: BaseException, request: Mapping[str, Any]) -> dict[str, Any]:
    from bundler.model.errors import BundlerError, StageError  # noqa: PLC0415
    from bundler.support.disk import storage_error  # noqa: PLC0415

    stage, output = request.get("stage", "?"), Path(request.get("output", "."))
    lines = tuple(traceback.format_exception(error))
    details = tuple("".join(lines).rstrip().splitlines()[-TRACEBACK_LINES:])
    if isinstance(error, BundlerError):
        return dict(error.to_json())
    if isinstance(error, MemoryError) or "bad allocation" in str(error) or "std::bad_alloc" in str(error):
        hint = (
            "free memory, run fewer steps at once (`--jobs 1`), or build on a machine with more memory; a step may "
            "use 90% of this machine's memory, or BUNDLER_MEMORY_LIMIT"
        )
        return dict(StageError(f"stage {stage} ran out of memory", hint=hint).to_json())
    full = storage_error(error, f"stage {stage}", output)
    if full is not None:
        return dict(StageError(full.message, hint=full.hint, details=full.details).to_json())
    message = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {message[0][:300]}" if message else type(error).__name__
    hint = "internal error of the stage or of a tool: report it with the lines above and, if you may, the model"
    return dict(StageError(f"stage {stage} failed with {text}", hint=hint, details=details).to_json())


if __name__ == "__main__":
    main()
