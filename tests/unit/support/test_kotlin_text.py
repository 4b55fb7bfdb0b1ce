"""Text of a model in Kotlin and XML: it stays text."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from bundler.support.text import kdoc_text, kotlin_string, xml_text

UNITS = {"\\n": "\n", '\\"': '"', "\\$": "$", "\\\\": "\\"}


def read_kotlin(literal: str) -> str:
    """What Kotlin reads in a string literal."""
    inner = literal[1:-1]
    codes = re.findall(r"\\u[0-9a-f]{4}|\\.|[^\\]", inner)
    assert "".join(codes) == inner
    text = "".join(chr(int(f"0x{code[2:]}", 0)) if code.startswith("\\u") else UNITS.get(code, code) for code in codes)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@given(st.text())
def test_a_string_is_read_as_it_was(text: str) -> None:
    literal = kotlin_string(text)
    assert literal.isascii()
    assert literal.isprintable()
    assert read_kotlin(literal) == text
    assert not re.search(r'(?<!\\)(?:\\\\)*["$]', literal[1:-1])


@given(st.text(alphabet=st.sampled_from("*/`a \n\\u\r\0")))
def test_a_comment_cannot_be_ended_or_nested(text: str) -> None:
    inside = kdoc_text(text)
    assert "*/" not in inside
    assert "/*" not in inside
    assert "`" not in inside
    assert "\n" not in inside


@given(st.text())
def test_xml_stays_whole(text: str) -> None:
    root = ET.fromstring(f'<a b="{xml_text(text)}">{xml_text(text)}</a>')  # noqa: S314 (made here)
    assert root.text == root.get("b") or not text
