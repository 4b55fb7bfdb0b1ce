"""With a real package index."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bundler.emitters.python.wheels import fetch_wheels
from bundler.environments.lockfiles import shipped_lock
from bundler.environments.registry import Environments

pytestmark = pytest.mark.slow


def test_an_older_runtime_is_made_and_kept_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Environments(tmp_path).resolve("onnxruntime==1.22.1", ("onnxruntime",))
    code = "import onnxruntime, onnx; print(onnxruntime.__version__)"
    done = subprocess.run([made.python, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1.22.1\n"
    monkeypatch.setenv("UV_OFFLINE", "1")
    assert Environments(tmp_path).resolve("onnxruntime==1.22.1", ("onnxruntime",)) == made


def test_wheels_for_a_system_that_this_is_not_are_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = shipped_lock("python-runtime-onnxruntime-1.31.1")
    wheels = fetch_wheels(lock, ("win_arm64",), "3.13", Environments(tmp_path))
    names = {wheel.name: wheel.path.name for wheel in wheels}
    assert names["onnxruntime"].endswith("-cp313-cp313-win_arm64.whl")
    assert names["numpy"].endswith("-win_arm64.whl")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert fetch_wheels(lock, ("win_arm64",), "3.13", Environments(tmp_path)) == wheels
