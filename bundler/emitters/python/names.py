"""Python names for what a model calls anything at all."""

from __future__ import annotations

import builtins
import keyword
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bundler.model.errors import UsageError

LONGEST = 48
"""Maximum number of characters of an identifier."""

LONGEST_GIVEN = 64
"""Characters of a name or a version that a user gives: they are parts of file names."""

RESERVED_INPUTS = frozenset({"self", "Outputs", "StreamOutputs", "Stream", "np", "npt", "Any", "NamedTuple"})
RESERVED_OUTPUTS = frozenset({"count", "index", "Any", "np", "npt"})
"""Names that the facade uses itself, or that tuples have."""

FACADE_NAMES = frozenset(
    {
        *("Any", "BundledModel", "BundledModels", "Bundle", "BundleError", "ClosedError", "FallbackError"),
        *("FallbackWarning", "IncompatibleError", "InputError", "IntegrityError", "LoadReport", "Model", "NamedTuple"),
        *("BundledStream", "Outputs", "Pins", "SelfTest", "SelfTestError"),
    }
)
"""What the facade of a bundle of several components imports or defines itself."""

_TAKEN_PACKAGES = frozenset(
    {
        *("coloredlogs", "humanfriendly", "mpmath"),
        *("onnxruntime", "onnx", "numpy", "flatbuffers", "packaging", "google", "protobuf", "ml_dtypes", "sympy"),
        *("pip", "setuptools", "pkg_resources", "wheel", "flit_core", "pex", "test", "tests", "bundler", "wheels"),
        "build_backend",
    }
)
"""Modules that an emitted package would hide: the runtime with its dependencies, packaging tools, our own folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageNames:
    """`package` is imported, `distribution` is installed; `chosen` says that the user gave the name."""

    package: str
    distribution: str
    chosen: bool


def choose_names(model: str, package_name: str | None) -> PackageNames:
    """The names of a bundle's package: the user's, else made from the model's. Raises `UsageError`."""
    package = make_package_name(model) if package_name is None else _take_name(package_name)
    return PackageNames(package=package, distribution=make_distribution_name(package), chosen=package_name is not None)


def _take_name(name: str) -> str:
    """What a user's name is imported as: only case and hyphens are changed."""
    package = re.sub(r"[-_.]+", "_", name).lower()
    plain = re.fullmatch(r"[A-Za-z](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", name, re.ASCII)
    if not plain or len(name) > LONGEST_GIVEN or keyword.iskeyword(package):
        raise UsageError(
            f"{name[:80]!r} cannot be the name of a Python package",
            hint=f"use up to {LONGEST_GIVEN} letters, digits, '-', '_' and '.', beginning with a letter and ending "
            "with a letter or digit, not a Python keyword: --package-name acme-model",
        )
    if _hides_another(package):
        raise UsageError(
            f"a package called {name!r} would hide the module {package} of Python, of the runtime or of the bundle",
            hint=f"use another name: --package-name {make_distribution_name(package)}-model",
        )
    return package


def make_version(version: str) -> str:
    """A version as PEP 440 writes it (`1.0.0-rc1` is `1.0.0rc1`). Raises `UsageError` for what is none."""
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415 (needed when building alone)

    hint = "use numbers with dots, and nothing more than PEP 440 knows: --version 1.2.3, 1.2.3rc1, 1.2.3+local"
    if len(version) > LONGEST_GIVEN:
        raise UsageError(f"{version[:80]!r}… is not a version: it has {len(version)} characters", hint=hint)
    try:
        return str(Version(version))
    except InvalidVersion as error:
        raise UsageError(f"{version!r} is not a version of a Python package", hint=hint) from error


def make_identifiers(names: Sequence[str], stem: str, reserved: Iterable[str]) -> tuple[str, ...]:
    """One valid, distinct ASCII identifier a name, in order; `stem` with a number where nothing readable is left."""
    taken = set(reserved)
    found = []
    for position, name in enumerate(names):
        identifier = _make_distinct(_make_identifier(name, f"{stem}_{position}", stem), taken)
        taken.add(identifier)
        found.append(identifier)
    return tuple(found)


def name_classes(components: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The classes of each component and of its outputs, all distinct: `Detect` and `DetectOutputs` for `detect`."""
    taken = set(FACADE_NAMES)
    found = []
    for name in components:
        model = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
        while model in taken or f"{model}Outputs" in taken:
            model += "_"
        taken |= {model, f"{model}Outputs"}
        found.append((model, f"{model}Outputs"))
    return tuple(found)


def make_package_name(model: str) -> str:
    """A valid package name that hides no module of the standard library or of the runtime."""
    name = _make_identifier(model.lower(), "model", "model")
    return f"{name.rstrip('_')}_model" if name.endswith("_") or _hides_another(name) else name


def _hides_another(name: str) -> bool:
    """Whether a module of that name is Python's, the runtime's (its plugins are `onnxruntime_…`) or the bundle's."""
    taken = name in _TAKEN_PACKAGES or name.startswith("onnxruntime_")
    return taken or name in sys.stdlib_module_names or hasattr(builtins, name)


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
