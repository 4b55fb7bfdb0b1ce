"""Tries what a model that took over its process would try."""

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

from bundler.model.stage import Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    options = request.options
    private, port = Path(options["private"]), options["port"]

    def write_beside_model() -> None:
        request.input("model").with_name("planted").write_text("x")

    def write_into_cache() -> None:
        Path(options["cache"], "artifacts", "planted").write_text("x")

    attempts: dict[str, Callable[[], object]] = {
        "read a private file": private.read_bytes,
        "list its folder": lambda: list(private.parent.iterdir()) or 1 / 0,
        "write into its folder": lambda: (private.parent / "planted").write_text("x"),
        "write beside the model": write_beside_model,
        "write into the cache": write_into_cache,
        "write to the system": lambda: Path("/usr/planted").write_text("x"),
        "connect to this machine": lambda: socket.create_connection(("127.0.0.1", port), 2).close(),
        "see another process": lambda: Path(f"/proc/{options['pid']}/environ").read_bytes(),
        "end another process": lambda: os.kill(options["pid"], 0),
    }
    done = []
    for name, attempt in attempts.items():
        with contextlib.suppress(Exception):
            attempt()
            done.append(name)
    (request.output / "own").write_text("x")
    (request.output / "own").unlink()
    return StageResult(facts={"model": request.input("model").read_text(), "done": done, "home": str(Path.home())})
