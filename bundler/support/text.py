"""Escapes untrusted text (of a model or a file) for its context, and formats figures. All template filters are here."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence

_KILO = 1000.0
_BYTES = ((999.95e6, "GB", 1e9, 2), (999.5e3, "MB", 1e6, 1), (1e3, "kB", 1e3, 0))
LONGEST = 80
"""Characters of a name in texts for people; `runtime.json` has the full name."""


def shorten(text: str) -> str:
    """`text`, without its middle if it is longer than `LONGEST`."""
    half = (LONGEST - 1) // 2
    return text if len(text) <= LONGEST else f"{text[:half]}…{text[-half:]}"


def visible(text: str, keep: str = "") -> str:
    """`text` with non-printing characters (line ends, marks of direction, lone surrogates) as Python escapes, except
    those in `keep`.
    """
    return "".join(char if char.isprintable() or char in keep else _escape(char) for char in text)


def python_literal(text: str) -> str:
    """A Python string literal in double quotes that evaluates to `text`."""
    plain = visible(text.replace("\\", "\\\\")).replace('"', '\\"')
    return f'"{plain}"'


def python_docstring(text: str) -> str:
    """`text` inside a triple-quoted string: it cannot end the string, and reads as it is."""
    return visible(text.replace("\\", "\\\\")).replace('"', '\\"') if _must_escape(text) else visible(text)


def python_names(names: Sequence[str], indent: int) -> str:
    """A tuple of string literals, on one line if it fits, else one a line; `indent` is that of its line."""
    return python_tuple([python_literal(name) for name in names], indent)


def python_tuple(literals: Sequence[str], indent: int) -> str:
    """The same of expressions."""
    single = f"({', '.join(literals)}{',' if len(literals) == 1 else ''})"
    if len(single) + indent < LONGEST:
        return single
    space = " " * (indent + 4)
    return "(\n" + "".join(f"{space}{literal},\n" for literal in literals) + " " * indent + ")"


def toml_string(text: str) -> str:
    """A basic TOML string: JSON's escapes, except for characters beyond 16 bits. Lone surrogates, which TOML does not
    allow, become the replacement character.
    """
    clean = "".join("�" if 0xD800 <= ord(char) <= 0xDFFF else char for char in text)  # noqa: PLR2004 (surrogates)
    plain = "".join(_escape_for_toml(char) for char in json.dumps(clean, ensure_ascii=False))
    return plain.replace("##", "#\\u0023")  # CI services execute `##[` in logs


def _escape_for_toml(char: str) -> str:
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"  # noqa: PLR2004 - four digits


def json_string(text: str) -> str:
    """A string of JSON, in printable ASCII alone."""
    return json.dumps(text, ensure_ascii=True).replace("\x7f", "\\u007f")


def javascript_string(text: str) -> str:
    """A string literal in double quotes for JavaScript and TypeScript, without characters that are markup in HTML."""
    return re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", json_string(text))


def javascript_key(text: str) -> str:
    """A property's name in an object or a type: bare if possible, else as a literal."""
    bare = re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]*", text) and text != "__proto__"
    return text if bare else javascript_string(text)


def javascript_comment(text: str) -> str:
    """`text` inside a comment: it cannot end the comment, starts no tag of JSDoc and closes no quotation in it."""
    return visible(text).replace("*/", "*\\/").replace("`", "'").replace("@", "&#64;")


def kotlin_string(text: str) -> str:
    """A string literal in double quotes for Kotlin, in printable ASCII alone; `$` begins no template in it."""
    units = text.encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return f'"{"".join(map(_escape_for_kotlin, codes))}"'


def _escape_for_kotlin(code: int) -> str:
    char = chr(code)
    if char in '"\\$':
        return f"\\{char}"
    return char if char.isascii() and char.isprintable() else f"\\u{code:04x}"


def kdoc_text(text: str) -> str:
    """`text` inside a comment of Kotlin: it cannot end the comment, nest another one, or close a span of code."""
    return re.sub(r"/(?=\*)", "/ ", re.sub(r"\*(?=/)", "* ", visible(text).replace("`", "'")))


def xml_text(text: str) -> str:
    """`text` in an element or a quoted attribute of XML, which has no place for control characters even as entities."""
    return html.escape(visible(text), quote=True)


def html_text(text: str) -> str:
    """`text` in an element or a quoted attribute of HTML."""
    return html.escape(visible(text), quote=True)


def markdown_text(text: str) -> str:
    """`text` in a paragraph or a table cell of Markdown: no markup, no HTML, no line ends."""
    return re.sub(r"([\\`*_{}\[\]<>#|~$&])", r"\\\1", visible(text))


def _must_escape(text: str) -> bool:
    return '"' in text or "\\" in text


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def describe_fault(error: Exception) -> str:
    """The text of a `ValueError`, which we raise with a sentence; other errors have their type before it."""
    return str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"


def count_things(number: int, noun: str) -> str:
    """`1 sample`, `3 samples`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def format_bytes(size: int) -> str:
    """`6.6 MB`, `640 kB`, `12 B`: decimal units, with at most three digits before the point."""
    for least, unit, scale, places in _BYTES:
        if size >= least:
            return f"{size / scale:.{places}f} {unit}"
    return f"{size} B"


def format_milliseconds(value: float) -> str:
    """`0.42 ms`, `156 ms`, `2.31 s`: three digits."""
    if value >= 999.5:  # noqa: PLR2004 - would be shown as 1000 ms
        return f"{_three_digits(value / _KILO)} s"
    return f"{_three_digits(value)} ms"


def _three_digits(value: float) -> str:
    if value >= 99.95:  # noqa: PLR2004 - three digits before the point
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"  # noqa: PLR2004 - as above
