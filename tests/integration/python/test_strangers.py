"""What another user could have written in the loader's folders is neither believed nor followed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bundler.emitters.contract import EmitRequest
from tests.integration.python.packages import Package, write_package
from tests.integration.python.test_device_copy import part
from tests.support.bundles import make_variant, model_artifact, with_variants

STRANGER = 54321
"""A user that nobody is."""


@pytest.fixture
def package(cnn_request: EmitRequest, tmp_path: Path) -> Package:
    session = {"graph_optimization_level": "ORT_ENABLE_ALL", "intra_op_num_threads": 1}
    variant = make_variant("cpu", model_artifact(cnn_request), session=session, device_cache=True)
    return write_package(with_variants(cnn_request, variant), tmp_path)


@pytest.fixture
def folder(package: Package) -> Path:
    """Where the loader keeps things, filled by a first start."""
    report(package)
    found = package.cache / "bundler-loader"
    assert any(found.iterdir())
    assert found.stat().st_mode & 0o777 == 0o700
    return found


def report(package: Package, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"import {package.name}; print({package.name}.Model().report)"],
        cwd=package.root,
        env={**os.environ, "XDG_CACHE_HOME": str(package.cache), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_folder_of_ones_own_is_used(package: Package, folder: Path) -> None:
    assert "from the device's own copy" in report(package)
    assert "are not remembered" not in report(package)
    folder.chmod(0o755)
    assert "from the device's own copy" in report(package), "others may read"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_folder_that_others_may_write_to_is_not_used(package: Package, folder: Path, mode: int) -> None:
    folder.chmod(mode)
    assert "from the device's own copy" not in report(package)
    assert "others may write" in report(package)


def test_nor_one_whose_parent_others_may_write_to(package: Package, folder: Path) -> None:
    package.cache.chmod(0o777)
    assert f"others may write to {package.cache} " in report(package)
    package.cache.chmod(0o1777)
    assert "from the device's own copy" in report(package), "nobody else may rename what is in it"
    assert folder.is_dir()


def test_nor_one_of_another_user(package: Package, folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only the administrator can give a folder to another user")
    os.chown(folder, STRANGER, STRANGER)
    assert "belongs to another user" in report(package)


def test_nor_a_link_to_one(package: Package, folder: Path) -> None:
    elsewhere = folder.rename(package.cache / "elsewhere")
    folder.symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    assert "is a link" in report(package)
    assert sorted(elsewhere.rglob("*")) == before


def test_a_folder_that_the_user_names_is_judged_alike(module: ModuleType, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert "others may write" in part(module, "integrity").find_stranger(str(shared))
    shared.chmod(0o700)
    assert part(module, "integrity").find_stranger(str(shared)) == ""


class TestRemoving:
    def test_a_link_is_removed_and_what_lies_behind_it_stays(self, module: ModuleType, tmp_path: Path) -> None:
        precious = tmp_path / "precious"
        (precious / "deep").mkdir(parents=True)
        (precious / "deep" / "file").write_text("kept")
        kept = tmp_path / "kept"
        kept.mkdir()
        for place in (tmp_path / "link", kept / "inner"):
            place.symlink_to(precious)
        part(module, "keeping").remove(str(tmp_path / "link"))
        part(module, "keeping").remove(str(kept))
        assert not (tmp_path / "link").is_symlink()
        assert not kept.exists()
        assert (precious / "deep" / "file").read_text() == "kept"

    def test_a_copy_that_became_a_link_is_dropped_and_not_followed(self, package: Package, folder: Path) -> None:
        (copy,) = (path for path in folder.iterdir() if path.is_dir())
        elsewhere = copy.rename(package.cache / "elsewhere")
        copy.symlink_to(elsewhere)
        before = sorted(elsewhere.rglob("*"))
        assert "it is a link" in report(package)
        assert sorted(elsewhere.rglob("*")) == before
        assert not copy.is_symlink()

    def test_nor_is_a_file_in_it(self, package: Package, folder: Path) -> None:
        (copy,) = (path for path in folder.iterdir() if path.is_dir())
        model = copy / "model.onnx"
        model.symlink_to(model.rename(package.cache / "elsewhere.onnx"))
        assert "one of its files is a link" in report(package)
        assert (package.cache / "elsewhere.onnx").is_file()
