"""Node.js and the pinned JavaScript tools; a test that needs them is skipped where they are not, and says why."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.command_line import ROOT, end_group

TOOLS = ROOT / "tests" / "javascript" / "node_modules"
_ADDRESS = re.compile(r"http://(?:localhost|127\.0\.0\.1):\d+")


def find_node() -> str:
    """The command of Node.js; skips the test without it."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not on the PATH: install Node.js 20 or newer")
    return node


def find_tool(script: str) -> tuple[str, str]:
    """The command line of a pinned tool, by the path of its script; skips the test where it is not installed."""
    node = find_node()
    if not (TOOLS / script).is_file():
        pytest.skip(f"{script.partition('/')[0]} is not installed: `make setup` does it where npm is")
    return node, str(TOOLS / script)


def install(package: Path, app: Path) -> None:
    """`npm install` of a packed package into `app`, with no index to ask."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not on the PATH: install Node.js 20 or newer with npm")
    command = (npm, "install", "--offline", "--no-audit", "--no-fund", "--no-package-lock", str(package))
    run(command, app)


def run(command: tuple[str, ...], folder: Path) -> str:
    """What the command printed; the test fails with all that it said when it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@contextmanager
def serving(command: tuple[str, ...], folder: Path, seconds: float = 60) -> Iterator[str]:
    """Run a development server for as long as the block does; the address that it prints."""
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            yield _await_address(process, Path(log.name), time.monotonic() + seconds)
        finally:
            end_group(process)


def _await_address(process: subprocess.Popen[str], log: Path, until: float) -> str:
    while time.monotonic() < until and process.poll() is None:
        found = _ADDRESS.search(_read(log))
        if found:
            return found.group()
        time.sleep(0.1)
    raise AssertionError(f"the server printed no address:\n{_read(log)}")


def _read(log: Path) -> str:
    """What was printed, without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", log.read_text("utf-8", "replace"))
