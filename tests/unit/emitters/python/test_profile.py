"""The section `python` of a profile: which wheels a machine takes."""

import pytest

from bundler.emitters.python.profile import fits_tag, required_version, takes_wheels


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
