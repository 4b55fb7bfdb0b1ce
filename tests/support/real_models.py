"""Real trained models, and the original packages that they come from in environments of their own."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx
import pytest
import uv

from bundler.execution.locks import hold
from tests.support.command_line import ROOT

EXAMPLES = ROOT / "examples"
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
"""Networks as they are published, with constant generators for weights."""


def fetch_example(example: str, model: Path) -> Path:
    """Run the example's own `fetch_model.py`, once for all processes of the session; `model` when it is there."""
    model.parent.mkdir(parents=True, exist_ok=True)
    with hold(model.with_suffix(".lock")):
        run_python(Path(sys.executable), [EXAMPLES / example / "fetch_model.py", model])
    return model


def load_example(example: str) -> ModuleType:
    """The example's `classify.py` as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{example}", EXAMPLES / example / "classify.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their own module up
    spec.loader.exec_module(module)
    return module


def make_original(folder: Path, requirement: str, python: str, without: Sequence[str] = ()) -> Path:
    """The interpreter of an environment that holds the package `requirement` as published, made once a session.

    `python` is a version specifier; `without` are dependencies that no test needs (or that need a screen). Skips the
    test where this machine has no such Python.
    """
    folder.mkdir(parents=True, exist_ok=True)
    interpreter = folder / "env" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    with hold(folder / "lock"):
        if not (folder / "whole").exists():
            _make_environment(folder, python)
            overrides = folder / "overrides.txt"
            overrides.write_text("".join(f"{name}; sys_platform == 'never'\n" for name in without), encoding="utf-8")
            command = ("pip", "install", "--python", interpreter, "--overrides", overrides, requirement)
            _run_uv(*command, *(["opencv-python-headless<5"] if "opencv-python" in without else []))
            (folder / "whole").touch()
    return interpreter


def _make_environment(folder: Path, python: str) -> None:
    found = _uv("python", "find", "--no-project", "--no-python-downloads", python)
    if found.returncode:
        pytest.skip(f"this machine has no Python {python} to run the original package with")
    _run_uv("venv", "--clear", "--python", found.stdout.strip(), folder / "env")


def _run_uv(*arguments: str | Path) -> None:
    done = _uv(*arguments)
    assert done.returncode == 0, done.stderr


def _uv(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [uv.find_uv_bin(), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd="/" if sys.platform != "win32" else None
    )


def run_python(python: Path, arguments: Sequence[str | Path], env: dict[str, str] | None = None) -> str:
    """What `python ARGUMENTS` printed; the test fails with its error when it fails."""
    done = subprocess.run([str(python), *map(str, arguments)], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def ask_original(python: Path, code: str, paths: Sequence[Path]) -> Any:
    """The JSON that `code` prints in the original's environment, given `paths` as arguments."""
    return json.loads(run_python(python, ["-c", code, *paths]).splitlines()[-1])
