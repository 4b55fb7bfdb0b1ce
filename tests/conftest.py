"""What holds for every test and every process that one starts, however the tests themselves were started."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# No test fails on a time.
hypothesis.settings.register_profile("timeless", deadline=None)
hypothesis.settings.load_profile("timeless")

# Set before anything imports onnxruntime: no test sends telemetry or writes its database.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

# Byte code goes to one folder beside the environment, for every process alike: none of them compiles what another has
# compiled, and bundles that a test runs where they lie stay as their manifest lists them.
BYTE_CODE = Path(sys.prefix) / "bytecode"
os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(BYTE_CODE)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell starts its background jobs with Ctrl-C ignored, and `nohup` ignores the end of the terminal; children inherit
# both, and the tests of interruptions need them.
signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.platform != "win32":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

ONE_BROWSER = "tests/integration/web/uses/"
"""Tests that share a browser and the bundles that it shows."""

UNIT = Path(__file__).with_name("unit")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick are the tests of units that are not heavy, and the journeys that say so. Among several processes the heavy
    ones come first, so that none of them is the last to end.
    """
    for item in items:
        if item.path.is_relative_to(UNIT) and item.get_closest_marker("slow") is None:
            item.add_marker("quick")
    if os.environ.get("PYTEST_XDIST_WORKER"):
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Forget byte code of passing folders: a later run may write other sources there, of one size and one time."""
    if not hasattr(session.config, "workerinput"):
        passing = Path(tempfile.gettempdir()).resolve()
        shutil.rmtree(BYTE_CODE.joinpath(*passing.parts[1:]), ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Send to one process the tests that share what is made once: a browser, or a fixture of their module.

    Those come first, for they are the longest rows; all others go wherever there is room. The marker `xdist_group` is
    for that, but xdist 3.8 finds it no more since pytest 9.2 took its ids out of reach.
    """
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 (only where xdist runs the tests)

    class Sharing(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.partition("::")[0]
            if nodeid.startswith(ONE_BROWSER):
                return ONE_BROWSER
            return module if _shares(config.rootpath / module) else nodeid

    return Sharing(config, log) if config.getvalue("dist") == "loadgroup" else None


@functools.cache
def _shares(module: Path) -> bool:
    return 'scope="module"' in module.read_text("utf-8")
