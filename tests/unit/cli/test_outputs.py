"""Where the program prints to: closed, full, or never opened."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import PROGRAM

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")


def run(arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", f'"$0" {arguments}', PROGRAM], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    ["", "--help", "build --help", "--version", "targets list", "targets list --json"],
)
def test_a_full_disk_is_reported_and_is_no_defect(arguments: str) -> None:
    done = run(f"{arguments} > /dev/full")
    assert done.returncode == 6
    assert done.stderr.startswith("error: cannot write to standard output: No space left on device\nhint: free space")
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("where", ["2> /dev/full", "2>&-"])
def test_an_error_that_nobody_can_read_keeps_its_code_and_its_document(where: str) -> None:
    done = run(f"nonsense --json {where}")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["kind"] == "usage"
    assert run(f"nonsense --json > /dev/full {where}").returncode == 2


def test_no_file_takes_the_place_of_a_closed_output(tmp_path: Path) -> None:
    code = "from bundler.cli.outputs import open_outputs; open_outputs(); import os, subprocess, sys\n"
    code += f"file = open({str(tmp_path / 'kept')!r}, 'w'); subprocess.run(['sh', '-c', 'echo spoilt >&2'])\n"
    code += "print('heard', file=sys.stderr); os.write(1, str(file.fileno()).encode())"
    done = subprocess.run(["sh", "-c", '"$0" -c "$1" 2>&-', sys.executable, code], capture_output=True, check=True)
    assert int(done.stdout) > 2
    assert (tmp_path / "kept").read_text("utf-8") == ""


@pytest.mark.parametrize("arguments", ["--help", "targets list"])
def test_a_pipe_that_is_closed_is_no_error(arguments: str) -> None:
    done = run(f"{arguments} | head -c 1")
    assert (done.returncode, len(done.stdout), done.stderr) == (0, 1, "")
