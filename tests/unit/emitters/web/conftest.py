"""One request to bundle a tiny model, and what it becomes."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bundler.emitters.contract import EmitRequest
from bundler.emitters.web.emitter import EMITTER
from tests.support import models
from tests.support.web_bundles import make_web_request


@pytest.fixture(scope="session")
def request_(tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    return make_web_request(models.cnn(), tmp_path_factory.mktemp("web"), ("webgpu", "wasm"), name="Tiny CNN")


@pytest.fixture(scope="session")
def bundle(request_: EmitRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    EMITTER.emit(request_, folder)
    return folder


@pytest.fixture(scope="session")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node.js is not here")
    return found


@pytest.fixture(scope="session")
def tsc() -> str:
    local = Path(__file__).parents[3] / "javascript" / "node_modules" / ".bin" / "tsc"
    found = str(local) if local.exists() else shutil.which("tsc")
    if found is None:
        pytest.skip("TypeScript is not here: `make lint` installs it")
    return found


def with_web(request: EmitRequest, **settings: Any) -> EmitRequest:
    web = request.profile.web.model_copy(update=settings)
    return dataclasses.replace(request, profile=request.profile.model_copy(update={"web": web}))


def evaluate(node: str, code: str) -> Any:
    """What Node.js prints as JSON for a module."""
    command = [node, "--input-type=module", "--eval", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
