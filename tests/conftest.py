"""What holds for every test and every process that one starts, however the tests themselves were started."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

# Set before anything imports onnxruntime: no test sends telemetry or writes its database.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

# Byte code goes to one folder beside the environment, for every process alike: none of them compiles what another has
# compiled, and bundles that a test runs where they lie stay as their manifest lists them.
BYTE_CODE = Path(sys.prefix) / "bytecode"
os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(BYTE_CODE)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell starts its background jobs with Ctrl-C ignored, and children inherit that; the tests of Ctrl-C need it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)

ONE_BROWSER = "tests/integration/web/uses/"
"""Tests that share a browser and the bundles that it shows."""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Forget byte code of passing folders: a later run may write other sources there, of one size and one time."""
    if not hasattr(session.config, "workerinput"):
        passing = Path(tempfile.gettempdir()).resolve()
        shutil.rmtree(BYTE_CODE.joinpath(*passing.parts[1:]), ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Send those to one process, and first, for they are the longest row; all others go wherever there is room.

    The marker `xdist_group` is for that, but xdist 3.8 finds it no more since pytest 9.2 took its ids out of reach.
    """
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 (only where xdist runs the tests)

    class OneBrowser(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return ONE_BROWSER if nodeid.startswith(ONE_BROWSER) else nodeid

    return OneBrowser(config, log) if config.getvalue("dist") == "loadgroup" else None
