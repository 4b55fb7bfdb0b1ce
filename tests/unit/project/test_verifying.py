"""The bundles of a project are verified with what its lock pins."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bundler.cli.application import app
from bundler.environments.lockfiles import render_pins
from bundler.environments.registry import Environments
from bundler.model.errors import VerificationError
from bundler.pipeline import verify as verifying
from bundler.project.lock import LockFile, write_lock

NAME = "onnxruntime==1.27.0"


def test_a_verified_project_has_the_versions_that_it_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Environments(tmp_path / "cache").lock(NAME)
    older = [dataclasses.replace(pin, version="2.0.0") if pin.name == "numpy" else pin for pin in shipped.pins]
    (tmp_path / "bundler.toml").write_text('targets = ["linux-x64"]\n[[models]]\npath = "m.onnx"\n')
    write_lock(tmp_path / "bundler.lock", LockFile(environments={NAME: render_pins(older)}))
    used: list[str] = []

    def look(bundle: Path, workspace: Any, *_: Any) -> None:
        used.append(workspace.environments.lock(NAME).versions()["numpy"])
        raise VerificationError(f"{bundle} was looked at")

    monkeypatch.setattr(verifying, "verify", look)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BUNDLER_CACHE", str(tmp_path / "cache"))
    CliRunner().invoke(app, ["verify"])
    CliRunner().invoke(app, ["verify", "elsewhere"])
    assert used == ["2.0.0", shipped.versions()["numpy"]]
