"""Text that comes from a model or a stranger's file, made safe for the place that it is put in, and figures as text.

Every template filter stands here.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence

_KILO = 1000.0
_BYTES = ((999.95e6, "GB", 1e9, 2), (999.5e3, "MB", 1e6, 1), (1e3, "kB", 1e3, 0))
LONGEST = 80
"""Characters of a name that a person is shown; the full name stands in `runtime.json`."""


def shorten(text: str) -> str:
    """`text`, with its middle left out when it is too long to read."""
    half = (LONGEST - 1) // 2
    return text if len(text) <= LONGEST else f"{text[:half]}…{text[-half:]}"


def visible(text: str, keep: str = "") -> str:
    """`text` with all that does not print (line ends, marks of direction, lone surrogates) as Python's escape; the
    characters in `keep` stay.
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
    """A tuple of string literals, on one line where it fits, else one a line; `indent` is that of the line it is on."""
    return python_tuple([python_literal(name) for name in names], indent)


def python_tuple(literals: Sequence[str], indent: int) -> str:
    """The same of expressions."""
    single = f"({', '.join(literals)}{',' if len(literals) == 1 else ''})"
    if len(single) + indent < LONGEST:
        return single
    space = " " * (indent + 4)
    return "(\n" + "".join(f"{space}{literal},\n" for literal in literals) + " " * indent + ")"


def toml_string(text: str) -> str:
    """A basic TOML string. JSON's escapes are TOML's, too, but for those of a character beyond 16 bits. TOML takes no
    lone surrogates: they become the replacement character.
    """
    clean = "".join("�" if 0xD800 <= ord(char) <= 0xDFFF else char for char in text)  # noqa: PLR2004 (surrogates)
    plain = "".join(_escape_for_toml(char) for char in json.dumps(clean, ensure_ascii=False))
    return plain.replace("##", "#\\u0023")  # with a bracket behind it, logs of CI services obey that


def _escape_for_toml(char: str) -> str:
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"  # noqa: PLR2004 - four digits


def json_string(text: str) -> str:
    """A string of JSON, in printable ASCII alone."""
    return json.dumps(text, ensure_ascii=True).replace("\x7f", "\\u007f")


def javascript_string(text: str) -> str:
    """A string literal in double quotes that JavaScript and TypeScript read as `text`, in a script inside HTML, too:
    there is nothing in it that a page could take for markup.
    """
    return re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", json_string(text))


def javascript_key(text: str) -> str:
    """A property's name in an object or a type: bare where it may be, else as a literal."""
    bare = re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]*", text) and text != "__proto__"
    return text if bare else javascript_string(text)


def javascript_comment(text: str) -> str:
    """`text` inside a comment: it cannot end the comment, starts no tag of JSDoc and closes no quotation in it."""
    return visible(text).replace("*/", "*\\/").replace("`", "'").replace("@", "&#64;")


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


def format_bytes(size: int) -> str:
    """`6.6 MB`, `640 kB`, `12 B`: decimal units, as budgets count them. The next unit is taken before a number has four
    digits.
    """
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
