"""The pictures of README.md and docs/, taken of what the recorded commands built."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, ViewportSize, expect, sync_playwright

from bundler.devices.browser.programs import find_browser
from docs.console.recording import ROOT, RecordError, describe_environment

IMAGES: Final = ROOT / "docs" / "images"
_PATIENCE: Final = 60_000
"""Milliseconds: a GPU in software is slow."""


def take_figures(name: str, place: Path) -> None:
    """Take the picture that belongs to the script `name`, which ran in the folder `place`, if any. A page that does not
    come to what the picture shows leaves the picture as it was, and says so.
    """
    if name not in _FIGURES:
        return
    try:
        _FIGURES[name](place)
    except (PlaywrightError, AssertionError) as error:
        print(f"the picture of {name} was not taken: {str(error).splitlines()[0]}", flush=True)


def _take_report(place: Path) -> None:
    with _open_page(1100, 1250) as page:
        page.goto(_find_report(place, "magika-linux-x64"))
        _save(page.screenshot(), "report.png")


def _take_precision(place: Path) -> None:
    with _open_page(1060, 1000) as page:
        page.goto(_find_report(place, "magika-small-linux-x64"))
        _save(page.locator("section[aria-labelledby=precision]").screenshot(), "precision.png")


def _take_device(place: Path) -> None:
    with _open_page(960, 900) as page:
        page.goto(_find_report(place, "orientation-snapdragon-8g3"))
        _save(page.locator("section[aria-labelledby=placement]").screenshot(), "device.png")


def _take_web(place: Path) -> None:
    """The demo page, given a line of text that stands upside down."""
    line = Image.new("RGB", (240, 60), "white")
    ImageDraw.Draw(line).text((20, 8), "Platform 7b", "navy", ImageFont.load_default(36))
    line.rotate(180).save(place / "line.png")
    with _serve(place, "demo-output/orientation-web-webgpu") as address, _open_page(1280, 1400) as page:
        page.set_default_timeout(_PATIENCE)
        page.goto(address)
        expect(page.locator("#test")).to_contain_text("Passed", timeout=_PATIENCE)
        page.get_by_label("Picture").check()
        for label, size in (("Height", "48"), ("Width", "192")):
            page.get_by_label(label, exact=True).fill(size)
        page.get_by_role("combobox", name="Scale").select_option(label="\N{MINUS SIGN}1 to 1")
        page.locator("#inputs input[type=file]").first.set_input_files(place / "line.png")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.locator("#outputs")).to_contain_text("class 1", timeout=_PATIENCE)
        _save(page.screenshot(full_page=True), "web-demo.png")


_FIGURES: Final[Mapping[str, Callable[[Path], None]]] = {
    "demo": _take_report,
    "demo-web": _take_web,
    "demo-precision": _take_precision,
    "demo-device": _take_device,
}


@contextmanager
def _open_page(width: int, height: int) -> Iterator[Page]:
    found = find_browser()
    if found is None:
        raise RecordError("no Chromium-family browser is here to take pictures with: install Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--enable-unsafe-webgpu"])
        yield browser.new_page(viewport=ViewportSize(width=width, height=height))
        browser.close()


def _find_report(place: Path, bundle: str) -> str:
    return (place / "demo-output" / f"{bundle}.report" / "report.html").as_uri()


@contextmanager
def _serve(place: Path, bundle: str) -> Iterator[str]:
    command = ["bundler", "serve", bundle, "--port", "0", "--json"]
    environment = describe_environment(place)
    with subprocess.Popen(command, cwd=place, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None  # noqa: S101 - for the type checker: it is a pipe
        try:
            text = ""
            while not _is_whole(text):
                text += server.stdout.readline()
            yield json.loads(text)["url"]
        finally:
            server.terminate()


def _is_whole(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _save(picture: bytes, name: str) -> None:
    (IMAGES / name).write_bytes(picture)
