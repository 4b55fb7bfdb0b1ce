"""`doctor`: the tools, environments and emulators of this machine."""

from __future__ import annotations

from pathlib import Path

from bundler.environments.emulation import find_emulator, image_ready
from bundler.environments.survey import ToolStatus, survey

EMULATED = ("aarch64",)
"""Architectures that bundles can be proven for under emulation."""


def examine(cache_root: Path) -> tuple[ToolStatus, ...]:
    """Look at everything; changes nothing and needs no network."""
    return (*survey(cache_root), *(_look_at_emulator(cache_root, name) for name in EMULATED))


def _look_at_emulator(cache_root: Path, architecture: str) -> ToolStatus:
    path = find_emulator(architecture)
    image = image_ready(cache_root / "images", architecture)
    state = f"image {image}" if image else "its Python image is made at the first proof, in some seconds"
    return ToolStatus(
        name=f"emulation of {architecture}",
        found=path is not None,
        version=None,
        detail=f"{path}; {state}" if path else "bundles for it are built, but not run here",
        hint=None if path else "install QEMU's user emulation (Debian, Ubuntu: qemu-user-static)",
    )
