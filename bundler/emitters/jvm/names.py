"""Names for Kotlin, Java and Maven, from the name of any model, input or output."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bundler.emitters.jvm.preparation import CLASSES
from bundler.model.errors import UsageError

LONGEST: Final = 48
"""Maximum number of characters of an identifier that is made from a model's name."""

LONGEST_GIVEN: Final = 128
"""Characters of a package's name that a user gives, and of a version."""

GROUP: Final = "bundle"
"""The Maven group, and the parent package, of bundles whose user named none: it claims nobody's domain."""

_KOTLIN: Final = (
    "as break class continue do else false for fun if in interface is null object package return super this throw true "
    "try typealias typeof val var when while"
)
_JAVA: Final = (
    "abstract assert boolean break byte case catch char class const continue default do double else enum extends false "
    "final finally float for goto if implements import instanceof int interface long native new null package private "
    "protected public return short static strictfp super switch synchronized this throw throws transient true try void "
    "volatile while"
)
KEYWORDS: Final = frozenset(f"{_KOTLIN} {_JAVA}".split())
"""Hard keywords of Kotlin (its documentation, "Keywords and operators") and of Java (JLS 17, 3.9): those of Java, too,
because its callers write the names of packages and parameters.
"""

_PART: Final = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_VERSION: Final = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z._+-]*[0-9A-Za-z])?", re.ASCII)
_FACADE: Final = (
    "AndroidHost Any Array AutoCloseable Benchmark Boolean BuildConfig Bundle BundleException Byte ByteArray "
    "ByteBuffer Context Double ElementType Exception File Float FloatArray Flow Host InputException Int IntArray "
    "JvmField JvmHost JvmName JvmOverloads JvmStatic List LoadReport LoadedBundle LoadedModel Long LongArray Main "
    "Map Nothing Number Object OpenOptions OpenProgress Opening Override Payload Prewarmed R SelfTest Short Stream "
    "String Suppress Tensor Throwable Throws Unit Void"
)
"""Types that the rendered code uses itself."""

_MEMBERS: Final = ("allocate", "close", "class", "toArray", "values", "equals", "hashCode", "toString")
"""Members of the rendered classes, and of every object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageNames:
    """`package` is that of the classes, `group` and `artifact` are Maven's; `type` begins the names of the classes."""

    package: str
    group: str
    artifact: str
    type: str

    @property
    def loader(self) -> str:
        """The package of the loader's classes: the bundle's own, so that one program can use several bundles."""
        return f"{self.package}.loader"

    @property
    def folder(self) -> str:
        """The package as a folder of sources and resources."""
        return self.package.replace(".", "/")


def choose_names(model: str, package_name: str | None) -> PackageNames:
    """The names of a bundle: the user's `com.acme.model`, else made from the model's. Raises `UsageError`."""
    package = f"{GROUP}.{_make_part(model)}" if package_name is None else _take_package(package_name)
    group, _, last = package.rpartition(".")
    (type_,) = name_types((last,), "")
    return PackageNames(package=package, group=group, artifact=last.replace("_", "-"), type=type_)


def _take_package(name: str) -> str:
    parts = name.replace("-", "_").split(".")
    valid = all(_PART.fullmatch(part) and part not in KEYWORDS for part in parts)
    if not valid or len(parts) < 2 or len(name) > LONGEST_GIVEN or parts[-1].endswith("_"):  # noqa: PLR2004 (a group)
        raise UsageError(
            f"{name[:80]!r} cannot be the package of a bundle for Java or Android",
            hint="use lower-case words with dots between them, at least two and none a keyword: "
            "--package-name com.acme.model",
        )
    if parts[0] in ("java", "javax", "kotlin", "android") or name == "ai.onnxruntime":
        raise UsageError(
            f"the package {name!r} belongs to the platform or the runtime",
            hint="use your own package: --package-name com.acme.model",
        )
    return ".".join(parts)


def make_version(version: str) -> str:
    """A version as Maven and Gradle take it. Raises `UsageError`."""
    if len(version) > LONGEST_GIVEN or not _VERSION.fullmatch(version) or ".." in version:
        raise UsageError(
            f"{version[:80]!r} cannot be the version of a Maven artifact",
            hint="use letters, digits, '.', '_', '+' and '-', beginning and ending with a letter or a digit: "
            "--version 1.2.3",
        )
    return version


def make_properties(names: Sequence[str], stem: str) -> tuple[str, ...]:
    """One property a name, in order: `inputIds` for `input_ids`, `input0` where nothing readable is left.

    They differ in more than the case of a letter, because Java has `getInputIds` for each.
    """
    taken = {name.lower() for name in _MEMBERS}
    found = []
    for position, name in enumerate(names):
        words = _split_words(name) or [f"{stem}{position}"]
        identifier = words[0][:1].lower() + words[0][1:] + "".join(word[:1].upper() + word[1:] for word in words[1:])
        if identifier[0].isdigit():
            identifier = f"{stem}{identifier}"
        found.append(_make_distinct(identifier[:LONGEST], taken))
    return tuple(found)


def name_getter(property_: str) -> str:
    """The method by which Java reads a property (Kotlin's documentation, "Calling Kotlin from Java")."""
    if re.match("is[^a-z]", property_):
        return property_
    return f"get{property_[:1].upper()}{property_[1:]}"


def name_types(components: Sequence[str], bundle: str) -> tuple[str, ...]:
    """The class of each component: `Detect` for `detect`; distinct with `DetectInputs` and the others made from it,
    from those of the bundle, and from what the rendered code uses.
    """
    taken = {*_FACADE.lower().split(), *CLASSES.lower().split(), f"{bundle}bundle".lower()}
    found = []
    for component in components:
        name = _make_type(component)
        while any(f"{name}{part}".lower() in taken for part in _PARTS):
            name += "Model" if not name.endswith("Model") else "_"
        taken |= {f"{name}{part}".lower() for part in _PARTS}
        found.append(name)
    return tuple(found)


_PARTS: Final = ("", "Inputs", "Outputs", "Stream", "StreamInputs", "StreamOutputs")


def _make_part(name: str) -> str:
    """A word of a package's name."""
    word = "_".join(word.lower() for word in _split_words(name))[:LONGEST].strip("_") or "model"
    word = f"model_{word}" if word[0].isdigit() else word
    return f"{word}_model" if word in KEYWORDS or word in ("loader", "java", "android") else word


def _make_type(name: str) -> str:
    type_ = "".join(word[:1].upper() + word[1:] for word in _split_words(name))
    return f"Model{type_}" if not type_ or type_[0].isdigit() else type_


def _split_words(name: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    return re.findall(r"[A-Za-z0-9]+", plain)


def _make_distinct(identifier: str, taken: set[str]) -> str:
    """Not in `taken` in any case, and no keyword; it is added there."""
    found, number = identifier, 2
    while found.lower() in taken or found in KEYWORDS:
        found, number = (f"{identifier}Value", number) if found == identifier else (f"{identifier}{number}", number + 1)
    taken.add(found.lower())
    return found
