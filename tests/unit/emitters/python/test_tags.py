from __future__ import annotations

import pytest
from packaging import tags

from bundler.emitters.python.tags import expand_tags, fits_tag, required_version, takes_wheels, target_markers
from bundler.model.errors import UsageError


def test_a_system_takes_wheels_for_older_glibcs_and_by_their_old_names() -> None:
    expanded = expand_tags(("manylinux_2_28_x86_64",))
    assert expanded[0] == "manylinux_2_28_x86_64"
    assert {"manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64"} <= set(expanded)
    assert "manylinux_2_29_x86_64" not in expanded
    assert expand_tags(("manylinux2014_aarch64",)) == ("manylinux_2_17_aarch64", "manylinux2014_aarch64")


def test_an_apple_silicon_mac_takes_what_the_reference_says() -> None:
    ours = set(expand_tags(("macosx_14_0_arm64",)))
    assert ours <= set(tags.mac_platforms((14, 0), "arm64"))
    assert {"macosx_14_0_arm64", "macosx_11_0_arm64", "macosx_11_0_universal2"} <= ours


def test_every_tag_stands_once_and_others_stay_as_they_are() -> None:
    assert expand_tags(("win_amd64", "win_amd64")) == ("win_amd64",)
    given = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64")
    expanded = expand_tags(given)
    assert len(expanded) == len(set(expanded))


@pytest.mark.parametrize(
    ("tag", "system", "machine"),
    [
        ("manylinux_2_28_x86_64", "linux", "x86_64"),
        ("manylinux2014_aarch64", "linux", "aarch64"),
        ("musllinux_1_2_x86_64", "linux", "x86_64"),
        ("linux_armv7l", "linux", "armv7l"),
        ("macosx_14_0_arm64", "darwin", "arm64"),
        ("win_amd64", "win32", "AMD64"),
        ("win_arm64", "win32", "ARM64"),
        ("win32", "win32", "x86"),
    ],
)
def test_markers_are_those_of_the_target_and_not_of_this_machine(tag: str, system: str, machine: str) -> None:
    markers = target_markers((tag,), "3.13")
    assert (markers["sys_platform"], markers["platform_machine"]) == (system, machine)
    assert markers["python_version"] == "3.13"


def test_an_unknown_tag_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="is not a platform tag of a wheel"):
        target_markers(("amiga_68000",), "3.13")


@pytest.mark.parametrize(
    ("tag", "version"),
    [
        ("manylinux_2_28_x86_64", (2, 28)),
        ("manylinux2014_aarch64", (2, 17)),
        ("manylinux2010_x86_64", (2, 12)),
        ("manylinux1_x86_64", (2, 5)),
        ("macosx_14_0_arm64", (14, 0)),
        ("musllinux_1_2_x86_64", None),
        ("win_amd64", None),
        ("any", None),
    ],
)
def test_what_a_tag_asks_for(tag, version):
    assert required_version(tag) == version


@pytest.mark.parametrize(
    ("system", "architecture", "tag", "fits"),
    [
        ("linux", "x64", "manylinux_2_28_x86_64", True),
        ("linux", "x64", "any", True),
        ("linux", "x64", "manylinux_2_28_aarch64", False),
        ("linux", "arm64", "manylinux2014_aarch64", True),
        ("linux", "armv7", "linux_armv7l", True),
        ("macos", "arm64", "macosx_11_0_universal2", True),
        ("macos", "arm64", "macosx_11_0_x86_64", False),
        ("windows", "x64", "win_amd64", True),
        ("windows", "arm64", "win_amd64", False),
        ("linux", "x64", "manylinux_2_28_x86_64\nx", False),
    ],
)
def test_which_wheels_install(system, architecture, tag, fits):
    assert fits_tag(system, architecture, tag) is fits


def test_phones_take_no_wheels():
    assert not takes_wheels("android", "arm64")
    assert not takes_wheels("web", "wasm32")
