"""Which of what a target ships has a provider, and what the user reads when nothing has."""

import pytest

from bundler.providers.availability import OWN_BUILD, describe_versions, explain_absence, find_carrier
from bundler.providers.knowledge import Availability, Presence, ProviderKnowledge
from bundler.providers.registry import find_provider


def known(*rows: Availability, **more: str) -> ProviderKnowledge:
    return ProviderKnowledge(
        name="own",
        runtime_name="Own",
        title="CANN",
        package="p",
        presence=Presence(
            availability=rows,
            gone=more.get("gone", ""),
            instead=more.get("instead", ""),
        ),
    )


CANN = known(
    Availability(package="onnxruntime-cann", versions=">=1.22.1,<=1.24.4", platforms=("linux/arm64",), source="wheels")
)
PLUGIN = known(
    Availability(package="onnxruntime-old", versions="<2", source="wheels"),
    Availability(
        package="onnxruntime-own",
        versions=">=2",
        platforms=("linux/x64", "windows/x64"),
        module="onnxruntime_own",
        runtime_versions=">=1.24.2",
        source="wheels",
    ),
)
LINUX = ("linux", "x64")


def carrier(provider: ProviderKnowledge, package: str, version: str, *, system: str = "linux", **plugins: str):
    names = {key.replace("_", "-"): value for key, value in plugins.items()}
    found = find_carrier(provider, package, version, names, system, "x64")
    return found and found.package


def test_a_runtime_that_has_it_carries_it():
    found = find_carrier(CANN, "onnxruntime-cann", "1.24.4", {}, "linux", "arm64")
    assert found == CANN.presence.availability[0]


@pytest.mark.parametrize(
    ("package", "version", "architecture"),
    [
        ("onnxruntime", "1.24.4", "arm64"),
        ("onnxruntime-cann", "1.31.1", "arm64"),
        ("onnxruntime-cann", "1.24.4", "x64"),
    ],
)
def test_another_runtime_version_or_platform_does_not(package, version, architecture):
    assert find_carrier(CANN, package, version, {}, "linux", architecture) is None


def test_a_plugin_carries_it_beside_a_runtime_that_is_new_enough():
    assert carrier(PLUGIN, "onnxruntime", "1.31.1", onnxruntime_own="2.7.0") == "onnxruntime-own"
    assert carrier(PLUGIN, "onnxruntime", "1.24.1", onnxruntime_own="2.7.0") is None
    assert carrier(PLUGIN, "onnxruntime", "1.31.1", onnxruntime_own="1.24.4") is None
    assert carrier(PLUGIN, "onnxruntime", "1.31.1", system="macos", onnxruntime_own="2.7.0") is None
    assert carrier(PLUGIN, "onnxruntime", "1.31.1") is None


def test_a_plugin_comes_before_the_runtime():
    assert carrier(PLUGIN, "onnxruntime-old", "1.25.0", onnxruntime_own="2.7.0") == "onnxruntime-own"
    assert carrier(PLUGIN, "onnxruntime-old", "1.25.0") == "onnxruntime-old"


def test_names_are_compared_as_an_index_does():
    found = find_carrier(PLUGIN, "onnxruntime", "1.31.1", {"ONNXRuntime_Own": "2.7.0"}, *LINUX)
    assert found is PLUGIN.presence.availability[1]


def test_versions_that_are_no_release_are_compared_too():
    assert carrier(PLUGIN, "onnxruntime", "1.32.0.dev1", onnxruntime_own="2.8.0rc1") == "onnxruntime-own"
    assert carrier(PLUGIN, "onnxruntime", "mine", onnxruntime_own="2.7.0") is None


def test_a_provider_with_no_rows_is_carried_by_nothing():
    assert carrier(known(), "onnxruntime", "1.31.1") is None


def test_absence_names_where_it_exists():
    sentence, hint = explain_absence(CANN, "onnxruntime", "1.31.1", {}, "linux", "arm64")
    assert sentence == ("CANN is not in onnxruntime 1.31.1; onnxruntime-cann 1.22.1 to 1.24.4 has it on linux/arm64")
    assert hint == 'set `runtime.package = "onnxruntime-cann"` (versions: 1.22.1 to 1.24.4)'


def test_absence_in_a_version_of_the_right_runtime():
    _, hint = explain_absence(CANN, "onnxruntime-cann", "1.31.1", {}, "linux", "arm64")
    assert hint == "set `runtime.version` (versions: 1.22.1 to 1.24.4)"


def test_absence_on_a_platform_names_the_others():
    sentence, hint = explain_absence(CANN, "onnxruntime", "1.31.1", {}, *LINUX)
    assert sentence == (
        "CANN is not in onnxruntime 1.31.1; nothing has it on linux/x64, "
        "but onnxruntime-cann 1.22.1 to 1.24.4 on linux/arm64"
    )
    assert hint == OWN_BUILD


def test_absence_of_a_plugin_names_it():
    sentence, hint = explain_absence(PLUGIN, "onnxruntime", "1.31.1", {"onnxruntime-x": "3"}, *LINUX)
    assert sentence == (
        "CANN is not in onnxruntime 1.31.1 and onnxruntime-x 3; onnxruntime-old before 2 and "
        "the plugin onnxruntime-own 2 and later (with onnxruntime 1.24.2 and later) have it on linux/x64"
    )
    assert hint == 'put a version of "onnxruntime-own" under `runtime.plugins` (versions: 2 and later)'


def test_a_plugin_beside_too_old_a_runtime():
    _, hint = explain_absence(PLUGIN, "onnxruntime", "1.22.0", {"onnxruntime-own": "2.7.0"}, *LINUX)
    assert hint == "set `runtime.version` (versions: 1.24.2 and later)"


def test_what_replaces_a_provider_that_is_gone():
    gone = known(gone="it was taken out in 1.21.", instead="the CPU provider.")
    assert explain_absence(gone, "onnxruntime", "1.31.1", {}, *LINUX) == (
        "CANN is not in onnxruntime 1.31.1; it was taken out in 1.21",
        "instead: the CPU provider",
    )


def test_a_provider_of_no_published_runtime():
    sentence, hint = explain_absence(known(), "onnxruntime", "1.31.1", {}, *LINUX)
    assert sentence.endswith("no published runtime has it")
    assert "runtime.custom_build=true" in hint


@pytest.mark.parametrize(
    ("specifier", "words"),
    [
        ("", ""),
        (">=1.2", "1.2 and later"),
        ("<=1.2", "up to 1.2"),
        ("<2", "before 2"),
        ("==1.2", "1.2"),
        (">=1.2, <=1.4", "1.2 to 1.4"),
        (">=1.2,<2", "1.2 and later, before 2"),
        ("!=1.3", "!=1.3"),
    ],
)
def test_versions_in_words(specifier, words):
    assert describe_versions(specifier) == words


@pytest.mark.parametrize(
    ("name", "package", "plugins", "platform", "wanted"),
    [
        ("qnn", "onnxruntime", {"onnxruntime-qnn": "2.7.0"}, ("windows", "arm64"), "onnxruntime-qnn"),
        ("qnn", "onnxruntime", {"onnxruntime-qnn": "2.7.0"}, ("linux", "arm64"), "onnxruntime-qnn"),
        (
            "qnn",
            "onnxruntime-android",
            {"onnxruntime-android-qnn": "2.6.0"},
            ("android", "arm64"),
            "onnxruntime-android-qnn",
        ),
        ("qnn", "onnxruntime-android-qnn", {}, ("android", "arm64"), "onnxruntime-android-qnn"),
        ("qnn", "onnxruntime", {}, ("linux", "arm64"), None),
        ("openvino", "onnxruntime", {"onnxruntime-ep-openvino": "1.8.1"}, LINUX, "onnxruntime-ep-openvino"),
        ("openvino", "onnxruntime-openvino", {}, LINUX, None),
        ("cuda", "onnxruntime-gpu", {}, ("windows", "x64"), "onnxruntime-gpu"),
        ("cuda", "onnxruntime-gpu", {}, ("linux", "arm64"), "onnxruntime-gpu"),
        ("tensorrt", "onnxruntime-gpu", {}, LINUX, "onnxruntime-gpu"),
        ("tensorrt", "onnxruntime", {}, LINUX, None),
        (
            "tensorrt-rtx",
            "onnxruntime-gpu",
            {"onnxruntime-ep-nv-tensorrt-rtx-cu13": "0.5.0"},
            ("windows", "x64"),
            "onnxruntime-ep-nv-tensorrt-rtx-cu13",
        ),
    ],
)
def test_what_targets_ship(name, package, plugins, platform, wanted):
    version = "1.29.0" if "android" in package else "1.31.1"
    found = find_carrier(find_provider(name), package, version, plugins, *platform)
    assert (found and found.package) == wanted


@pytest.mark.parametrize(
    ("name", "package", "first", "before", "platform"),
    [
        ("cuda", "onnxruntime-gpu", "1.29.0", "1.28.0", ("linux", "arm64")),
        ("directml", "onnxruntime-windowsml", "1.23.2.202512041916", "1.23.1", ("windows", "arm64")),
        ("cann", "onnxruntime-cann", "1.21.0", "1.13.0", ("linux", "arm64")),
    ],
)
def test_the_first_version_of_a_package_that_has_it(name, package, first, before, platform):
    known = find_provider(name)
    assert find_carrier(known, package, first, {}, *platform)
    assert find_carrier(known, package, before, {}, *platform) is None


@pytest.mark.parametrize(("plugin", "wanted"), [("0.3.0", False), ("0.4.0", True), ("0.5.0", True)])
def test_tensorrt_for_rtx_has_a_library_for_linux_on_arm(plugin, wanted):
    plugins = {"onnxruntime-ep-nv-tensorrt-rtx-cu13": plugin}
    found = find_carrier(find_provider("tensorrt-rtx"), "onnxruntime-gpu", "1.31.1", plugins, "linux", "arm64")
    assert bool(found) == wanted


def test_every_row_says_where_it_was_read():
    for name in ("qnn", "openvino", "cuda", "tensorrt", "tensorrt-rtx"):
        assert all(row.source for row in find_provider(name).presence.availability)
