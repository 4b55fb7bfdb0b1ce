"""What a bundle writes into the packages that it is verified with is gone before the next one is verified with them."""

from __future__ import annotations

import importlib.util
import marshal
import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from bundler.emitters.contract import EmitRequest, ProofRequest
from bundler.emitters.python.emitter import EMITTER
from bundler.model.events import Event, Listener, ignore
from tests.support import models
from tests.support.bundles import make_request
from tests.support.command_line import ONE_PYTHON

TAG = sys.implementation.cache_tag
UNCHECKED = (1).to_bytes(4, "little") + bytes(8)
"""Flags of byte code that is run without a look at its source."""

TRACE = "import pathlib; pathlib.Path({trace!r}).touch()\n"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    return make_request(models.cnn(), tmp_path_factory.mktemp("left"), name="tiny cnn", overrides=(ONE_PYTHON,))


def emit(request: EmitRequest, bundle: Path) -> Path:
    bundle.mkdir()
    EMITTER.emit(request, bundle)
    return bundle


def prove(bundle: Path, cache: Path, listener: Listener = ignore) -> bool | None:
    return EMITTER.prove(ProofRequest(bundle=bundle, cache_root=cache, listener=listener))[0].passed


def add_to_wheel(bundle: Path, name: str, content: bytes) -> None:
    """It runs nothing when it is installed: it only has one more file, in a package of another."""
    (path,) = bundle.glob("*.whl")
    with zipfile.ZipFile(path, "a") as archive:
        (record,) = [item for item in archive.namelist() if item.endswith(".dist-info/RECORD")]
        lines = archive.read(record)
        archive.writestr(name, content)
    altered = path.with_suffix(".new")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(altered, "w") as new:
        for item in old.namelist():
            new.writestr(item, lines + f"{name},,\n".encode() if item == record else old.read(item))
    altered.replace(path)


@pytest.mark.parametrize("kind", ["byte code", "module"])
def test_a_file_that_a_bundle_adds_to_a_shared_package_does_not_run_in_the_next(
    asked: EmitRequest, tmp_path: Path, kind: str
) -> None:
    cache, trace = tmp_path / "cache", tmp_path / "trace"
    stranger, own = (emit(replace(asked, format="wheel"), tmp_path / name) for name in ("stranger", "own"))
    shutil.copytree(asked.environments.root / "packages", cache / "packages")
    code = TRACE.format(trace=str(trace))
    if kind == "byte code":
        run = compile(code, "numpy/version.py", "exec")
        content = importlib.util.MAGIC_NUMBER + UNCHECKED + marshal.dumps(run)
        add_to_wheel(stranger, f"numpy/__pycache__/version.{TAG}.pyc", content)
    else:  # found before the module beside it of the same name
        add_to_wheel(stranger, "numpy/version/__init__.py", code.encode())
    prove(stranger, cache)
    trace.unlink(missing_ok=True)
    said: list[Event] = []
    assert prove(own, cache, said.append)
    assert not trace.exists()
    (told,) = [event for event in said if "the environment is made again" in str(event)]
    assert "numpy" in str(told)


def test_nothing_is_made_anew_after_a_bundle_that_adds_nothing(asked: EmitRequest, tmp_path: Path) -> None:
    bundle, cache = emit(asked, tmp_path / "own"), tmp_path / "cache"
    shutil.copytree(asked.environments.root / "packages", cache / "packages")
    seen = set()
    for _ in range(3):
        assert prove(bundle, cache)
        seen |= {path.stat().st_ino for path in (cache / "proofs").glob("*/complete")}
    assert len(seen) == 1
