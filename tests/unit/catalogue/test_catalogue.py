"""The catalogue of devices: complete, and right in what can be checked without one."""

from collections import Counter

import pytest

from bundler.catalogue.listing import list_targets
from bundler.catalogue.matching import Candidate, find_devices
from bundler.catalogue.outlook import foresee_variants
from bundler.devices.emulation.processor import CORES as EMULATED
from bundler.emitters.python.tags import takes_wheels
from bundler.planning.traits import judge_free_sizes
from bundler.profiles.asked import shipped_variants
from bundler.profiles.locations import find_catalogue
from bundler.profiles.resolve import resolve_target, target_ids
from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.qnn_chips import CHIPS

SNAPDRAGON = {
    "snapdragon-888": "30/68",
    "snapdragon-8g1": "36/69",
    "snapdragon-8g2": "43/73",
    "snapdragon-8g3": "57/75",
    "snapdragon-8-elite": "69/79",
    "snapdragon-8-elite-g5": "87/81",
    "snapdragon-8g5": "97/81",
    "snapdragon-8sg3": "68/73",
    "snapdragon-8sg4": "85/73",
    "snapdragon-8-series": "43,57,69/73,75,79",
    "snapdragon-x-elite": "60/73",
    "snapdragon-x-plus-8": "120/73",
    "snapdragon-x2-elite": "88/81",
    "qcs6490": "93/68",
    "qcs8550": "66/73",
    "qcs9075": "77/73",
}
RTX = {"rtx-3090": "8.6", "rtx-4090": "8.9", "rtx-5090": "12.0"}
DEVICES = (
    *SNAPDRAGON,
    *RTX,
    *(f"{name}-windows" for name in RTX),
    *("t4", "a10", "a30", "a100", "l4", "h100", "h200", "b200", "gh200", "gb10"),
    *("jetson-thor", "jetson-orin", "jetson-xavier", "jetson-nano"),
    *("intel-xeon", "intel-core-cpu", "intel-arc-igpu", "intel-npu"),
    *("amd-7900xtx-windows", "amd-7900xtx-linux", "amd-mi300", "ryzen-ai-npu"),
    *("macbook-m3", "macbook-m5", "iphone-15-pro", "iphone-16-pro", "iphone-17", "ios-arm64"),
    *("android-arm64", "android-x64", "pixel-8-pro", "pixel-10", "mediatek-dimensity", "samsung-exynos"),
    *("rockchip-rk3576", "rockchip-rk3588", "huawei-ascend-910b"),
)
PLAIN = ("linux-x64", "linux-arm64", "windows-x64", "windows-arm64", "macos-arm64", "raspberry-pi-4", "raspberry-pi-5")


def variant_of(profile: TargetProfile, name: str) -> Variant:
    return next(variant for variant in profile.variants if variant.name == name)


def test_every_device_of_the_field_is_there():
    assert set(DEVICES) <= set(target_ids())


@pytest.mark.parametrize("name", target_ids())
def test_every_target_resolves_and_ends_where_every_device_can(name):
    profile = resolve_target(name)
    last = profile.variants[-1]
    assert [entry.name for entry in last.providers] == ["wasm" if profile.platform.system == "web" else "cpu"]
    assert not last.custom_build


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_says_what_to_know_and_what_people_call_it(name):
    profile = resolve_target(name)
    assert len(profile.description) > 40
    assert profile.description.endswith(".")
    assert profile.aliases
    assert len(set(profile.aliases)) == len(profile.aliases)


@pytest.mark.parametrize(
    ("called", "meant"),
    [
        ("Galaxy S24 Ultra", ["snapdragon-8g3"]),
        ("SM8650", ["snapdragon-8g3"]),
        ("Surface Laptop 7", ["snapdragon-x-elite"]),
        ("RB3 Gen 2", ["qcs6490"]),
        ("RTX 4080", ["rtx-4090", "rtx-4090-windows"]),
        ("Jetson Orin Nano", ["jetson-orin"]),
        ("Core Ultra 7 155H", ["intel-arc-igpu", "intel-npu"]),
        ("MacBook Pro M3", ["macbook-m3"]),
        ("iPhone 15 Pro Max", ["iphone-15-pro"]),
        ("MI300X", ["amd-mi300"]),
        ("Rock 5B", ["rockchip-rk3588"]),
        ("RX 7900 XT", ["amd-7900xtx-windows", "amd-7900xtx-linux"]),
        ("RX 9070 XT", []),
        ("Ascend 910", []),
    ],
)
def test_a_device_is_found_by_what_people_call_it(called, meant):
    profiles = [resolve_target(name) for name in target_ids()]
    devices = [Candidate(id=one.id, names=(one.id, one.title, *one.aliases)) for one in profiles]
    assert [match.target for match in find_devices(called, devices) if match.score == 1] == meant


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_says_where_what_is_not_obvious_comes_from(name):
    profile = resolve_target(name)
    reported = tuple(profile.sources)
    for variant in profile.variants:
        at = f"variants.{variant.name}"
        threads = variant.session.get("intra_op_num_threads")
        for key, is_special in (
            ("providers", bool(variant.providers[0].options)),
            ("custom_build", variant.custom_build),
            ("session.intra_op_num_threads", threads not in (None, 1)),
        ):
            assert not is_special or any(f"{at}.{key}".startswith(known) for known in reported), f"{at}.{key}"
    for key in ("budget.model_mb", "platform.minimum", "platform.cpu", "runtime.plugins"):
        section, _, value = key.partition(".")
        assert (
            not getattr(getattr(profile, section), value) or key in reported or profile.platform.system == "windows"
        ), key


@pytest.mark.parametrize("name", DEVICES)
def test_sources_name_no_address(name):
    for text in resolve_target(name).sources.values():
        assert "://" not in text


@pytest.mark.parametrize(("name", "chip"), SNAPDRAGON.items())
def test_a_snapdragon_is_compiled_for_its_own_chip(name, chip):
    profile = resolve_target(name)
    options = variant_of(profile, "htp").providers[0].options
    assert f"{options['soc_model']}/{options['htp_arch']}" == chip
    known = {f"{one.number}/{one.architecture}": one for one in CHIPS}
    pairs = zip(chip.split("/")[0].split(","), chip.split("/")[1].split(","), strict=True)
    chips = [known["/".join(pair)] for pair in pairs]
    if len(chips) == 1:
        assert chips[0].parts[0] in profile.aliases or chips[0].parts[0].lower() == profile.id
    # What it cannot do is not asked for: the emulator would compute it all the same.
    assert ("enable_htp_fp16_precision" in options) == all(one.half for one in chips)


@pytest.mark.parametrize("name", SNAPDRAGON)
def test_a_snapdragon_tries_its_npu_then_its_gpu_then_its_cpu(name):
    profile = resolve_target(name)
    assert [variant.name for variant in profile.variants] == ["htp", "gpu", "cpu"]
    assert foresee_variants(profile)[0].fate == "here"
    assert variant_of(profile, "htp").least_share >= 0.8
    assert variant_of(profile, "htp").shortfall == "fail"
    assert profile.precision.calibrated == "static-qnn"
    assert profile.dimensions["batch_size"] == 1


@pytest.mark.parametrize(("name", "capability"), RTX.items())
def test_engines_are_built_here_for_linux_and_there_for_windows(name, capability):
    linux, windows = resolve_target(name), resolve_target(f"{name}-windows")
    assert variant_of(linux, "tensorrt-rtx").compile["compute_capabilities"] == capability
    assert foresee_variants(linux)[0].fate == "here"
    assert foresee_variants(windows)[0].fate == "on the device"
    assert linux.aliases == windows.aliases
    assert linux.runtime.plugins == windows.runtime.plugins


def test_the_engine_of_gb10_is_made_on_the_device():
    profile = resolve_target("gb10")
    fates = [(outlook.name, outlook.fate) for outlook in foresee_variants(profile)]
    assert fates == [("tensorrt-rtx", "on the device"), ("cuda", "as it is"), ("cpu", "as it is")]
    assert "not tried" in profile.description
    assert profile.platform.minimum == "2.35"


@pytest.mark.parametrize(
    ("name", "gigabytes", "part"), [("rockchip-rk3588", 2, 4), ("rockchip-rk3576", 2, 4), ("jetson-nano", 4, 8)]
)
def test_a_boards_largest_model_is_a_part_of_its_smallest_memory(name, gigabytes, part):
    assert resolve_target(name).budget.model_mb == gigabytes * 1000 / part


@pytest.mark.parametrize(
    "name", ["jetson-thor", "jetson-orin", "jetson-xavier", "jetson-nano", "rockchip-rk3576", "rockchip-rk3588"]
)
def test_boards_without_a_published_runtime_have_their_cpu_and_say_so(name):
    profile = resolve_target(name)
    fates = {outlook.name: outlook.fate for outlook in foresee_variants(profile)}
    assert fates.pop("cpu") == "as it is"
    assert set(fates.values()) == {"left out"}
    assert "and says so" in profile.description


@pytest.mark.parametrize("name", ["jetson-orin", "jetson-xavier", "jetson-nano", "rockchip-rk3588"])
def test_a_runtime_of_ones_own_brings_the_accelerator_back(name):
    profile = resolve_target(name, ["runtime.custom_build=true"])
    assert foresee_variants(profile)[0].fate != "left out"


@pytest.mark.parametrize("name", target_ids())
def test_each_system_gets_the_package_of_its_own_people(name):
    profile = resolve_target(name)
    bundle = (profile.bundle.ecosystem, profile.bundle.format)
    if takes_wheels(profile.platform.system, profile.platform.architecture):
        assert bundle == ("python", "dir")
        assert profile.python.wheel_platforms
    else:
        own = {"web": ("web", "dir"), "android": ("android", "gradle"), "ios": ("neutral", "files")}
        assert bundle == own[profile.platform.system]


@pytest.mark.parametrize("name", target_ids())
def test_a_provider_of_fixed_sizes_comes_with_sizes(name):
    profile = resolve_target(name)
    shipped = shipped_variants(profile)
    if any(judge_free_sizes(variant) == "fixed" for variant in shipped):
        assert {"batch", "batch_size", "sequence_length"} <= set(profile.dimensions)


@pytest.mark.parametrize("name", DEVICES)
def test_a_phone_has_limits_of_its_size(name):
    profile = resolve_target(name)
    assert profile.budget.model_mb or profile.id == "intel-xeon"
    if profile.platform.system in ("android", "ios"):
        assert profile.budget.model_mb <= 1000
        assert profile.language_model.batch_size == 1


def test_targets_are_listed_under_the_names_of_their_makers():
    groups = Counter(summary.group for summary in list_targets())
    assert groups["Qualcomm Snapdragon"] == len(SNAPDRAGON)
    assert set(groups) == {
        "AMD",
        "Android",
        "Apple",
        "Browsers",
        "Huawei Ascend",
        "Intel",
        "NVIDIA GPUs",
        "NVIDIA Jetson",
        "Qualcomm Snapdragon",
        "Servers and desktops",
        "Single-board computers",
    }


def test_every_base_is_extended():
    used = {line for file in _files() for line in file.read_text().splitlines() if line.startswith("extends")}
    assert {f'extends = "{name}"' for name in find_catalogue().bases} <= used


def test_plain_targets_are_as_plain_as_ever():
    for name in PLAIN:
        profile = resolve_target(name)
        assert [variant.name for variant in profile.variants] == ["cpu"]
        assert not profile.runtime.plugins
        assert not profile.dimensions


@pytest.mark.parametrize("name", target_ids())
def test_a_board_is_proven_under_emulation(name):
    platform = resolve_target(name).platform
    if (platform.system, platform.architecture) == ("linux", "arm64"):
        assert platform.cpu in EMULATED


def _files():
    catalogue = find_catalogue()
    return [*catalogue.targets.values(), *catalogue.bases.values()]
