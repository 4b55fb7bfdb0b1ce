"""Lines of text and the inputs that take them. Tokenizing itself is tested with the tokenizer's own environment."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.model.errors import UsageError
from bundler.model.preprocessing import TextDeclaration
from bundler.model.signature import Port, Signature, ValueType
from bundler.onnxkit.signatures import model_signature
from bundler.stages.prepare_data.dataset import UnreadableError
from bundler.stages.prepare_data.text_declaration import resolve_text
from bundler.stages.prepare_data.text_lines import MAX_LINE_BYTES, decode_line, iterate_lines
from tests.support import models


class Tool:
    """What a tokenizer says of itself."""

    def __init__(self, tokens: dict[str, int], *, padding: Any = None, truncation: Any = None) -> None:
        self.tokens, self.padding, self.truncation = tokens, padding, truncation

    def token_to_id(self, token: str) -> int | None:
        return self.tokens.get(token)


BERT = Tool({"[PAD]": 0, "[UNK]": 1})


def signature(**shapes: list[Any]) -> Signature:
    inputs = tuple(
        Port(name=name, type=ValueType(element_type="int64", shape=tuple(shape))) for name, shape in shapes.items()
    )
    return Signature(inputs=inputs, outputs=())


def lines(tmp_path: Path, content: bytes) -> list[tuple[int, bytes]]:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    return list(iterate_lines(path, "a.txt"))


def test_blank_lines_and_marks_of_other_systems_are_no_text(tmp_path: Path) -> None:
    found = lines(tmp_path, b"\xef\xbb\xbfone\r\n\r\n  \t\ntwo  \n\nthree")
    assert [number for number, _ in found] == [1, 4, 6]
    assert [decode_line(text, key=None) for _, text in found] == ["one", "two  ", "three"]


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a\.txt:2 has more than 1,000,000 bytes in a line"):
        lines(tmp_path, b"short\n" + b"x" * (MAX_LINE_BYTES + 1))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"caf\xe9", "it is not UTF-8 (byte 4 of the line)"),
        (b"{", "it is not JSON"),
        (b"[1]", "it is not a JSON object"),
        (b'{"txet": "a"}', "it has no text under 'text' (did you mean 'txet'?); set the key with json_key"),
        (b'{"text": 3}', "it has no text under 'text'"),
        (b'{"text": " "}', "its text under 'text' is empty"),
        (b'{"text": "\\ud800"}', "half of a surrogate pair"),
        (b"[" * 100_000, "it is not JSON"),
    ],
)
def test_lines_that_hold_no_text(line: bytes, words: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        decode_line(line, key="text")
    assert words in str(caught.value)


@given(text=st.text(min_size=1).filter(lambda text: text.strip()))
def test_every_text_survives_its_json_line(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert decode_line(json.dumps({"text": text}).encode(), key="text") == text


@given(data=st.binary(max_size=200))
def test_no_bytes_make_the_reader_fail_otherwise(data: bytes) -> None:
    with contextlib.suppress(UnreadableError):
        assert decode_line(data, key="text").strip()


def test_the_inputs_are_found_by_their_names() -> None:
    found = model_signature(models.token_encoder(vocabulary=5))
    record = resolve_text(TextDeclaration(), found, BERT, "00")
    assert (record.ids, record.attention_mask, record.type_ids) == ("input_ids", "attention_mask", None)
    assert (record.max_length, record.padding, record.pad_id) == (512, "none", None)


def test_a_fixed_length_is_filled_up() -> None:
    shapes = {"input_ids": [1, 128], "token_type_ids": [1, 128], "attention_mask": [1, 128]}
    record = resolve_text(TextDeclaration(), signature(**shapes), BERT, "00")
    assert (record.type_ids, record.max_length, record.padding, record.pad_id) == (
        "token_type_ids",
        128,
        "max_length",
        0,
    )


def test_the_tokenizer_says_what_the_declaration_leaves_out() -> None:
    tool = Tool({}, padding={"pad_id": 7, "direction": "left"}, truncation={"max_length": 77})
    record = resolve_text(TextDeclaration(padding="longest"), signature(ids=["n", "t"]), tool, "00")
    assert (record.max_length, record.pad_id) == (77, 7)


@pytest.mark.parametrize(
    ("declaration", "shapes", "words"),
    [
        (TextDeclaration(ids="inptu_ids"), {"input_ids": [1, "t"]}, "did you mean 'input_ids'?"),
        (TextDeclaration(max_length=64), {"input_ids": [1, 128]}, "max_length is 64 and padding max_length"),
        (TextDeclaration(padding="none"), {"input_ids": [1, 128]}, "padding none"),
        (TextDeclaration(pad_token="<x>", padding="max_length"), {"input_ids": [1, "t"]}, "no token '<x>'"),  # noqa: S106 - a tokenizer's
        (TextDeclaration(), {"a": [1, "t"], "b": [1, "t"]}, "no input that can be token ids"),
        (TextDeclaration(), {"input_ids": [1, "t"], "position": [1, "t"]}, "no value is declared for 'position'"),
        (TextDeclaration(), {"input_ids": [2, "t"]}, "a text is one row of tokens"),
        (TextDeclaration(), {}, "no input that can be token ids"),
    ],
)
def test_incompatible_declarations_are_reported(declaration: TextDeclaration, shapes: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_text(declaration, signature(**shapes), BERT, "00")
    assert words in caught.value.message


def test_a_tokenizer_without_padding_asks_for_its_token() -> None:
    with pytest.raises(UsageError) as caught:
        resolve_text(TextDeclaration(), signature(input_ids=[1, 8]), Tool({}), "00")
    assert "pad_token" in str(caught.value.hint)
