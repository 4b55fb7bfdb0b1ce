"""The demo page's own judgement, tested under Node.js: kinds of inputs, numbers, shapes, pixels, figures."""

from __future__ import annotations

import subprocess

from tests.support.command_line import ROOT
from tests.support.javascript import find_node


def test_the_demo_page_judges_as_it_should() -> None:
    files = sorted((ROOT / "tests" / "javascript" / "demo").glob("*.test.js"))
    assert files
    command = [find_node(), "--test", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if "not ok" in line) + done.stderr
