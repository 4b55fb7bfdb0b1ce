"""Functions for raw inputs are rendered, and their sources written, where a model declares a preprocessing alone."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from bundler.emitters.contract import EmitRequest
from bundler.emitters.jvm.context import make_context
from bundler.emitters.jvm.preparation import ANDROID, JVM, list_parts
from bundler.emitters.rendering import make_environment
from bundler.model.codec import encode
from bundler.model.preprocessing import AudioRecord, TextRecord
from bundler.model.signature import Port, Signature, ValueType
from bundler.model.state import StateLink
from bundler.support.data import data_root
from tests.support import models
from tests.support.bundles import make_request, with_component
from tests.support.prepared_vectors import make_record

FLOATS = ValueType(element_type="float32", shape=("n", 3, 8, 8))
NUMBER = ValueType(element_type="int64", shape=(1,))
PICTURE = Signature(
    inputs=(
        Port(name="the image", type=FLOATS),
        Port(name="left out", type=NUMBER, optional=True),
        Port(name='si"ze', type=NUMBER),
    ),
    outputs=(Port(name="y", type=FLOATS),),
)


@pytest.fixture(scope="module")
def request_(tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    return make_request(models.cnn(), tmp_path_factory.mktemp("prepared"))


def declare(request: EmitRequest, **changes: Any) -> EmitRequest:
    import random  # noqa: PLC0415

    record = make_record(random.Random(0), input="the image", dtype="float32", constants={'si"ze': 8})  # noqa: S311
    return with_component(request, **{"signature": PICTURE, "preprocessing": encode(record), **changes})


def render(request: EmitRequest) -> str:
    context = make_context(request, "0" * 64, JVM)
    fields = {field.name: getattr(context, field.name) for field in dataclasses.fields(context)}
    template = make_environment(data_root("templates") / "jvm").get_template("facade.kt.j2")
    return template.render({**fields, "host_classes": ()})


def test_a_picture_fills_its_input_and_the_constants(request_: EmitRequest) -> None:
    text = render(declare(request_))
    assert "theImage = preparation.allocate()," in text
    assert 'siZe = preparation.constants.allocate("si\\"ze"),' in text
    assert 'preparation.constants.fill("si\\"ze", inputs.siZe)' in text
    assert "leftOut = " not in text
    assert text.count("public fun prepareImage(") == 3
    assert "import bundle.tiny.loader.ImagePreparation" in text


def test_a_recording_of_any_length_is_measured_first(request_: EmitRequest) -> None:
    record = AudioRecord(
        input="the image",
        dtype="float32",
        rank=2,
        sample_rate=16000,
        mono="mean",
        resample="sinc",
        length=None,
        normalise="none",
        constants={'si"ze': 8},
    )
    text = render(declare(request_, preprocessing=encode(record)))
    assert "theImage = preparation.allocate(raw)," in text
    assert "ImagePreparation" not in text
    assert text.count("public fun prepareAudio(") == 4


def test_a_text_fills_what_takes_its_tokens(request_: EmitRequest) -> None:
    record = TextRecord(
        tokenizer="tokenizer.json",
        tokenizer_sha256="0" * 64,
        ids="the image",
        attention_mask='si"ze',
        type_ids=None,
        max_length=8,
        padding="none",
        pad_id=None,
        constants={},
    )
    text = render(declare(request_, preprocessing=encode(record)))
    assert 'theImage = preparation.allocate("the image", raw),' in text
    assert 'preparation.fill("si\\"ze", raw, inputs.siZe)' in text
    assert "public fun readTokenizer(file: ByteArray): Tokenizer" in text


def test_sources_are_for_those_that_need_them(request_: EmitRequest) -> None:
    assert list_parts(declare(request_).config, JVM) == ("preparation", "images", "jvm_images")
    assert list_parts(declare(request_).config, ANDROID) == ("preparation", "images", "android_images")
    assert list_parts(request_.config, JVM) == ()
    assert "prepare" not in render(request_)


def test_a_stream_is_fed_by_hand(request_: EmitRequest) -> None:
    link = StateLink(input="the image", output="y")
    stateful = declare(request_, state=(link,))
    assert list_parts(stateful.config, JVM) == ()
    assert "prepareImage" not in render(stateful)


@pytest.mark.parametrize("family", [JVM, ANDROID])
def test_every_part_is_a_folder_of_sources(family: dict[str, Any]) -> None:
    for added in family.values():
        for part in added.parts:
            assert list((Path(data_root("templates")) / "kotlin" / part).glob("*.kt"))
