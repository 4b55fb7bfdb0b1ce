"""A tool that may run code of a stranger ends, with all that it started."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from bundler.environments.tools import ShutIn, run_tool
from bundler.model.errors import EnvironmentMissingError

SLEEPS = "sleep 600 & echo $! > child; wait"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no sessions to end")
def test_a_build_backend_that_waits_is_ended_with_what_it_started(tmp_path: Path) -> None:
    child = tmp_path / "child"
    with pytest.raises(EnvironmentMissingError, match="could not install it: sh did not finish within 1 s") as caught:
        run_tool(["sh", "-c", f"cd '{tmp_path}'; {SLEEPS}"], "install it", "sh", ShutIn(home=tmp_path, seconds=1.0))
    assert "build backend" in (caught.value.hint or "")
    assert _is_gone(int(child.read_text()))


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
