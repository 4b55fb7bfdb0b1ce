"""Text of a model never leaves the place that it was put in."""

from __future__ import annotations

import ast
import html
import json
import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.support import text as escapes

HOSTILE = (
    "",
    '"""',
    "'''\\",
    "a\nb",
    "\r",
    "${x}",
    "*/",
    "</script>",
    "{{ 7*7 }}",
    "{% raw %}",
    "\u202egnp.exe",
    "\x00",
    "\ud800",
    "图像",
    "x" * 5000,
    "|`<b>`|",
    "\\",
    '\\"',
)
texts = st.one_of(st.sampled_from(HOSTILE), st.text(), st.text(alphabet=st.characters()))


@given(texts)
def test_a_literal_is_the_text_again(text: str) -> None:
    literal = escapes.python_literal(text)
    assert ast.literal_eval(literal) == text
    assert "\n" not in literal


@given(texts)
def test_a_docstring_cannot_be_ended_from_inside(text: str) -> None:
    source = f'def f():\n    """{escapes.python_docstring(text)}"""\n    return 1\n'
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert len(function.body) == 2


@given(texts)
def test_toml_reads_the_text_again(text: str) -> None:
    read = tomllib.loads(f"x = {escapes.toml_string(text)}\n")["x"]
    assert read == text.encode("utf-8", "replace").decode("utf-8") or any(
        0xD800 <= ord(char) <= 0xDFFF for char in text
    )


@given(texts)
def test_markdown_stays_on_its_line_and_holds_no_html(text: str) -> None:
    shown = escapes.markdown_text(text)
    assert shown.isprintable()
    assert not any(f"{mark}" in shown.replace(f"\\{mark}", "") for mark in "<>|`[]")


@given(texts)
def test_a_string_of_json_is_the_text_again(text: str) -> None:
    for literal in (escapes.json_string(text), escapes.javascript_string(text)):
        assert json.loads(literal) == text
        assert literal.isascii()
        assert literal.isprintable()
    assert not set("<>&") & set(escapes.javascript_string(text))


@given(texts)
def test_a_key_is_bare_or_a_literal(text: str) -> None:
    key = escapes.javascript_key(text)
    bare = re.fullmatch(r"[A-Za-z_$][\w$]*", text, re.ASCII) and text != "__proto__"
    assert key == text if bare else json.loads(key) == text


def test_the_prototype_is_never_a_bare_key() -> None:
    assert escapes.javascript_key("__proto__") == '"__proto__"'
    assert escapes.javascript_key("a\n") == '"a\\n"'


@given(texts)
def test_a_comment_cannot_be_ended_and_starts_no_tag(text: str) -> None:
    shown = escapes.javascript_comment(text)
    assert shown.isprintable()
    assert not any(mark in shown for mark in ("*/", "@", "`"))


@given(texts)
def test_html_is_text(text: str) -> None:
    shown = escapes.html_text(text)
    assert not set("<>\"'") & set(shown)
    assert html.unescape(shown) == escapes.visible(text)


@given(st.lists(texts, max_size=12), st.integers(0, 40))
def test_a_tuple_of_names_is_the_names_again(names: list[str], indent: int) -> None:
    assert ast.literal_eval(escapes.python_names(names, indent).strip()) == tuple(names)


@pytest.mark.parametrize("text", ["", "short", "x" * 80])
def test_short_names_are_shown_whole(text: str) -> None:
    assert escapes.shorten(text) == text


def test_a_long_name_keeps_its_ends() -> None:
    shown = escapes.shorten("begin" + "x" * 500 + "end")
    assert len(shown) <= escapes.LONGEST
    assert shown.startswith("begin")
    assert shown.endswith("end")
