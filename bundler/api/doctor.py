"""`doctor`: the tools, environments, emulators and browsers of this machine."""

from __future__ import annotations

from pathlib import Path

from bundler.devices.browser.programs import NONE_FOUND, ask_version, find_browser
from bundler.environments.emulation import find_emulator, find_images, image_ready
from bundler.environments.survey import ToolStatus, survey
from bundler.model.errors import EnvironmentMissingError

EMULATED = ("aarch64",)
"""Architectures that bundles can be proven for under emulation."""


def examine(cache_root: Path) -> tuple[ToolStatus, ...]:
    """Look at everything; changes nothing and needs no network."""
    emulators = (_look_at_emulator(cache_root, name) for name in EMULATED)
    return (*survey(cache_root), *emulators, _look_at_browser())


def _look_at_emulator(cache_root: Path, architecture: str) -> ToolStatus:
    path = find_emulator(architecture)
    image = image_ready(find_images(cache_root, architecture), architecture)
    state = f"image {image}" if image else "its Python image is made at the first proof, in some seconds"
    return ToolStatus(
        name=f"emulation of {architecture}",
        found=path is not None,
        version=None,
        detail=f"{path}; {state}" if path else "bundles for it are built, but not run here",
        hint=None if path else "install QEMU's user emulation (Debian, Ubuntu: qemu-user-static)",
    )


def _look_at_browser() -> ToolStatus:
    try:
        path, why = find_browser(), NONE_FOUND
    except EnvironmentMissingError as error:
        path, why = None, error.message
    return ToolStatus(
        name="browser",
        found=path is not None,
        version=_last_word(ask_version(path)) if path else None,
        detail=f"{path}: runs the golden set of web bundles" if path else "web bundles are built, but not run here",
        hint=None if path else why,
    )


def _last_word(text: str | None) -> str | None:
    """`156.0.8078.79` of `Chromium 156.0.8078.79`."""
    return text.split()[-1] if text else None
