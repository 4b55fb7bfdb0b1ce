"""The documentation: every link resolves, and every command of bundler that it names exists."""

from __future__ import annotations

import functools
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from bundler.cli.application import app
from docs.site.__main__ import ROOT, build_site, link_pages, list_pages

PAGES = [page for page in list_pages() if page.suffix == ".md" and page.parts[0] != "benchmarks"]
GIVEN_BY_ALL = {"--help", "-h", "--version", "--install-completion", "--show-completion"}
OF_OTHERS = {"--component", "--hard-dereference", "--install-links", "--link-mode", "--no-index"}
"""Options of npm, pip, uv and tar that pages speak of."""

FILES = {"json", "toml", "py", "md"}
"""Ends of names of files that look like keys (`runtime.json`)."""

EXTERNAL = {"https://semver.org"}


def test_the_site_is_built_and_every_page_is_listed(tmp_path: Path) -> None:
    link_pages(tmp_path / "pages")
    assert build_site(tmp_path / "pages", tmp_path / "site") == 0
    assert (tmp_path / "site" / "index.html").is_file()


def test_every_kind_of_broken_link_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    links = (
        "[a](none.md)",
        "[a](options.md#none)",
        "![a](images/none.png)",
        "[a](../bundler/support/data.py)",
        "[a](#none)",
    )
    link_pages(tmp_path / "pages")
    page = tmp_path / "pages" / "docs" / "safety.md"
    page.unlink()
    page.write_text("# Safety and the cache\n\n" + "\n".join(links), encoding="utf-8")
    assert build_site(tmp_path / "pages", tmp_path / "site") != 0
    assert capfd.readouterr().err.count("Doc file 'docs/safety.md' contains a link") == len(links)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_leads_to_the_pages_of_this_project_alone(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((https?://[^)]+)\)", text)) <= EXTERNAL


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_command_that_a_page_names_exists(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [fault for command in _list_commands(text) for fault in _find_faults(command)] == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_option_that_a_page_names_is_one_of_some_command(page: Path) -> None:
    named = set(re.findall(r"`(--[a-z][a-z-]*)[^`]*`", _leave_blocks_out(page)))
    assert named - _list_options(typer.main.get_command(app)) - GIVEN_BY_ALL - OF_OTHERS == set()


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_variable_that_a_page_names_is_read_somewhere(page: Path) -> None:
    named = set(re.findall(r"\bBUNDLER_[A-Z_]+[A-Z]\b", (ROOT / page).read_text(encoding="utf-8")))
    assert named - _list_variables() == set()


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in ("options.md", "targets.md")], ids=str)
def test_every_key_of_a_profile_or_project_that_a_page_names_exists(page: Path) -> None:
    spans = " ".join(re.findall(r"`([^`\n]+)`", _leave_blocks_out(page)))
    dotted = (found.split(".") for found in re.findall(r"(?<![\w./-])([a-z_]+(?:\.[A-Za-z_]+)+)(?![\w./(])", spans))
    sections, keys = _list_keys()
    assert [key for key in dotted if key[0] in sections and key[-1] not in keys | FILES] == []


@functools.cache
def _list_keys() -> tuple[set[str], set[str]]:
    """The sections and the keys of profiles and project files, as the generated pages have them."""
    text = "".join((ROOT / "docs" / name).read_text("utf-8") for name in ("options.md", "project.md"))
    sections = {name.partition(".")[0] for name in re.findall(r"^## `([a-z_.]+)`", text, re.MULTILINE)}
    return sections, set(re.findall(r"^\| `([A-Za-z_0-9]+)` \|", text, re.MULTILINE))


def _leave_blocks_out(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


@functools.cache
def _list_variables() -> set[str]:
    sources = [path for room in ("bundler", "templates") for path in (ROOT / room).rglob("*.py")]
    return {name for path in sources for name in re.findall(r"\bBUNDLER_[A-Z_]+[A-Z]\b", path.read_text("utf-8"))}


def _list_options(command: Any) -> set[str]:
    """Of a command and of all below it."""
    own = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    if not hasattr(command, "get_command"):
        return own
    context = typer.Context(command)
    names = command.list_commands(context)
    below = (_list_options(command.resolve_command(context, [name])[1]) for name in names)
    return own.union(*below)


def test_the_architecture_page_has_every_room_in_the_order_of_the_import_contract() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers")
    names = [name.strip(" ()") for layer in layers for name in re.split(r"[|:]", layer)]
    rooms = [name for name in names if (ROOT / "bundler" / name / "__init__.py").exists()]
    assert re.findall(r"^\| `bundler/([a-z]+)/` \|", page, re.MULTILINE) == rooms


def _list_commands(text: str) -> Iterator[str]:
    """Commands of bundler in code, in line and in blocks; `a|b` in a table becomes two."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)]
    blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    for line in (*spans, *(line.removeprefix("$ ").strip() for line in lines)):
        if found := re.match(r"(?:\.venv/bin/)?bundler ((?:[a-z]+ )?)([a-z]+(?:\\\|[a-z]+)+)(.*)", line):
            yield from (f"{found[1]}{name}{found[3]}" for name in found[2].split("\\|"))
        elif found := re.match(r"(?:\.venv/bin/)?bundler (.+)", line):
            yield found[1]


def _find_faults(text: str) -> Iterator[str]:
    """What is wrong with the arguments of one command; placeholders are taken for values."""
    words = shlex.split(text.replace("[", " ").replace("]", " "), comments=True)
    command = typer.main.get_command(app)
    while words and hasattr(command, "get_command"):
        _, found, _ = command.resolve_command(typer.Context(command, resilient_parsing=True), words)
        if found is None:
            if words[0] not in GIVEN_BY_ALL:
                yield f"bundler {text}: no command {words[0]!r}"
            return
        command, words = found, words[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("-") and option not in known | GIVEN_BY_ALL:
            yield f"bundler {text}: no option {option}"


@pytest.mark.parametrize(
    "text", ["`bundler bild MODEL`", "```sh\nbundler build m --tarket a\n```", "`bundler cache show\\|trin`"]
)
def test_a_command_that_does_not_exist_is_found(text: str) -> None:
    assert [fault for command in _list_commands(text) for fault in _find_faults(command)]
