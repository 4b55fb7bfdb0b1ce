"""Finds the software that a variant requires of the device: loads what only pip knows, names what is missing."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import suppress
from glob import escape, iglob
from importlib.util import find_spec
from typing import Any

from .config import Variant, read_bundle
from .integrity import Memory

Load = Callable[[str], object]

_PIP_FOLDERS = (("nvidia", "*/lib"), ("tensorrt_libs", ""))
"""Where packages of PyPI put libraries of CUDA, cuDNN and TensorRT: import name, folder below it."""


def load_needed(variant: Variant) -> None:
    """Load the libraries that the variant requires, so that the runtime finds in memory what pip installed in a folder
    that the system's linker does not search. What cannot be loaded is left to the runtime to refuse.
    """
    for need in _needs_here(variant):
        _find_absent(need, load_library)


def load_library(name: str) -> object:
    """Load a library by name: the one that is in memory already or that the system finds, else one that pip installed.

    Raises `OSError` where there is none.
    """
    try:
        return ctypes.CDLL(name)
    except OSError:
        for path in _list_installed(name):
            with suppress(OSError):
                return ctypes.CDLL(path)
        raise


def _list_installed(name: str) -> Iterator[str]:
    for package, folder in _PIP_FOLDERS:
        spec = None
        with suppress(ImportError, ValueError):  # another package that is half installed is none
            spec = find_spec(package)
        for root in (spec and spec.submodule_search_locations) or ():
            yield from iglob(os.path.join(escape(root), folder, escape(name)))


def require_runtime(file: str, sha256: str) -> None:
    """Load the runtime. Raises `ImportError` that names what is missing of the device's own software, as the
    `runtime.json` of the package with this `file` lists it.
    """
    try:
        import onnxruntime  # noqa: F401
    except ModuleNotFoundError:
        raise  # It is not installed: no software of the device would help.
    except ImportError as error:
        payload = os.path.join(os.path.dirname(os.path.abspath(file)), "payload")
        components = read_bundle(Memory(payload), sha256)["components"]
        variants = [Variant(item) for component in components for item in component["variants"]]
        raise ImportError(_explain_import(error, variants)) from error


def _explain_import(error: ImportError, variants: list[Variant]) -> str:
    missing = list(dict.fromkeys(filter(None, map(find_missing, variants))))
    needs = [f"{_name(need)}{_describe_check(need)}" for variant in variants for need in _needs_here(variant)]
    lines = [
        "the library of onnxruntime cannot be loaded",
        f"  why:  {'; '.join((str(error), *missing))}",
        f"  next: install what this bundle requires on this device: {'; '.join(dict.fromkeys(needs))}",
    ]
    return "\n".join(lines)


def explain_missing(variant: Variant, load: Load = load_library) -> str:
    """The missing requirements of the variant; if none of them names a library, all requirements with how to check
    them. Empty if nothing is missing.
    """
    needs = _needs_here(variant)
    if any(need["libraries"] for need in needs):
        return find_missing(variant, load)
    return "; ".join(f"it requires {_name(need)}{_describe_check(need)}" for need in needs)


def find_missing(variant: Variant, load: Load = load_library) -> str:
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
    """The libraries of `need` that are not there, or cannot be used. A name never says in which folder to look."""
    absent = []
    for name in need["libraries"]:
        try:
            load(os.path.basename(name))
        except OSError:
            absent.append(name)
    return absent
