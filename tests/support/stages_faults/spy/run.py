"""Tries what a model that took over its process would try."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bundler.model.stage import Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    options = request.options
    private, port = Path(options["private"]), options["port"]

    def write_beside_model() -> None:
        request.input("model").with_name("planted").write_text("x")

    def write_beside_output() -> None:
        Path(options["cache"], "tmp", *request.output.relative_to(Path(options["cache"], "tmp")).parts[:1], "x").touch()

    def write_into_cache() -> None:
        Path(options["cache"], "artifacts", "planted").write_text("x")

    attempts: dict[str, Callable[[], object]] = {
        "read a private file": private.read_bytes,
        "list its folder": lambda: list(private.parent.iterdir()) or 1 / 0,
        "write into its folder": lambda: (private.parent / "planted").write_text("x"),
        "write beside the model": write_beside_model,
        "write into the cache": write_into_cache,
        "write beside its output": write_beside_output,
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
    if "linger" in options:
        command = (sys.executable, "-c", "import time; time.sleep(60)", options["linger"])
        subprocess.Popen(command, start_new_session=True)
    (request.output / "own").write_text("x")
    (request.output / "own").unlink()
    if "link" in options:
        request.output.rmdir()
        request.output.symlink_to(options["link"])
    return StageResult(facts={"model": request.input("model").read_text(), "done": done, "home": str(Path.home())})
