"""Text that comes from a model, made safe for the place that it is put in. Every template filter stands here."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence

LONGEST = 80
"""Characters of a name that a person is shown; the full name stands in `runtime.json`."""


def shorten(text: str) -> str:
    """`text`, with its middle left out when it is too long to read."""
    half = (LONGEST - 1) // 2
    return text if len(text) <= LONGEST else f"{text[:half]}…{text[-half:]}"


def visible(text: str) -> str:
    """`text` with everything that does not print (line ends, marks of direction, lone surrogates) as an escape."""
    return "".join(char if char.isprintable() else _escape(char) for char in text)


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
    """A basic TOML string. TOML takes no lone surrogates: they become the replacement character."""
    clean = "".join("�" if 0xD800 <= ord(char) <= 0xDFFF else char for char in text)  # noqa: PLR2004 (surrogates)
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")


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
    code = ord(char)
    if code <= 0xFF:  # noqa: PLR2004 (what two hexadecimal digits hold)
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 (four digits)
