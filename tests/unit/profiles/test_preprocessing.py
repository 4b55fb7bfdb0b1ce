"""A declared preprocessing is checked to the last value, and every mistake is explained."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundler.catalogue.preprocessing_document import NAME, describe_preprocessing_keys
from bundler.model.codec import encode
from bundler.model.errors import UsageError
from bundler.model.preprocessing import (
    AudioRecord,
    ImageDeclaration,
    ImageRecord,
    TextDeclaration,
    TextRecord,
    describe_preprocessing,
    read_record,
)
from bundler.profiles.preprocessing import DeclaredPreprocessing, read_preprocessing, starter_lines
from bundler.profiles.toml_text import write_toml

ROOT = Path(__file__).resolve().parents[3]


def read(tmp_path: Path, text: str) -> DeclaredPreprocessing:
    path = tmp_path / "preprocessing.toml"
    path.write_text(text, encoding="utf-8")
    return read_preprocessing(path)


def refuse(tmp_path: Path, text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    return caught.value


def test_a_whole_declaration(tmp_path: Path) -> None:
    text = 'kind = "image"\nsize = [224, 256]\nresize = "crop"\nmean = [0.5]\nstd = [1, 2, 3]\n'
    found = read(tmp_path, text + "[constants]\nratio = [[1.0]]\n")
    assert isinstance(found.declaration, ImageDeclaration)
    assert tuple(found.declaration.size or ()) == (224, 256)
    assert found.declaration.std == (1, 2, 3)
    assert found.declaration.constants == {"ratio": [[1.0]]}
    assert found.options["kind"] == "image"
    assert "colour" not in found.options  # left to the signature
    assert found.tokenizer is None


def test_every_mistake_is_explained_at_once(tmp_path: Path) -> None:
    error = refuse(
        tmp_path,
        'kind = "image"\nreszie = "crop"\nfilter = "Bilinear"\nsize = [224]\nscale = "1"\nstd = [0]\nantialias = 1\n',
    )
    assert error.message == 'the preprocessing "preprocessing.toml" is not valid'
    assert [line.partition(" (")[0] for line in error.details] == [
        "size: got [224], expected an array of 2",
        'filter: got "Bilinear", expected one of "bilinear", "bicubic", "nearest"; did you mean "bilinear"?',
        "antialias: got 1, expected true or false",
        'scale: got "1", expected a number',
        "std[0]: got 0, expected greater than 0",
        'reszie: unknown key; did you mean "resize"?',
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "kind: is missing"),
        ('kidn = "image"', 'did you mean kind by "kidn"?'),
        ('kind = "picture"', 'kind: got "picture", expected one of "image", "audio", "text"'),
        ('kind = "Image"', 'did you mean "image"?'),
        ("kind = 3", "kind: got 3"),
        ('kind = "audio"', "sample_rate: is missing (Samples per second that the model requires)"),
        ('kind = "audio"\nsample_rate = true', "sample_rate: got True, expected a whole number"),
        ('kind = "image"\nscale = nan', "scale: got nan, expected a finite number"),
        ('kind = "image"\nbackground = [0, 0, 256]', "background[2]: got 256"),
        ('kind = "image"\nsize = [0, 5]', "size[0]: got 0, expected greater than 0"),
        ('kind = "image"\n[constants]\nwhen = 2020-01-01', 'constants."when": got'),
        ('kind = "image"\nkind = "image"', "Cannot overwrite"),
        ("a = " + "[" * 5000, "nested too deeply"),
    ],
)
def test_single_mistakes(tmp_path: Path, text: str, words: str) -> None:
    error = refuse(tmp_path, text)
    assert words in " ".join((error.message, *error.details))
    assert error.hint


def test_files_that_are_no_declaration(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_preprocessing(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not valid TOML"):
        read_preprocessing(tmp_path / "binary.toml")
    (tmp_path / "large.toml").write_text("#" * 1_000_001)
    with pytest.raises(UsageError, match="is not valid TOML"):
        read_preprocessing(tmp_path / "large.toml")


def test_a_tokenizer_stands_beside_its_declaration_or_below(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "tokenizer.json").write_text("{}")
    found = read(folder, 'kind = "text"\ntokenizer = "sub/tokenizer.json"')
    assert isinstance(found.declaration, TextDeclaration)
    assert found.tokenizer == (folder / "sub" / "tokenizer.json").resolve()
    error = refuse(folder, 'kind = "text"\ntokenizer = "sub/tokeniser.json"')
    assert "does not exist" in error.details[0]
    (folder / "tokenizer.json").write_text("{}")
    assert 'did you mean "tokenizer.json"?' in refuse(folder, 'kind = "text"\ntokenizer = "tokenizr.json"').details[0]


@pytest.mark.parametrize("name", ["../secret.json", "/etc/passwd", "link.json", "sub/../../secret.json"])
def test_a_tokenizer_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.json").write_text("{}")
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    error = refuse(folder, f'kind = "text"\ntokenizer = "{name}"')
    assert "is outside the folder" in error.details[0]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(string.printable),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(string.ascii_letters, min_size=1), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(["size", "mean", "std", "scale", "resize", "colour", "tokenizer", "length", "constants", "x"])


@settings(max_examples=150, deadline=None)
@given(kind=st.sampled_from(["image", "audio", "text"]), values=st.dictionaries(KEYS, VALUES, max_size=4))
def test_nothing_in_a_file_makes_the_check_fail_otherwise(
    tmp_path_factory: pytest.TempPathFactory, kind: str, values: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("declared")
    try:
        text = write_toml({"kind": kind, **values}, lambda _: "")
    except (TypeError, ValueError, AttributeError, KeyError):
        return  # not everything can be said in TOML
    try:
        details: tuple[str, ...] = (read(folder, text).declaration.kind,)
    except UsageError as error:
        details = error.details
    assert details
    assert all(line.isprintable() for line in details)


def test_the_starter_is_a_whole_declaration(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    for kind in ("image", "audio", "text"):
        assert read(tmp_path, "\n".join(starter_lines(kind))).declaration.kind == kind


def test_the_document_is_the_generated_one() -> None:
    assert (ROOT / "docs" / NAME).read_text(encoding="utf-8") == describe_preprocessing_keys()


CROPPED = (
    "take the largest centred part of aspect ratio 192:224, its sides times 0.875, and resize it to 192 x 224 "
    "(bicubic, antialiased, as Pillow does)"
)
IMAGE = ImageRecord(
    input="x\n",
    dtype="float32",
    size=(224, 192),
    shape=(1, 3, 224, 192),
    resize="crop",
    filter="bicubic",
    antialias=True,
    crop_fraction=0.875,
    background=(0, 0, 0),
    colour="BGR",
    layout="NCHW",
    scale=1 / 255,
    mean=(0.5, 0.5, 0.5),
    std=(1.0, 1.0, 1.0),
    constants={"ratio": [1.0]},
)
AUDIO = AudioRecord(
    input="wave",
    dtype="float32",
    rank=2,
    sample_rate=16000,
    mono="mean",
    resample="sinc",
    length=8000,
    normalise="peak",
    constants={},
)
TEXT = TextRecord(
    tokenizer="tokenizer.json",
    tokenizer_sha256="ab",
    ids="input_ids",
    attention_mask="mask",
    type_ids=None,
    max_length=128,
    padding="max_length",
    pad_id=0,
    constants={},
)


def test_a_record_is_asked_to_people_and_read_back() -> None:
    assert describe_preprocessing(IMAGE) == (
        "turn as the EXIF orientation says",
        "draw transparent parts over [0, 0, 0]",
        "convert to RGB, 8 bits a channel",
        CROPPED,
        "order the channels BGR",
        "value * 0.00392156863, minus [0.5, 0.5, 0.5], divided by [1, 1, 1] (for each channel)",
        "give it as float32[1, 3, 224, 192] (NCHW) to the input 'x\\n'",
        "input 'ratio' is always [1.0]",
    )
    assert describe_preprocessing(AUDIO) == (
        "take the mean of all channels, as numbers from -1 to 1",
        "bring to 16000 Hz: resample with a sinc under a Hann window (six zero crossings, cut off at 0.99 of Nyquist)",
        "cut to 8000 samples",
        "divide by the greatest magnitude",
        "fill with zeros at the end to 8000 samples",
        "give it as float32, 2 axes with time last, to the input 'wave'",
    )
    assert describe_preprocessing(TEXT) == (
        "tokenize with 'tokenizer.json' (SHA-256 ab), special tokens included",
        "cut to 128 tokens; fill with token 0 to 128 tokens",
        "give the ids to the input 'input_ids'",
        "give the attention mask to the input 'mask'",
    )
    for record in (IMAGE, AUDIO, TEXT):
        assert read_record(encode(record)) == record
