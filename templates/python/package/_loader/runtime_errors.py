"""What the runtime raises of its own, and what it says then."""

from __future__ import annotations

import os
import sys

from onnxruntime.capi import onnxruntime_pybind11_state as _native

RUNTIME_ERRORS: tuple[type[Exception], ...] = (
    RuntimeError,
    ValueError,
    *(kind for kind in vars(_native).values() if isinstance(kind, type) and issubclass(kind, Exception)),
)
"""Everything that the runtime raises of its own when it cannot open a model."""

LONGEST = 300
"""Characters of the runtime's own words. Its end says what is wrong, its beginning where."""


def first_line(error: Exception) -> str:
    """What the runtime said, for a sentence. Where packages are installed is left out: it differs everywhere and tells
    nothing of the device.
    """
    text = (str(error).splitlines() or [type(error).__name__])[0]
    for folder in _import_folders():
        text = text.replace(folder, "")
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"


def _import_folders() -> list[str]:
    """Where Python finds packages, and where links to those that it loaded lead, the longest first, each with a
    separator at its end.
    """
    found = {path.rstrip(os.sep) for entry in sys.path if entry for path in (entry, os.path.realpath(entry))}
    packages = [module for name, module in tuple(sys.modules.items()) if "." not in name]
    places = [path for module in packages for path in getattr(module, "__path__", ()) if isinstance(path, str)]
    found |= {os.path.dirname(os.path.realpath(path)) for path in places}
    return sorted((path + os.sep for path in found if path), key=len, reverse=True)
