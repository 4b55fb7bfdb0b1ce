"""Text of a model never leaves the place that it was put in."""

from __future__ import annotations

import ast
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.emitters import escapes

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
