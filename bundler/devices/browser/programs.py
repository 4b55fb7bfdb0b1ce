"""Browsers of the Chromium family on this machine: where they are, and what to do where there is none."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bundler.environments.variables import browser_environment
from bundler.model.errors import EnvironmentMissingError
from bundler.support.processes import run_process

VARIABLE: Final = "BUNDLER_BROWSER"
"""Names the browser where `--on` does not."""

NONE_FOUND: Final = (
    "no Chromium-family browser was found on this machine; install Chromium, or name one with --on browser:PATH or "
    f"{VARIABLE}"
)

_COMMANDS: Final = (
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "chrome",
    "microsoft-edge-stable",
    "microsoft-edge",
    "msedge",
    "brave-browser",
    "chromium-headless-shell",
)

_MAC: Final = ("Chromium", "Google Chrome", "Microsoft Edge", "Brave Browser")

_WINDOWS: Final = (
    "Chromium/Application/chrome.exe",
    "Google/Chrome/Application/chrome.exe",
    "Microsoft/Edge/Application/msedge.exe",
    "BraveSoftware/Brave-Browser/Application/brave.exe",
)


def find_browser(named: str = "") -> Path | None:
    """The browser that is named (a path or a command), else the first that is found; None when there is none.

    Raises `EnvironmentMissingError` when one is named that is not there.
    """
    wanted = named or os.environ.get(VARIABLE, "")
    if not wanted:
        return next(_installed(), None)
    found = shutil.which(wanted)
    if found is None:
        raise EnvironmentMissingError(
            f"the browser {wanted} does not exist",
            details=(f"--on or {VARIABLE} names it",),
            hint="use the path or the command of a Chromium-family browser (Chromium, Chrome, Edge)",
        )
    return Path(found)


def is_named(named: str) -> bool:
    """Whether the user chose the browser: then one that does not start is an error and no circumstance."""
    return bool(named or os.environ.get(VARIABLE))


def ask_version(browser: Path) -> str | None:
    """What the browser calls itself (`Chromium 156.0.8078.79`), None where it does not say so on a command line."""
    if platform.system() == "Windows":
        return None  # Asked there, it opens a window instead.
    try:
        done = run_process((str(browser), "--version"), seconds=20, text=True, env=browser_environment())
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.strip().split(" built on ")[0].strip()
    return words or None


def _installed() -> Iterator[Path]:
    for command in _COMMANDS:
        found = shutil.which(command)
        if found:
            yield Path(found)
    for place in _places():
        if place.is_file():
            yield place


def _places() -> Iterator[Path]:
    """Places of browsers that are not on the PATH."""
    if platform.system() == "Darwin":
        for root in (Path("/Applications"), Path.home() / "Applications"):
            yield from (root / f"{name}.app" / "Contents" / "MacOS" / name for name in _MAC)
    elif platform.system() == "Windows":
        roots = [os.environ.get(name) for name in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")]
        for folder in filter(None, roots):
            yield from (Path(folder) / place for place in _WINDOWS)
