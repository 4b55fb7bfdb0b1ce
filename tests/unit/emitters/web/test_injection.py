"""No text of a model leaves the place that it was put in: every file is read by a real parser of its language."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bundler.emitters.contract import EmitRequest
from bundler.model.codec import encode
from bundler.model.runtime import ProviderEntry
from bundler.model.signature import Port, Signature, ValueType
from bundler.support.data import data_root
from tests.support.bundles import sole_component
from tests.support.module_host import ModuleHost, module_host
from tests.unit.emitters.web.rendered import render_all, with_config
from tests.unit.emitters.web.test_generated_code import compile_
from tests.unit.support.test_text import HOSTILE

BREAKING = (
    *HOSTILE,
    *("__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "then", "default", "0", "-1"),
    *(
        "`${globalThis.x = 1}`",
        '"; globalThis.x = 1; "',
        "'); globalThis.x = 1; ('",
        "\\",
        '\\"',
        "\\u0022",
        "//",
        "/*",
    ),
    *("*/ globalThis.x = 1; /*", "*/}; declare const x: any; /*", "@ts-nocheck", "@deprecated", "{@link x}"),
    *("</script><script>alert(1)</script>", "<!--<script>", "-->", "]]>", "</title>", "<img src=x onerror=alert(1)>"),
    *('" onload="alert(1)', "' autofocus onfocus='alert(1)", "&lt;b&gt;", "&quot;", "javascript:alert(1)", "</style>"),
    *(
        "# heading",
        "- item",
        "```\n",
        "```js\nalert(1)\n```",
        "| a | b |\n|---|---|",
        "[x](javascript:alert(1))",
        "![x](y)",
    ),
    *(
        "\u2028",
        "\u2029",
        "\u202egnp.exe\u202c",
        "\u200f",
        "\ufeff",
        "\x1b[31m",
        "\x7f",
        "\x85",
        "a\r\nb",
        "x" * 10_000,
    ),
    *("{{ 7 * 7 }}", "{% raw %}", "{# x #}", "%(x)s", "}}", "<%= x %>"),
)
ALL = tuple(dict.fromkeys(filter(None, BREAKING)))
breaking = st.integers(0, len(BREAKING) - 1).map(BREAKING.__getitem__)
texts = st.one_of(breaking, st.text(max_size=40), st.tuples(breaking, breaking).map("".join))
names = st.lists(texts.filter(bool), max_size=4, unique=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Names:
    """All texts that a model, or whoever made it, decides."""

    model: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    symbol: str
    option: str
    unstable: str


models = st.builds(
    Names,
    model=texts,
    inputs=names.map(tuple),
    outputs=names.map(tuple),
    symbol=texts,
    option=texts,
    unstable=texts,
)
many = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def rename(request: EmitRequest, given_: Names) -> EmitRequest:
    def ports(listed: tuple[str, ...]) -> tuple[Port, ...]:
        return tuple(
            Port(name=name, type=ValueType(element_type="float32", shape=(given_.symbol, 2))) for name in listed
        )

    variants = tuple(
        dataclasses.replace(
            variant,
            session_config={given_.option: given_.option},
            session={**variant.session, given_.option: given_.option},
            providers=(ProviderEntry(name="wasm", options={given_.option: given_.option}),),
        )
        for variant in sole_component(request).variants
    )
    signature = Signature(inputs=ports(given_.inputs), outputs=ports(given_.outputs))
    changes: dict[str, Any] = {
        "name": given_.model,
        "model": given_.model,
        "signature": signature,
        "variants": variants,
    }
    return with_config(request, **changes, unstable_outputs=(given_.unstable,))


def plain(given_: Names) -> Names:
    """As many names, none of which can do harm."""
    return Names(
        model="model",
        inputs=tuple(f"in{number}" for number, _ in enumerate(given_.inputs)),
        outputs=tuple(f"out{number}" for number, _ in enumerate(given_.outputs)),
        symbol="batch",
        option="option",
        unstable="out0",
    )


@pytest.fixture(scope="module")
def host(node: str) -> Iterator[ModuleHost]:
    with module_host(node) as opened:
        yield opened


@many
@given(models)
def test_data_stay_data_in_javascript(request_: EmitRequest, host: ModuleHost, given_: Names) -> None:
    request = rename(request_, given_)
    exports = host.evaluate(render_all(request)["runtime.js"])
    assert exports["config"] == json.loads(json.dumps(encode(request.config)))
    assert set(exports) == {"config", "assets", "builds", "identity", "imports", "kept"}


@many
@given(models)
def test_code_is_the_same_for_every_model(request_: EmitRequest, given_: Names) -> None:
    hostile, harmless = (render_all(rename(request_, one)) for one in (given_, plain(given_)))
    for file in ("index.js", "node.js"):
        assert hostile[file] == harmless[file]


@many
@given(models)
def test_a_script_inside_html_cannot_be_ended(request_: EmitRequest, given_: Names) -> None:
    text = render_all(rename(request_, given_))["runtime.js"]
    assert "</" not in text
    assert "<!--" not in text
    assert "]]>" not in text
    assert text.isascii()


@many
@given(models)
def test_json_has_the_same_keys(request_: EmitRequest, host: ModuleHost, given_: Names) -> None:
    text = render_all(rename(request_, given_))["package.json"]
    harmless = json.loads(render_all(rename(request_, plain(given_)))["package.json"])
    data = json.loads(text)
    assert {**data, "name": "", "description": ""} == {**harmless, "name": "", "description": ""}
    assert data["description"].isprintable()
    assert host.evaluate(f"export const data = JSON.parse({json.dumps(text)});")["data"] == data


class Outline(HTMLParser):
    """Elements with their attributes, and the number of texts, of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[Any] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(tag)

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", data))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@many
@given(models)
def test_a_page_has_the_same_elements(request_: EmitRequest, given_: Names) -> None:
    hostile, harmless = (
        Outline(render_all(rename(request_, one))["demo/index.html"]) for one in (given_, plain(given_))
    )
    assert hostile.found == harmless.found
    assert len(hostile.texts) == len(harmless.texts)
    assert all(text.replace("\n", "").isprintable() for text in hostile.texts)


@many
@given(models)
def test_markdown_has_the_same_blocks(request_: EmitRequest, given_: Names) -> None:
    hostile, harmless = (
        outline_markdown(render_all(rename(request_, one))["README.md"]) for one in (given_, plain(given_))
    )
    assert hostile == harmless


def outline_markdown(text: str) -> list[str]:
    found = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        children = [child.type for child in token.children or () if child.type not in {"text", "text_special"}]
        found.append(f"{token.type} {token.info} {children}")
    assert not any("html_" in line for line in found)
    return found


def test_types_are_the_names(request_: EmitRequest, tmp_path: Path, tsc: str) -> None:
    """One run of the compiler reads the declarations of many models."""
    collected: list[Names] = []

    @settings(max_examples=60, deadline=None, database=None)
    @given(models.filter(lambda given_: all(text.isprintable() or "\ud800" not in text for text in given_.inputs)))
    def collect(given_: Names) -> None:
        collected.append(given_)

    collect()
    collected.append(dataclasses.replace(plain(collected[0]), inputs=ALL, outputs=ALL))
    (tmp_path / "loader").symlink_to(data_root("templates") / "web" / "package" / "loader")
    lines = []
    for number, given_ in enumerate(collected):
        (tmp_path / f"m{number}.d.ts").write_text(render_all(rename(request_, given_))["index.d.ts"], "utf-8")
        lines += [
            f'import type * as m{number} from "./m{number}.js";',
            f"export const i{number}: Same<keyof m{number}.ModelInputs, {union(given_.inputs)}> = true;",
            f"export const o{number}: Same<keyof m{number}.ModelOutputs, {union(given_.outputs)}> = true;",
        ]
    same = "type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;"
    (tmp_path / "use.ts").write_text("\n".join([same, *lines]))
    compile_(tsc, tmp_path, "--moduleResolution", "bundler", "--module", "esnext")


def union(listed: tuple[str, ...]) -> str:
    return " | ".join(json.dumps(name) for name in listed) or "never"
