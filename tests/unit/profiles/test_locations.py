from pathlib import Path

import pytest

from bundler.model.errors import EnvironmentMissingError
from bundler.profiles import locations
from bundler.profiles.locations import find_catalogue
from bundler.profiles.resolve import resolve_target, target_ids


class FakeEntry:
    name = "acme"
    value = "acme.boards:folder"

    def __init__(self, target):
        self._target = target

    def load(self):
        return self._target


@pytest.fixture
def register(monkeypatch):
    """Registers a function or folder under `bundler.targets`, as an installed package would."""

    def register_entry(target):
        monkeypatch.setattr(
            locations, "entry_points", lambda *, group: [FakeEntry(target)] if group == "bundler.targets" else []
        )
        find_catalogue.cache_clear()

    yield register_entry
    find_catalogue.cache_clear()


def test_another_packages_targets_can_be_built_for(register, tmp_path: Path):
    (tmp_path / "_base").mkdir()
    (tmp_path / "_base" / "acme.toml").write_text('extends = "raspberry-pi-5"\ngroup = "Acme"\n')
    (tmp_path / "acme-one.toml").write_text('extends = "acme"\ntitle = "Acme One"\n')
    register(lambda: tmp_path)
    assert "acme-one" in target_ids()
    profile = resolve_target("acme-one")
    assert (profile.id, profile.group, profile.platform.cpu) == ("acme-one", "Acme", "cortex-a76")


def test_another_package_cannot_replace_a_target_of_ours(register, tmp_path: Path):
    (tmp_path / "linux-x64.toml").write_text('extends = "linux-arm64"\ntitle = "Not ours"\n')
    register(lambda: tmp_path)
    assert resolve_target("linux-x64").title == "Linux on x86-64"


@pytest.mark.parametrize("target", [lambda: Path("/no/such/folder"), 42, lambda: "text"])
def test_an_entry_point_without_a_folder_is_named(register, target):
    register(target)
    with pytest.raises(EnvironmentMissingError, match=r"bundler\.targets:acme"):
        target_ids()
