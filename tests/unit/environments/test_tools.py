"""A tool that may run code of a stranger ends, with all that it started."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import pytest

from bundler.environments.tools import ShutIn, run_tool
from bundler.model.errors import EnvironmentMissingError, StageError

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
