"""Compile in a separate process: run as a script, by path, in the interpreter of the stage's environment.

It reads one job from standard input and writes its result to the file that the job names.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import signal
import sys
from pathlib import Path
from typing import Any, Final

_PACKAGE: Final = "bundler"
NOTHING_ASSIGNED: Final = "nothing assigned"


def start_compiler(job: dict[str, Any], result: Path) -> dict[str, Any]:
    """The result of a new process for a job; without a result, `crash` says how it ended."""
    message = json.dumps({"job": job, "result": str(result), "package": str(Path(__file__).parents[2])})
    from bundler.support.processes import run_process  # noqa: PLC0415 - in the new process, importable only later

    command = [sys.executable, "-I", "-X", "utf8", str(Path(__file__))]
    ended = run_process(command, data=message.encode(), stdout=None, stderr=None)
    try:
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"crash": _describe_end(ended.returncode)}
    finally:
        result.unlink(missing_ok=True)
    return found


def _describe_end(code: int) -> str:
    with contextlib.suppress(ValueError):
        return f"crashed in native code ({signal.Signals(-code).name})"
    return f"exited with code {code}"


def main() -> None:
    """Run one job in the new process."""
    message = json.loads(sys.stdin.buffer.read())
    _make_importable(Path(message["package"]))
    from bundler.model.errors import StageError  # noqa: PLC0415 - importable only now
    from bundler.stages.compile_context.compiling import Job, NothingAssignedError, compile_models  # noqa: PLC0415

    job = message["job"]
    result: dict[str, Any] = {}
    try:
        compile_models(Job(**{**job, "models": tuple(map(tuple, job["models"]))}))
    except NothingAssignedError as error:
        result = {NOTHING_ASSIGNED: str(error)}
    except StageError as error:
        result = {"error": error.to_json()}
    Path(message["result"]).write_text(json.dumps(result), encoding="utf-8")


def _make_importable(folder: Path) -> None:
    """Make bundler's package importable, as in a worker, and nothing beside it."""
    spec = importlib.util.spec_from_file_location(
        _PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        sys.exit(f"no package {_PACKAGE}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_PACKAGE] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    main()
