from pathlib import Path

import pytest

from bundler.model.errors import EnvironmentMissingError
from bundler.support import data
from bundler.support.data import data_root, targets_folder


@pytest.mark.parametrize("kind", ["targets", "templates"])
def test_data_folders_are_found_where_bundler_is_installed(kind):
    assert data_root(kind).is_dir()
    assert data_root(kind).name == kind


def test_a_wheels_own_data_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "bundler"
    (tmp_path / "targets").mkdir()
    (package / "_data" / "targets").mkdir(parents=True)
    monkeypatch.setattr(data, "PACKAGE", package)
    assert targets_folder() == package / "_data" / "targets"


def test_a_damaged_installation_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(data, "PACKAGE", tmp_path / "bundler")
    with pytest.raises(EnvironmentMissingError, match="targets folder is missing"):
        data_root("targets")
