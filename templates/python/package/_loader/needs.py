"""Finds required software of the device that is missing. Used only when a variant could not be opened."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable
from typing import Any

from .config import Variant

Load = Callable[[str], object]


def explain_missing(variant: Variant, load: Load = ctypes.CDLL) -> str:
    """The missing requirements of the variant; if none of them names a library, all requirements with how to check
    them. Empty if nothing is missing.
    """
    needs = _needs_here(variant)
    if any(need["libraries"] for need in needs):
        return find_missing(variant, load)
    return "; ".join(f"it requires {_name(need)}{_describe_check(need)}" for need in needs)


def find_missing(variant: Variant, load: Load = ctypes.CDLL) -> str:
    """`not found here: cuDNN 9 (libcudnn.so.9)`: the needs whose libraries the system does not find."""
    absent = [(need, names) for need in _needs_here(variant) if (names := _find_absent(need, load))]
    missing = ", ".join(f"{_name(need)} ({' '.join(names)})" for need, names in absent)
    return f"not found here: {missing}" if missing else ""


def _needs_here(variant: Variant) -> list[dict[str, Any]]:
    """None on a system that the variant is not for: its libraries have other names there."""
    systems = variant.requires["systems"]
    return [] if systems and platform.system() not in systems else variant.requires.get("needs") or []


def _name(need: dict[str, Any]) -> str:
    return f"{need['what']} {need['version']}".strip()


def _describe_check(need: dict[str, Any]) -> str:
    return f" (check: {need['check']})" if need["check"] else ""


def _find_absent(need: dict[str, Any], load: Load) -> list[str]:
    """The libraries of `need` that the system's linker does not find, or cannot use. Never one in a folder of its own:
    what is looked for is what the system has.
    """
    absent = []
    for name in need["libraries"]:
        try:
            load(os.path.basename(name))
        except OSError:
            absent.append(name)
    return absent
