"""The loader of web bundles under Node.js: its own tests, which read the conformance vectors, too."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2] / "javascript" / "loader"


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("the loader of web bundles is not tested: there is no Node.js (20.19 or later) on the PATH")
    return found


def test_the_loader_keeps_its_promises_and_finds_the_expected_figures(node: str) -> None:
    command = [node, "--test", *map(str, sorted(TESTS.glob("*.test.js")))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if "not ok" in line) + done.stderr
    assert "# skipped 0" in done.stdout
