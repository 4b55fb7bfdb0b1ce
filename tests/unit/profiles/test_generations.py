"""Next year's devices are not taken for this year's: an older chip's context or engine does not open on them.

Names are made up from the catalogue's own: another number, another suffix, another word. Whatever the search answers, a
target that is of one chip must not be among it, unless its own file has the name.
"""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundler.catalogue.listing import list_targets
from bundler.catalogue.matching import split_words
from bundler.model.errors import UsageError
from bundler.pipeline.recommend import find_matches
from bundler.profiles.resolve import resolve_target
from bundler.profiles.schema import TargetProfile
from bundler.providers.registry import find_provider

SUMMARIES = [summary for summary in list_targets() if summary.system != "web"]
NAMES = [(summary.id, name) for summary in SUMMARIES for name in (*summary.aliases, summary.title)]
KNOWN = {split_words(name) for _, name in NAMES} | {split_words(summary.id) for summary in SUMMARIES}
SUFFIXES = ("Ti", "Ultra", "Pro", "Max", "Plus", "+", "Super", "Elite", "s", "X", "II", "Next", "Gen 9", "2")

FAMILIES = {
    "Snapdragon 8 Elite Gen {}": range(6, 12),
    "Snapdragon 8 Gen {}": (4, *range(6, 12)),
    "Snapdragon 8s Gen {}": range(5, 12),
    "Snapdragon {} Gen 1": (6, 7, 9),
    "Snapdragon X{} Elite": range(3, 8),
    "SM{}": (8990, 9050, 9150),
    "Jetson {}": ("Rubin", "Vera", "Thor 2", "Orin 2", "Nano 2", "T6000"),
    "RTX {}90": range(60, 90, 10),
    "RTX 5090 {}": ("Ti", "SUPER", "Ultra"),
    "Galaxy S{}": range(27, 32),
    "Pixel {} Pro": range(11, 15),
    "Tensor G{}": range(6, 9),
    "Dimensity {}": (9600, 9700, 10000),
    "Exynos {}": (2700, 2800),
    "iPhone {} Pro": range(18, 22),
    "Apple M{}": range(6, 10),
    "Raspberry Pi {}": range(6, 9),
    "RK{}": (3688, 3668),
    "QCS{}": (6590, 9175),
    "Ryzen AI 9 HX {}": (470, 570),
    "Core Ultra 9 {}H": (485, 586),
    "H{}": (300, 400),
    "B{}": (300, 400),
    "MI{}X": (450, 500),
    "Ascend {}": ("920B", "950"),
}
MADE_UP = [pattern.format(value) for pattern, values in FAMILIES.items() for value in values]


def find(text: str):
    try:
        return find_matches(text, SUMMARIES)
    except UsageError:
        return ()


def is_of_one_chip(profile: TargetProfile) -> bool:
    """Whether something in its bundle opens on one kind of chip alone."""
    firsts = [find_provider(variant.providers[0].name) for variant in profile.variants if not variant.custom_build]
    return any(first.compiler is not None and first.name != "openvino" for first in firsts)


ONE_CHIP = {summary.id for summary in SUMMARIES if is_of_one_chip(resolve_target(summary.id))}


def test_there_are_targets_of_one_chip_to_be_kept_apart():
    assert {"snapdragon-8-elite", "rtx-4090", "qcs6490"} <= ONE_CHIP
    assert not {"android-arm64", "linux-x64", "linux-arm64", "windows-arm64", "ios-arm64"} & ONE_CHIP


@pytest.mark.parametrize("text", MADE_UP)
def test_a_next_generation_is_said_to_be_unknown_with_what_runs_there(text):
    matches = find_matches(text, SUMMARIES)
    assert matches
    assert all(match.stands_in for match in matches)
    assert not ONE_CHIP & {match.target for match in matches}


@pytest.mark.parametrize("text", ["Snapdragon 8 Elite Gen 6", "Snapdragon 8 Elite Gen 6 Pro", "SM8950", "SM8975"])
def test_a_chip_that_is_known_by_name_only_says_what_is_missing(text):
    (match,) = find_matches(text, SUMMARIES)
    assert match.target == "android-arm64"
    assert "V85" in match.stands_in


@pytest.mark.parametrize("text", ["Apple A10", "Apple A16", "Intel H100", "AMD L4"])
def test_what_is_of_one_maker_is_not_of_another(text):
    assert not {"a10", "h100", "l4"} & {match.target for match in find(text) if not match.stands_in}


@pytest.mark.parametrize("text", ["Raspberry Pi AI HAT+", "Raspberry Pi 5 with AI HAT+ 2", "Hailo-8L"])
def test_an_accelerator_out_of_reach_says_why(text):
    (match,) = find_matches(text, SUMMARIES)
    assert match.target == "raspberry-pi-5"
    assert "out of reach" in match.stands_in


@pytest.mark.parametrize(("target", "name"), NAMES)
def test_every_name_of_the_catalogue_finds_its_target(target, name):
    matches = find(name)
    assert target in {match.target for match in matches}
    assert not any(match.stands_in for match in matches)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(NAMES), st.sampled_from(SUFFIXES))
def test_a_suffix_that_no_name_has_is_another_chip(row, suffix):
    _, name = row
    text = f"{name} {suffix}"
    if split_words(text) in KNOWN:
        return
    assert not [match for match in find(text) if match.target in ONE_CHIP and is_too_much(text, match.target)]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(NAMES), st.integers(min_value=1, max_value=9999))
def test_another_number_is_another_chip(row, number):
    _, name = row
    text = re.sub(r"[0-9]+", str(number), name, count=1)
    if text == name or split_words(text) in KNOWN:
        return
    assert not [match for match in find(text) if match.target in ONE_CHIP and is_too_much(text, match.target)]


def is_too_much(text: str, target: str) -> bool:
    """Whether `text` has a number, or a suffix, that stands in none of the target's names."""
    profile = resolve_target(target)
    known = {word for name in (*profile.aliases, profile.title, profile.id) for word in split_words(name)}
    telling = {word for word in split_words(text) if word.isdigit() or word in {s.lower() for s in SUFFIXES}}
    return not telling <= known


@pytest.mark.parametrize(
    "name", ["Galaxy S21", "Galaxy S22 Ultra", "Samsung Galaxy S22+", "Galaxy S24", "Galaxy S26", "Snapdragon X Plus"]
)
def test_a_device_with_one_chip_or_another_shows_both_with_a_caution(name):
    matches = find_matches(name, SUMMARIES)
    assert len(matches) == 2
    assert all(match.caution for match in matches)


@pytest.mark.parametrize(
    ("name", "target"),
    [("Galaxy S23", "snapdragon-8g2"), ("Galaxy S24 Ultra", "snapdragon-8g3"), ("Galaxy S25", "snapdragon-8-elite")],
)
def test_a_phone_with_one_chip_everywhere_needs_none(name, target):
    (match,) = find_matches(name, SUMMARIES)
    assert (match.target, match.caution) == (target, "")


@pytest.mark.parametrize("name", ["L4", "L40S", "A10", "A30", "A40", "A10G", "T4", "B200", "GH200 144GB"])
def test_a_server_is_not_led_to_engines_for_rtx_cards(name):
    for match in find_matches(name, SUMMARIES):
        chain = [entry.name for variant in resolve_target(match.target).variants for entry in variant.providers]
        assert "tensorrt-rtx" not in chain
        assert not match.stands_in


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Nothing Phone (3a)", "snapdragon-8sg4"),
        *((f"RTX {number}000", "rtx-3090") for number in (3, 4, 5, 6)),
        ("Pixel 10a", "pixel-10"),
        ("OnePlus 9a", "snapdragon-888"),
        ("H200a", "h200"),
        ("Snapdragon 8 Elite A", "snapdragon-8-elite"),
        ("iPhone 16a", "iphone-16-pro"),
        ("iPhone 18", "iphone-17"),
        ("T800", "huawei-ascend-910b"),
        ("A800", "huawei-ascend-910b"),
        ("Snapdragon 3 Gen 8", "snapdragon-8g3"),
    ],
)
def test_a_letter_or_a_number_more_is_another_device(text, other):
    assert not {other, f"{other}-windows"} & {match.target for match in find(text)}


@pytest.mark.parametrize("text", ["RTX A6000", "a RTX A6000", "in a RTX A6000"])
def test_an_article_is_left_out_and_the_letter_of_a_chip_is_not(text):
    assert {match.target for match in find(text)} == {"rtx-3090", "rtx-3090-windows"}


@pytest.mark.parametrize("text", ["RTX 2000", "RTX 4000", "RTX 5000", "RTX 6000"])
def test_a_card_whose_name_three_generations_share_comes_with_a_caution(text):
    matches = find(text)
    assert matches
    assert all(match.score < 1 and "other cards" in match.caution for match in matches)


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("ThinkPad T14s Gen 6 AMD", {"windows-x64"}),
        ("ThinkPad T14s Gen 6 Intel", {"windows-x64"}),
        ("Surface Pro 11 Intel", {"windows-x64"}),
        ("Surface Laptop 7 Intel", {"windows-x64"}),
        ("AMD RTX 4090", {"linux-x64", "windows-x64"}),
        ("Intel RTX 4090", {"linux-x64", "windows-x64"}),
        ("Apple Snapdragon 8 Gen 3", {"android-arm64"}),
        ("MediaTek Snapdragon 8 Gen 3", {"android-arm64"}),
        ("Snapdragon 8 Lite", {"android-arm64"}),
    ],
)
def test_what_another_maker_built_in_gets_what_runs_there(text, targets):
    matches = find(text)
    assert {match.target for match in matches} == targets
    assert all(match.stands_in for match in matches)


@pytest.mark.parametrize("text", ["ThinkPad T14s Gen 6", "Surface Laptop 7", "Microsoft Surface Pro 11"])
def test_a_laptop_that_is_sold_with_other_makers_chips_comes_with_a_caution(text):
    (match,) = find(text)
    assert match.target == "snapdragon-x-elite"
    assert "also sold with" in match.caution
    (plain,) = find(f"{text} Snapdragon")
    assert (plain.target, plain.score, plain.caution) == ("snapdragon-x-elite", 1, "")


@pytest.mark.parametrize("text", ["Rubin", "NVIDIA Rubin"])
def test_a_short_word_is_not_mended_to_another(text):
    assert not find(text)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("pixle 8 pro", "pixel-8-pro"),
        ("iPone 15 Pro", "iphone-15-pro"),
        ("snapdargon 8 gen 3", "snapdragon-8g3"),
        ("rasberry pi 5", "raspberry-pi-5"),
    ],
)
def test_a_slip_of_spelling_is_still_mended(text, target):
    (match,) = find(text)
    assert match.target == target
    assert match.read_as


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("Snapdragon 8 Elite Gen 5 for Galaxy", {"snapdragon-8-elite-g5"}),
        ("Galaxy S24 Ultra 5G", {"snapdragon-8g3"}),
        ("Snapdragon X2 Elite Extreme", {"snapdragon-x2-elite"}),
        ("SM89", {"l4", "rtx-4090", "rtx-4090-windows"}),
        ("SM86", {"a10", "rtx-3090", "rtx-3090-windows"}),
    ],
)
def test_another_name_of_a_known_device_finds_it(text, targets):
    matches = find(text)
    assert {match.target for match in matches} == targets
    assert not any(match.stands_in for match in matches)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((f"Raspberry Pi {name}", "microcontroller") for name in ("Pico", "Pico 2 W")),
        *((f"Raspberry Pi {name}", "Armv6") for name in ("1 Model B+", "Zero W", "Zero", "Model B+", "A+")),
        *((name, "Intel") for name in ("MacBook Pro 2019", "MacBook Air Intel", "Intel iMac", "Mac mini 2018")),
        *((name, "Intel") for name in ("MacBook Air 2010", "MacBook Pro Early 2020", "MacBook Pro Core i7")),
        *((name, "Intel") for name in ("iMac Pro", "iMac 27-inch", "MacBook 12-inch", "iMac 2020")),
        ("iMac G5", "PowerPC"),
        *((f"Jetson {name}", "Armv7") for name in ("TK1", "TK1 Developer Kit")),
        *((f"Tegra {name}", "Armv7") for name in ("K1", "2", "3", "4")),
        *((name, "Armv7") for name in ("RK3288", "RK3188", "Rockchip RK3066", "Raspberry Pi 2 Model B")),
        *((f"Orange Pi {name}", "Armv7") for name in ("Zero", "One", "PC", "Lite", "PC Plus")),
        *((f"Banana Pi {name}", "Armv7") for name in ("M1", "M2", "M2 Zero", "M3")),
        *((name, "RISC-V") for name in ("Orange Pi RV2", "Banana Pi BPI-F3")),
        *((name, "no phone") for name in ("Galaxy Watch 7", "Galaxy Buds 3", "Galaxy Ring", "Pixel Watch 3")),
        *((name, "no phone") for name in ("OnePlus Watch 2", "Xiaomi Watch S3")),
        *((name, "32 bits") for name in ("Galaxy S2", "Galaxy S5", "Galaxy S III", "Snapdragon 200", "Snapdragon 400")),
        *((f"iPhone {name}", "iOS 15.1") for name in ("3G", "4", "4s", "5s", "6", "6 Plus")),
        *((f"iPad {name}", "iOS 15.1") for name in ("2", "4", "mini 3", "Air 1")),
        *((f"Apple A{number}", "iOS 15.1") for number in range(4, 9)),
    ],
)
def test_where_nothing_runs_the_reason_is_said(text, why):
    with pytest.raises(UsageError, match="no target runs on the device") as raised:
        find_matches(text, SUMMARIES)
    assert why in raised.value.details[0]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("Raspberry Pi Zero 2 W", "linux-arm64"),
        ("Raspberry Pi 3 Model B+", "linux-arm64"),
        ("NVIDIA GB200 NVL72", "linux-arm64"),
        ("GB300", "linux-arm64"),
        ("Snapdragon G3x Gen 2", "android-arm64"),
        ("MacBook Pro 2023", "macbook-m3"),
        ("iPhone 6s", "ios-arm64"),
        ("iPad Air 2", "ios-arm64"),
        ("Apple A8X", "ios-arm64"),
        ("Galaxy Tab S5e", "android-arm64"),
        ("Galaxy S6", "android-arm64"),
        ("Pixel Tablet", "android-arm64"),
        ("Pixel phone", "android-arm64"),
        ("Dimensity 7200", "android-arm64"),
        ("Orange Pi", "linux-arm64"),
        ("Orange Pi Zero 3", "linux-arm64"),
        ("Orange Pi Zero 2W", "linux-arm64"),
        ("Banana Pi M2S", "linux-arm64"),
        ("RK3399", "linux-arm64"),
        ("Ascend 310P", "linux-arm64"),
        ("Kunpeng 920", "linux-arm64"),
        ("Radxa X4", "linux-x64"),
        ("Galaxy Book4 Edge", "windows-arm64"),
        ("Surface Pro X", "windows-arm64"),
        *((f"Surface Laptop {number}", "windows-x64") for number in range(1, 7)),
        *((f"Surface Pro {number}", "windows-x64") for number in range(3, 9)),
    ],
)
def test_a_stand_in_is_for_the_machines_kind(text, target):
    (match,) = find(text)
    assert match.target == target
    assert match.stands_in


@pytest.mark.parametrize("text", ["Surface Pro 9", "Surface Pro 10", "Galaxy Book 4", "ThinkPad T14s Gen 5"])
def test_a_laptop_with_one_architecture_or_the_other_gets_both_and_is_to_be_asked(text):
    matches = find(text)
    assert {match.target for match in matches} == {"windows-x64", "windows-arm64"}
    assert all("processor" in match.stands_in for match in matches)


@pytest.mark.parametrize("text", ["Galaxy S6", "Redmi Note 99", "Orange Pi 3", "iPad 8", "MacBook Pro 2022"])
def test_what_only_a_familys_word_says_is_said_with_a_condition(text):
    for match in find(text):
        assert match.stands_in.startswith("if ")


@pytest.mark.parametrize("text", ["B100", "B300", "RTX 2080 Ti", "Jetson TX2", "Apple M7", "Snapdragon 8 Elite Gen 7"])
def test_what_is_not_known_is_not_called_another_generation(text):
    matches = find(text)
    assert matches
    assert not any("another generation" in match.stands_in for match in matches)


def test_what_stands_in_says_which_of_its_variants_run():
    (match,) = find("B100")
    assert "no target names it" in match.stands_in
    assert "(variants: cpu)" in match.stands_in


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("A800", "a100"),
        *((name, "h100") for name in ("H800", "H20")),
        ("L20", "l4"),
        ("A2", "a10"),
        *((name, "rtx-3090") for name in ("RTX A1000", "RTX A4500")),
        *((name, "rtx-4090") for name in ("RTX 3500 Ada", "RTX 4500 Ada")),
        *((f"RTX PRO {name}", "rtx-5090") for name in ("2000 Blackwell", "6000 Max-Q")),
        *((name, "ios-arm64") for name in ("iPhone 15", "iPhone 15 Plus", "Apple A16")),
        *((name, "rockchip-rk3588") for name in ("Rock 5B+", "Orange Pi 5 Plus")),
        ("Raspberry Pi 400", "raspberry-pi-4"),
        *(("Copilot+ PC", name) for name in ("snapdragon-x-plus-8", "snapdragon-x2-elite", "intel-npu")),
    ],
)
def test_a_model_of_the_same_chip_has_the_target_of_its_chip(text, target):
    found = {match.target: match for match in find(text)}
    assert not found[target].stands_in


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((name, "Intel's chip") for name in ("MacBook Pro", "MacBook Air", "iMac", "Mac mini", "MacBook Air 2020")),
        ("Chromebook", "Arm"),
        ("Copilot+ PC", "Qualcomm"),
        ("A2", "16 GB"),
    ],
)
def test_a_name_of_more_than_one_kind_of_machine_comes_with_a_caution(text, why):
    assert all(why in match.caution for match in find(text))


@pytest.mark.parametrize("name", ["RTX 2000", "MacBook Pro M3", "iMac M3", "Apple M4"])
def test_a_name_that_says_the_chip_needs_no_caution_of_the_family(name):
    assert not any("Intel's chip" in match.caution for match in find(name))
