"""Python names for what a model calls anything at all."""

from __future__ import annotations

import builtins
import keyword
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence

LONGEST = 48
"""Characters of an identifier; longer ones help nobody."""

RESERVED_INPUTS = frozenset({"self", "Outputs", "np", "npt", "Any", "NamedTuple"})
RESERVED_OUTPUTS = frozenset({"count", "index", "Any", "np", "npt"})
"""Names that the facade uses itself, or that a tuple has already."""

_TAKEN_PACKAGES = frozenset(
    {
        *("coloredlogs", "humanfriendly", "mpmath"),
        *("onnxruntime", "onnx", "numpy", "flatbuffers", "packaging", "google", "protobuf", "ml_dtypes", "sympy"),
        *("pip", "setuptools", "pkg_resources", "wheel", "flit_core", "pex", "test", "tests", "bundler", "wheels"),
    }
)
"""Modules that an emitted package would hide: the runtime with its dependencies, packaging tools, our own folders."""


def make_identifiers(names: Sequence[str], stem: str, reserved: Iterable[str]) -> tuple[str, ...]:
    """One valid, distinct ASCII identifier a name, in order; `stem` with a number where nothing readable is left."""
    taken = set(reserved)
    found = []
    for position, name in enumerate(names):
        identifier = _make_distinct(_make_identifier(name, f"{stem}_{position}", stem), taken)
        taken.add(identifier)
        found.append(identifier)
    return tuple(found)


def make_package_name(model: str) -> str:
    """A valid package name that hides no module of the standard library or of the runtime."""
    name = _make_identifier(model.lower(), "model", "model")
    taken = name in _TAKEN_PACKAGES or name.startswith("onnxruntime_")  # as the runtime's plugins are named
    clashes = name in sys.stdlib_module_names or taken or name.endswith("_") or hasattr(builtins, name)
    return f"{name.rstrip('_')}_model" if clashes else name


def make_distribution_name(package: str) -> str:
    """The package's name as an index normalises it: lower case, single hyphens."""
    return re.sub(r"[-_.]+", "-", package).strip("-").lower()


def _make_identifier(name: str, fallback: str, prefix: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    words = re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_")[:LONGEST].strip("_")
    if not words:
        return fallback
    if words[0].isdigit():
        words = f"{prefix}_{words}"
    return f"{words}_" if keyword.iskeyword(words) or words == "__debug__" else words


def _make_distinct(identifier: str, taken: set[str]) -> str:
    if identifier not in taken:
        return identifier
    if f"{identifier}_" not in taken and not identifier.endswith("_"):
        return f"{identifier}_"
    number = 2
    while f"{identifier.rstrip('_')}_{number}" in taken:
        number += 1
    return f"{identifier.rstrip('_')}_{number}"
