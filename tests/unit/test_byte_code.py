"""Where the byte code of what tests run is kept: out of bundles, and once for all processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import BYTE_CODE


def test_a_process_of_a_test_leaves_no_byte_code_beside_the_source(tmp_path: Path) -> None:
    (tmp_path / "package_of_a_bundle.py").write_text("print('here')", "utf-8")
    subprocess.run([sys.executable, "-c", "import package_of_a_bundle"], cwd=tmp_path, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["package_of_a_bundle.py"]
    kept = BYTE_CODE.joinpath(*tmp_path.resolve().parts[1:])
    assert [path.suffix for path in kept.iterdir()] == [".pyc"]
