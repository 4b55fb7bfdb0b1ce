"""A tool that may run code of a stranger ends, with all that it started."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import pytest

from bundler.environments.tools import ShutIn, run_tool
from bundler.model.errors import EnvironmentMissingError, IndexUnreachableError, StageError

SLEEPS = "sleep 600 & echo $! > child; wait"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no sessions to end")
def test_a_build_backend_that_waits_is_ended_with_what_it_started(tmp_path: Path) -> None:
    child = tmp_path / "child"
    with pytest.raises(EnvironmentMissingError, match="could not install it: sh did not finish within 1 s") as caught:
        run_tool(["sh", "-c", f"cd '{tmp_path}'; {SLEEPS}"], "install it", "sh", ShutIn(home=tmp_path, seconds=1.0))
    assert "build backend" in (caught.value.hint or "")
    assert _is_gone(int(child.read_text()))


@pytest.mark.parametrize(
    "said",
    [
        "Traceback (most recent call last):\nOSError: [Errno 28] No space left on device: '{place}/a.whl'\nmore",
        "error: failed to copy `{place}/a`\n  Caused by: No space left on device (os error 28)",
        "npm error code ENOSPC\nnpm error nospc ENOSPC: no space left on device, write",
        "[ERROR] Could not transfer artifact a:b: {place}/a.part (No space left on device)",
    ],
)
def test_a_tool_that_finds_no_space_is_one_clear_error(tmp_path: Path, said: str) -> None:
    script = f"cat >&2 <<'EOF'\n{said.format(place=tmp_path)}\nEOF\nexit 1"
    with pytest.raises(StageError) as caught:
        run_tool(["sh", "-c", script], "fetch the wheels", "pip")
    assert re.fullmatch(
        r"no space left on /\S* \(\S+ \S+ free of \S+ \S+\): could not fetch the wheels", caught.value.message
    )
    assert caught.value.details == ()
    assert "TMPDIR" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("uv", "cause: Failed to fetch: https://ann:secret@index.example/simple/\n  cause: client error (Connect)"),
        (
            "npm",
            "FetchError: request to https://ann:secret@index.example/a failed, reason: connect ECONNREFUSED 10.0.0.1",
        ),
        (
            "pip",
            "Max retries exceeded with url: https://index.example/simple/ (Caused by NewConnectionError('<conn>'))",
        ),
        (
            "Maven",
            "(https://index.example/maven2): Connect to index.example:443 [index.example/10.0.0.1] failed: timeout",
        ),
    ],
)
def test_an_index_that_nobody_reaches_is_said_first(name: str, said: str) -> None:
    script = f"cat >&2 <<'EOF'\n{said}\nEOF\nexit 1"
    with pytest.raises(IndexUnreachableError) as caught:
        run_tool(["sh", "-c", script], "fetch the wheels", name)
    assert caught.value.exit_code == 5
    assert caught.value.message == "the package index on index.example cannot be reached: could not fetch the wheels"
    assert "configure a reachable index with" in (caught.value.hint or "")
    assert "secret" not in "".join(caught.value.details)


def test_an_index_that_lacks_a_package_was_reached() -> None:
    script = "echo 'error: no version of torch==2.13.0+cpu' >&2; exit 1"
    with pytest.raises(EnvironmentMissingError) as caught:
        run_tool(["sh", "-c", script], "install it", "uv")
    assert not isinstance(caught.value, IndexUnreachableError)


def _is_gone(number: int) -> bool:
    """Whether the process has ended: it may take the system a moment to say so."""
    for _ in range(200):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{number}/stat").is_file() and Path(f"/proc/{number}/stat").read_text().split()[2] == "Z":
            return True
        time.sleep(0.05)
    return False
