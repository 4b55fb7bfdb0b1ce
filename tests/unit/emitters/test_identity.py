"""What packages are called, and which versions they may have: decided before anything is built."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from bundler.emitters.python.confusion import is_known
from bundler.emitters.python.context import require_pythons
from bundler.emitters.python.wheelhouse import find_platform
from bundler.emitters.python.wheels import Wheel
from bundler.emitters.registry import find_emitter
from bundler.model.errors import UsageError


@pytest.mark.parametrize("emitter", ["python", "web", "neutral"])
@pytest.mark.parametrize("version", ["", "not a version", "1.0\nName: x", "../1.0", "1." * 200 + "0", "ⅷ"])
def test_what_is_no_version_is_refused_by_every_ecosystem(emitter: str, version: str) -> None:
    with pytest.raises(UsageError, match="version"):
        find_emitter(emitter).identify("model", None, version)


@pytest.mark.parametrize(
    ("emitter", "version", "written"),
    [
        ("python", "1.0.0-rc1", "1.0.0rc1"),
        ("python", "v2", "2"),
        ("python", "1!2.0+cuda.12", "1!2.0+cuda.12"),
        ("web", "1.2rc1", "1.2.0-rc.1"),
        ("neutral", "2026-11-22_a", "2026-11-22_a"),
    ],
)
def test_a_version_is_written_as_the_ecosystem_has_it(emitter: str, version: str, written: str) -> None:
    assert find_emitter(emitter).identify("model", None, version).version == written


@pytest.mark.parametrize(
    ("emitter", "given", "name"),
    [("python", "Acme.Model", "acme-model"), ("web", "@acme/model", "@acme/model"), ("python", None, "my-net")],
)
def test_a_package_has_the_name_that_was_given(emitter: str, given: str | None, name: str) -> None:
    identity = find_emitter(emitter).identify("my net", given, "1.0.0")
    assert (identity.name, identity.warnings) == (name, ())


@pytest.mark.parametrize("name", ["", "a b", "1st", "../x", "class", "numpy", "json", "onnxruntime-x", "a" * 65, "é"])
def test_a_name_that_python_cannot_have_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        find_emitter("python").identify("model", name, "1.0.0")


@pytest.mark.parametrize("name", ["", "A", "@acme", "@acme/", "a/b", "../x", "fs", "a" * 215])
def test_a_name_that_npm_cannot_have_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        find_emitter("web").identify("model", name, "1.0.0")


def test_a_bundle_of_files_says_that_it_has_no_name() -> None:
    (warning,) = find_emitter("neutral").identify("model", "acme", "1.0.0").warnings
    assert "'acme' is ignored" in warning


def test_a_name_that_everybody_knows_is_warned_of_and_another_is_not() -> None:
    emitter = find_emitter("python")
    (warning,) = emitter.identify("magika", None, "1.0.0").warnings
    assert "--package-name" in warning
    assert emitter.identify("magika", "acme-magika", "1.0.0").warnings == ()
    assert is_known("pytest"), "installed here"
    assert not is_known("acme-magika")


def test_a_wheel_asks_for_the_least_system_that_all_of_its_wheels_take() -> None:
    accepted = ("manylinux_2_39_x86_64",)
    old, new = "manylinux_2_17_x86_64.manylinux2014_x86_64", "manylinux_2_27_x86_64.manylinux_2_28_x86_64"
    assert find_platform((_wheel(old), _wheel("any")), accepted) == "manylinux2014_x86_64"
    assert find_platform((_wheel(old), _wheel(new)), accepted) == "manylinux_2_27_x86_64"
    assert find_platform((_wheel("any"),), accepted) == "any"
    assert find_platform((_wheel("macosx_11_0_universal2"),), ("macosx_14_0_arm64",)) == "macosx_11_0_arm64"
    mac = ("macosx_14_0_arm64", "macosx_11_0_arm64", "macosx_10_9_universal2")
    assert find_platform((_wheel("macosx_10_9_universal2"), _wheel("macosx_11_0_arm64")), mac) == "macosx_11_0_arm64"
    assert find_platform((_wheel("win_arm64"),), ("win_arm64",)) == "win_arm64"


def _wheel(platforms: str) -> Wheel:
    path = Path(f"a-1-py3-none-{platforms}.whl")
    return Wheel(name="a", version="1", path=path, sha256="", size=0)


def test_the_pythons_of_a_package_are_those_of_its_wheels() -> None:
    wanted = ("3.13", "3.11", "3.14")
    found = SpecifierSet(require_pythons(wanted))
    assert [f"3.{minor}" for minor in range(8, 17) if Version(f"3.{minor}.2") in found] == ["3.11", "3.13", "3.14"]
