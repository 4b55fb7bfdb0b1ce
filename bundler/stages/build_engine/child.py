"""Build an engine in a separate process whose memory layout is the same each time.

The builder orders names by memory address and by which of its short threads ends first, so a model with dynamic shapes
gives other bytes each time (measured with TensorRT for RTX 1.7.1: the numbers in the names of the engine differ, its
computation does not). The bytes are equal when addresses are not randomised, the threads run one after another (one
processor, no preemption by a waking thread), and Python allocates the same memory: hashes are not salted, modules are
always compiled anew, and paths are read after the build. So this file is a script that restarts itself and imports
almost nothing.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_NO_RANDOM_ADDRESSES = 0x0040000
"""ADDR_NO_RANDOMIZE of Linux's personality(2)."""
_ASK = 0xFFFFFFFF
_MAX_LINES = 200


def main() -> None:
    """`start` prepares the process; `fixed` and `random` (addresses fixed or randomised) build."""
    if sys.argv[1] == "start":
        os.execv(sys.executable, [*_command(), "fixed" if _fix_addresses() else "random"])  # noqa: S606 - itself
    job = json.loads(sys.stdin.readline())
    result, engine = _build(job)
    target = json.loads(sys.stdin.readline())
    if engine is not None:
        with open(target["engine"], "wb") as stream:  # noqa: PTH123 - pathlib is one more module to import
            stream.write(engine)
    with open(target["result"], "w", encoding="utf-8") as stream:  # noqa: PTH123
        json.dump(result | {"repeatable": sys.argv[1] == "fixed"}, stream)


def _command() -> list[str]:
    return [sys.executable, "-s", "-P", "-X", "utf8", __file__]


def _fix_addresses() -> bool:
    """Whether this process may disable address randomisation and preemption for the program that it executes."""
    if sys.platform != "linux":
        return False
    import ctypes  # noqa: PLC0415 - not in the process that builds

    personality = ctypes.CDLL(None, use_errno=True).personality
    personality.argtypes = [ctypes.c_ulong]
    now = personality(_ASK)
    return bool(now >= 0 and personality(now | _NO_RANDOM_ADDRESSES) >= 0 and _queue_threads())


def _queue_threads() -> bool:
    try:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    except OSError:
        return False
    return True


def _build(job: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The report, and the engine if it was built."""
    import tensorrt_rtx_bindings as library  # type: ignore[import-not-found]  # noqa: PLC0415 - 95 MB

    from bundler.model.errors import StageError  # noqa: PLC0415 - not in the process that starts
    from bundler.stages.build_engine.profiles import add_profile  # noqa: PLC0415

    lines: list[str] = []
    logger = _make_logger(library, lines)
    builder = library.Builder(logger)
    network = builder.create_network(0)
    parser = library.OnnxParser(network, logger)
    if not (parser.parse_from_file(job["model"]) and network.num_outputs):
        errors = [parser.get_error(index) for index in range(parser.num_errors)]
        return {"errors": [[error.node(), error.desc()] for error in errors], "lines": lines}, None
    config = builder.create_builder_config()
    try:
        profiles = add_profile(builder, config, network, job["profiles"])
    except StageError as error:
        return {"refusal": error.to_json()}, None
    config.num_compute_capabilities = len(job["devices"])
    for index, name in enumerate(job["devices"]):
        config.set_compute_capability(library.ComputeCapability.__members__[name], index)
    engine = builder.build_serialized_network(network, config)
    facts = {"profiles": profiles, "tf32": bool(config.get_flag(library.BuilderFlag.TF32)), "lines": lines}
    return facts, engine


def _make_logger(library: Any, lines: list[str]) -> Any:
    """A logger that keeps errors in `lines`; nothing from TensorRT goes to the screen."""
    kept = {library.ILogger.Severity.INTERNAL_ERROR, library.ILogger.Severity.ERROR}

    class Logger(library.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            library.ILogger.__init__(self)

        def log(self, severity: Any, text: str) -> None:
            if severity in kept and len(lines) < _MAX_LINES:
                lines.append(text)

    return Logger()


if __name__ == "__main__":
    main()
