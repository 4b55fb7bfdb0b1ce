"""A model is a stranger: nothing that it is called ever becomes code, markup or a broken page."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser

from tests.support.hostile_bundles import BREAKOUTS, emit_hostile
from tests.support.javascript import find_tool, run
from tests.support.web_host import host
from tests.support.web_pages import visitor

INSPECT = """() => ({
  broken: globalThis.broken ?? null,
  polluted: Object.keys(Object.prototype).length + Object.keys(Array.prototype).length,
  made: [...document.querySelectorAll(
    "body script, img, iframe, object, embed, body link, style, base, form, body meta, frame, template, math, portal",
  )].map((one) => one.outerHTML.slice(0, 200)),
  handlers: [...document.querySelectorAll("*")].flatMap((one) =>
    one.getAttributeNames().filter((name) => name.startsWith("on")).map((name) => `${one.tagName} ${name}`)),
  links: [...document.querySelectorAll("a")].map((one) => one.getAttribute("href")),
  shown: [...document.querySelectorAll("#playground h4")].map((one) => one.textContent),
  title: document.querySelector("#model").textContent,
  test: document.querySelector("#test").textContent,
  strings: document.querySelector("#outputs").textContent,
})"""

LONGEST = 64
"""UTF-16 units of a name that the page shows whole."""

LINKS = {"#playground", "#figures", "../README.md", "../bundle.json", "../sbom.cdx.json", "../NOTICES"}

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=30)
PIECES = st.sampled_from([*BREAKOUTS, '"', "'", "`", "<", ">", "&", "\\", "${", "*/", "//", "\n", "\u2028", "</"])
NAMES = st.lists(
    st.one_of(st.sampled_from(BREAKOUTS), TEXT, st.lists(PIECES, min_size=2, max_size=4).map("".join)),
    min_size=3,
    max_size=6,
    unique=True,
)


@pytest.fixture(scope="session")
def cache(wasm_bundle: Path, bundler_cache: Path) -> Path:
    """The session's cache, which holds the runtime once a bundle was built."""
    assert wasm_bundle.is_dir()
    return bundler_cache


@pytest.mark.parametrize("names", [BREAKOUTS[:13], BREAKOUTS[13:]], ids=["code", "names"])
def test_names_that_want_out_stay_in(browser: Browser, cache: Path, tmp_path: Path, names: tuple[str, ...]) -> None:
    check_page(browser, cache, tmp_path, list(names))


@settings(
    max_examples=6,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(names=NAMES)
def test_any_names_stay_in(browser: Browser, cache: Path, names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_page(browser, cache, Path(folder), names)


def check_page(browser: Browser, cache: Path, folder: Path, names: list[str]) -> None:
    """The demo page of a bundle with such names: all works, all is shown as text, nothing complains."""
    with host(emit_hostile(names, folder, cache)) as site, visitor(browser) as found:
        found.visit(site, "/demo/index.html")
        found.page.wait_for_selector("#test[data-state=passed], #test[data-state=failed], #failure > *", timeout=60_000)
        found.page.get_by_role("button", name="Run", exact=True).click()
        found.page.wait_for_selector("#outputs canvas, #outputs table, #outputs pre, #outputs .view, #outputs h4")
        page = found.page.evaluate(INSPECT)
    assert found.complaints == []
    assert (page["broken"], page["polluted"], page["made"], page["handlers"]) == (None, 0, [], [])
    assert set(page["links"]) <= LINKS
    assert "Passed" in page["test"], page["test"]
    for at, name in enumerate(names):
        if name.isprintable() and len(name.encode("utf-16-le")) <= 2 * LONGEST:
            assert name in page["shown"]
            # The first output is of strings: those that were recorded.
            assert at > 1 or name in page["strings"]


def test_declarations_of_such_a_model_compile_and_its_files_parse(cache: Path, tmp_path: Path) -> None:
    compiler = find_tool("typescript/bin/tsc")
    bundle = emit_hostile(BREAKOUTS, tmp_path, cache)
    run((*compiler, "--noEmit", "--strict", "--target", "es2023", "--lib", "es2023,dom", "index.d.ts"), bundle)
    assert json.loads((bundle / "package.json").read_text("utf-8"))["type"] == "module"
