"""What people call a device finds its target; another number is another device."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.catalogue.matching import (
    Candidate,
    find_devices,
    find_siblings,
    find_stand_ins,
    split_words,
    suggest_devices,
)

CATALOGUE = (
    Candidate(
        id="snapdragon-8g3", names=("snapdragon-8g3", "Snapdragon 8 Gen 3", "SM8650", "SM8650-AC", "Galaxy S24 Ultra")
    ),
    Candidate(id="snapdragon-8g2", names=("snapdragon-8g2", "Snapdragon 8 Gen 2", "SM8550", "Galaxy S23")),
    Candidate(id="snapdragon-8sg3", names=("snapdragon-8sg3", "Snapdragon 8s Gen 3", "SM8635")),
    Candidate(id="pixel-8-pro", names=("pixel-8-pro", "Google Pixel 8 Pro", "Tensor G3")),
    Candidate(id="rtx-4090", names=("rtx-4090", "NVIDIA GeForce RTX 4090 on Linux", "RTX 4090")),
    Candidate(id="rtx-4090-windows", names=("rtx-4090-windows", "NVIDIA GeForce RTX 4090 on Windows")),
    Candidate(id="macbook-m3", names=("macbook-m3", "MacBook with M3", "M3")),
    Candidate(id="raspberry-pi-4", names=("raspberry-pi-4", "Raspberry Pi 4", "BCM2711")),
    Candidate(id="raspberry-pi-5", names=("raspberry-pi-5", "Raspberry Pi 5", "BCM2712")),
    Candidate(id="jetson-orin", names=("jetson-orin", "NVIDIA Jetson Orin", "Jetson Orin Nano")),
    Candidate(id="jetson-nano", names=("jetson-nano", "NVIDIA Jetson Nano")),
    Candidate(id="intel-xeon", names=("intel-xeon", "Intel Xeon servers"), serves={"Xeon": "it runs on every Xeon"}),
    Candidate(id="linux-arm64", names=("linux-arm64",), serves={"Jetson": "CPU", "Raspberry Pi": "CPU"}),
    Candidate(
        id="phone-two",
        names=("phone-two", "Galaxy S22", "Galaxy S22+"),
        cautions={"Galaxy S22": "two chips", "Galaxy S22+": "two chips, too"},
    ),
)


def found(text: str) -> list[str]:
    return [match.target for match in find_devices(text, CATALOGUE)]


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("Galaxy S24 Ultra", ["snapdragon-8g3"]),
        ("galaxy s24", ["snapdragon-8g3"]),
        ("Samsung Galaxy S24 Ultra", ["snapdragon-8g3"]),
        ("SM8650", ["snapdragon-8g3"]),
        ("sm8650-ac", ["snapdragon-8g3"]),
        ("snapdragon 8 gen 2", ["snapdragon-8g2"]),
        ("8 gen 3", ["snapdragon-8g3"]),
        ("8s gen 3", ["snapdragon-8sg3"]),
        ("S24 Galaxy", ["snapdragon-8g3"]),
        ("rtx 4090", ["rtx-4090", "rtx-4090-windows"]),
        ("rtx 4090 windows", ["rtx-4090-windows"]),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", ["rtx-4090", "rtx-4090-windows"]),
        ("rtx 4090 24GB on linux", ["rtx-4090"]),
        ("Galaxy S24 Ultra (Snapdragon 8 Gen 3)", ["snapdragon-8g3"]),
        ("RTX4090", ["rtx-4090", "rtx-4090-windows"]),
        ("pixel 8", ["pixel-8-pro"]),
        ("macbook", ["macbook-m3"]),
        ("raspberry pi", ["raspberry-pi-4", "raspberry-pi-5"]),
        ("Raspberry Pi 5 Model B Rev 1.0", ["raspberry-pi-5"]),
        ("NVIDIA Jetson Orin Nano Developer Kit", ["jetson-orin"]),
        ("\uff32\uff34\uff38\u3000\uff14\uff10\uff19\uff10", ["rtx-4090", "rtx-4090-windows"]),
    ],
)
def test_a_device_is_found_by_what_it_is_called(text, targets):
    assert found(text) == targets


def test_a_misspelt_name_is_read_as_the_one_that_is_meant():
    (match,) = find_devices("rasberry pi 5", CATALOGUE)
    assert (match.target, match.read_as) == ("raspberry-pi-5", "raspberry pi 5")


@pytest.mark.parametrize(
    "text",
    [
        *("rtx 4080", "pixel 9", "SM8660", "Galaxy S25", "cortex m3", "toaster", "", "  ", "-", "8"),
        *(
            "rtx 4090 ti",
            "rtx 4090 super",
            "Snapdragon 8 Gen 3+",
            "Snapdragon 8+ Gen 3",
            "8 Elite Gen 3",
            "Jetson Thor",
        ),
        *("Snapdragon 8 Gen 3 Pro", "Jetson Orin 2", "Galaxy S24 Ultra 2", "Jetson Nano Next", "Pixel 8 Fold"),
    ],
)
def test_another_device_is_not_taken_for_one_that_is_known(text):
    assert found(text) == []


def test_what_is_spelt_alike_is_suggested():
    assert "rtx-4090" in suggest_devices("rtx 4080", CATALOGUE)
    assert suggest_devices("toaster", CATALOGUE) == ()
    assert suggest_devices("", CATALOGUE) == ()


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", ["intel-xeon"]),
        ("NVIDIA Jetson Thor 2", ["linux-arm64"]),
        ("Raspberry Compute Pi", ["linux-arm64"]),
        ("toaster", []),
        ("", []),
    ],
)
def test_what_no_target_is_of_gets_one_that_runs_there(text, targets):
    found = find_stand_ins(text, CATALOGUE)
    assert [match.target for match in found] == targets
    assert all(match.stands_in for match in found)


def test_another_number_is_another_generation():
    assert [match.target for match in find_siblings("RTX 6090", CATALOGUE)] == ["rtx-4090", "rtx-4090-windows"]
    assert [match.target for match in find_siblings("snapdragon 8 gen 9", CATALOGUE)] == [
        "snapdragon-8g3",
        "snapdragon-8g2",
    ]
    for text in ("toaster", "9", ""):
        assert find_siblings(text, CATALOGUE) == ()


@pytest.mark.parametrize(
    ("text", "targets"), [("phone one", []), ("one tablet", []), ("One 5", ["one-5"]), ("Lone", []), ("Two", ["two-6"])]
)
def test_a_word_of_a_family_alone_is_none_of_its_devices(text, targets):
    family = Candidate(id="general", names=("general",), serves={"One": "it runs on all", "Lone": "it runs on all"})
    named = (("one-5", "One 5"), ("one-7", "One 7"), ("lone-5", "Lone 5"), ("two-6", "Two 6"))
    devices = [Candidate(id=name, names=(name, title)) for name, title in named]
    assert [match.target for match in find_devices(text, [family, *devices])] == targets


def test_another_number_of_a_device_with_a_caution_has_it_too():
    assert [match.caution for match in find_siblings("Galaxy S29", CATALOGUE) if match.target == "phone-two"] == [
        "two chips"
    ]


@pytest.mark.parametrize(
    ("text", "caution"), [("Samsung Galaxy S22", "two chips"), ("galaxy s22 plus", "two chips, too"), ("phone-two", "")]
)
def test_a_phone_with_one_chip_or_another_comes_with_a_caution(text, caution):
    (match,) = find_devices(text, CATALOGUE)
    assert (match.target, match.caution) == ("phone-two", caution)


def test_marks_and_case_do_not_count():
    assert split_words("Intel® Core™ i7-1185G7 (TM)") == ("intel", "core", "i", "7", "1185", "g", "7")


@given(st.text(max_size=600))
def test_no_text_breaks_the_search(text):
    assert len(find_devices(text, CATALOGUE)) <= 5
    assert len(find_stand_ins(text, CATALOGUE)) <= 5
    assert len(find_siblings(text, CATALOGUE)) <= 5
    suggest_devices(text, CATALOGUE)
