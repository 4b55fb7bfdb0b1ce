"""What a user gets who sets options of QNN: a wrong chip is reported before anything is compiled."""

import pytest

from bundler.providers.qnn import PROVIDER
from bundler.providers.qnn_chips import CHIPS

# Number and architecture as onnxruntime-qnn 2.6.0 and 2.7.0 wrote them into the context of a quantised model.
PAIRS = {
    "30": "68",
    "35": "68",
    "36": "69",
    "42": "69",
    "43": "73",
    "57": "75",
    "60": "73",
    "66": "73",
    "68": "73",
    "69": "79",
    "77": "73",
    "85": "73",
    "87": "81",
    "88": "81",
    "93": "68",
    "97": "81",
    "120": "73",
}
PARTS = {
    "SM8350": 30,
    "SM7325": 35,
    "SM8450": 36,
    "SM8475": 42,
    "SM8550": 43,
    "SM8650": 57,
    "SC8380XP": 60,
    "QCS8550": 66,
    "SM8635": 68,
    "SM8750": 69,
    "QCS9075": 77,
    "SM8735": 85,
    "SM8850": 87,
    "SC8480XP": 88,
    "QCS6490": 93,
    "SM8845": 97,
    "SC8340XP": 120,
}


def check(**options: str) -> list[tuple[str, str]]:
    assert PROVIDER.options.check is not None
    return list(PROVIDER.options.check(options))


def test_the_chips_are_those_that_were_compiled_for():
    assert {str(chip.number): str(chip.architecture) for chip in CHIPS} == PAIRS
    assert {chip.parts[0]: chip.number for chip in CHIPS} == PARTS


@pytest.mark.parametrize(("model", "architecture"), PAIRS.items())
def test_every_known_chip_is_accepted_with_its_architecture(model, architecture):
    assert check(backend_type="htp", soc_model=model, htp_arch=architecture) == []


def test_several_chips_are_accepted():
    assert check(soc_model="43,57, 69", htp_arch="73, 75,79", enable_htp_fp16_precision="1") == []


def test_nothing_is_wrong_with_no_options():
    assert check() == []


def test_an_unknown_chip_is_reported_with_the_known_ones():
    [(key, text)] = check(soc_model="59", htp_arch="75")
    assert key == "soc_model"
    assert "'59' is not a known chip" in text
    assert "57 Snapdragon 8 Gen 3" in text


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("SM8650", 'write its number, "57"'),
        ("qcs6490", 'write its number, "93"'),
        ("SM8651", "did you mean 57 (Snapdragon 8 Gen 3 (SM8650))?"),
        ("75", "75 is an architecture (`htp_arch`), not a chip; chips with it: 57"),
    ],
)
def test_what_was_meant_is_guessed(model, wanted):
    [(key, text)] = check(soc_model=model, htp_arch="75")
    assert key == "soc_model"
    assert wanted in text


def test_an_architecture_of_another_chip_is_a_contradiction():
    [(key, text)] = check(soc_model="57", htp_arch="73")
    assert key == "htp_arch"
    assert "is incompatible with `soc_model` 57: Snapdragon 8 Gen 3 (SM8650) has 75" in text
    assert "Snapdragon 8 Gen 2 (SM8550)" in text


def test_several_chips_are_each_held_to_their_own_architecture():
    assert [text.partition(":")[0] for _, text in check(soc_model="43,57", htp_arch="75,73")] == [
        "'75' is incompatible with `soc_model` 43",
        "'73' is incompatible with `soc_model` 57",
    ]


def test_lists_of_different_length_are_reported_with_the_right_one():
    [(key, text)] = check(soc_model="43,57,69", htp_arch="73,75")
    assert key == "htp_arch"
    assert "3 in `soc_model`, 2 here" in text
    assert '`htp_arch = "73,75,79"`' in text


def test_a_chip_needs_its_architecture_beside_it():
    assert check(soc_model="57") == [("soc_model", 'requires the architecture as well: `htp_arch = "75"`')]


def test_a_chip_that_stands_twice_is_reported():
    assert ("soc_model", "names the chip '57' more than once") in check(soc_model="57,57", htp_arch="75,75")


def test_the_architecture_may_stand_alone():
    assert check(htp_arch="75") == []


def test_an_architecture_as_people_say_it_is_put_right():
    [(key, text)] = check(htp_arch="v75")
    assert key == "htp_arch"
    assert text.endswith('write "75"')


@pytest.mark.parametrize(
    "hostile", ["", ",", "57;43", "57,", "\u0661\u0662", "5 7", "-57", "057", "1" * 1000, ",".join("99" * 300)]
)
def test_hostile_numbers_are_refused_in_few_words(hostile):
    problems = check(soc_model=hostile, htp_arch=hostile)
    assert {key for key, _ in problems} == {"soc_model", "htp_arch"}
    assert sum(len(text) for _, text in problems) < 5000


@pytest.mark.parametrize(
    ("model", "architecture"), [("30", "68"), ("35", "68"), ("93", "68"), ("68", "73"), ("85", "73")]
)
def test_half_precision_on_a_chip_without_it_is_a_contradiction(model, architecture):
    [(key, text)] = check(soc_model=model, htp_arch=architecture, enable_htp_fp16_precision="true")
    assert key == "enable_htp_fp16_precision"
    assert "cannot compute in half precision; quantise" in text
    assert check(soc_model=model, htp_arch=architecture, enable_htp_fp16_precision="0") == []


def test_one_of_several_chips_without_half_precision_is_named():
    [(_, text)] = check(soc_model="57,30", htp_arch="75,68", enable_htp_fp16_precision="1")
    assert text.startswith("Snapdragon 888 cannot")


def test_half_precision_on_the_architecture_without_it_is_a_contradiction():
    assert [key for key, _ in check(htp_arch="68", enable_htp_fp16_precision="1")] == ["enable_htp_fp16_precision"]


def test_bfloat16_needs_a_chip_that_has_it():
    assert check(soc_model="88", htp_arch="81", htp_bf16_enable="1") == []
    assert [key for key, _ in check(soc_model="57", htp_arch="75", htp_bf16_enable="1")] == ["htp_bf16_enable"]
    assert [key for key, _ in check(htp_bf16_enable="1")] == ["htp_bf16_enable"]
    # A higher number, an older generation.
    assert [key for key, _ in check(soc_model="93", htp_arch="68", htp_bf16_enable="1")] == ["htp_bf16_enable"]


def test_both_narrow_types_at_once_are_a_contradiction():
    both = check(soc_model="88", htp_arch="81", htp_bf16_enable="1", enable_htp_fp16_precision="1")
    assert both == [("htp_bf16_enable", "incompatible with `enable_htp_fp16_precision`; choose one")]


def test_options_that_would_have_no_effect_are_reported():
    assert [key for key, _ in check(soc_model="57", htp_arch="75", extended_udma="1")] == ["extended_udma"]
    assert check(soc_model="87", htp_arch="81", extended_udma="1") == []


def test_options_of_the_tensor_processor_are_not_for_the_gpu():
    assert check(backend_type="gpu") == []
    wrong = check(backend_type="gpu", soc_model="57", htp_arch="75", vtcm_mb="8")
    assert [key for key, _ in wrong] == ["htp_arch", "soc_model", "vtcm_mb"]


def test_floating_point_is_computed_in_half_precision_unless_the_reference_does():
    assert PROVIDER.numerics.rounds is not None
    assert [PROVIDER.numerics.rounds(options) for options in ({}, {"enable_htp_fp16_precision": "0"})] == [
        "half",
        "half",
    ]
    assert PROVIDER.numerics.rounds({"backend_type": "cpu"}) == "none"


def test_a_file_for_several_chips_is_rehearsed_on_the_first():
    assert PROVIDER.compiler is not None
    assert PROVIDER.compiler.validation_options is not None
    assert PROVIDER.compiler.validation_options({"soc_model": "57", "htp_arch": "75"}) is None
    assert PROVIDER.compiler.validation_options({"soc_model": "43,57", "htp_arch": "73,75", "vtcm_mb": "8"}) == {
        "soc_model": "43",
        "htp_arch": "73",
        "vtcm_mb": "8",
    }
