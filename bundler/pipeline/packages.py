"""Models in a model package of ONNX Runtime: `FOLDER`, or `FOLDER?component=NAME&variant=NAME` to say which.

A package holds one model in several forms. bundler makes such forms itself, so it takes the one that it can start from:
plain ONNX, the CPU's where there is one. What was compiled for a device is refused: the original model
cannot be recovered from it.
"""

from __future__ import annotations

import mmap
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote

from bundler.model.errors import ModelError, UsageError
from bundler.model.paths import real_path
from bundler.pipeline.package_manifest import PackagedVariant, is_package, list_files, read_components
from bundler.providers.registry import find_provider

SUFFIX = ".ortpackage"

_COMPILED = b"\x22\x09EPContext"
"""How a node that stands for compiled code is written in an ONNX file: the tag of its operator's type, and the type."""

_PORTABLE = "cpu"
"""The short name of the provider whose form of a model every runtime can run."""

_FORMS = f"write FOLDER{SUFFIX}, or FOLDER{SUFFIX}?component=NAME&variant=NAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageReference:
    """One model argument that names a package; `component` and `variant` are empty where it does not say."""

    folder: Path
    component: str = ""
    variant: str = ""

    @property
    def name(self) -> str:
        """What a bundle of it is called when nobody says otherwise."""
        return real_path(self.folder).name.removesuffix(SUFFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageModel:
    """What was found: the ONNX file, the folder of its weights where that is another, and where it stood."""

    model: Path
    weights: Path | None
    component: str
    variant: str


def is_package_argument(text: str) -> bool:
    """Whether a model argument means a model package."""
    return is_package(Path(text)) or is_package(Path(text.partition("?")[0]))


def parse_package(text: str) -> PackageReference:
    """The parsed argument. Raises `UsageError`."""
    if is_package(Path(text)):  # a folder with a question mark in its name
        return PackageReference(folder=Path(text))
    place, _, query = text.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    options = dict(pairs)
    if len(options) != len(pairs) or set(options) - {"component", "variant"} or not all(options.values()):
        raise UsageError(
            f"the part after ? in {ascii(text)[:120]} names neither a component nor a variant", hint=_FORMS
        )
    return PackageReference(folder=Path(place), **options)


def list_packaged(text: str) -> dict[str, str]:
    """The argument of each component, where one names a package of several models, and none of them; else empty.

    Raises `ModelError` for a package that cannot be read.
    """
    if not is_package_argument(text):
        return {}
    reference = parse_package(text)
    names = () if reference.component else tuple(read_components(reference.folder))
    variant = f"&variant={quote(reference.variant)}" if reference.variant else ""
    return {name: f"{reference.folder}?component={quote(name)}{variant}" for name in names} if len(names) > 1 else {}


def find_model(reference: PackageReference) -> PackageModel:
    """The model to start from. Raises `ModelError` for a package that cannot be read or has none, `UsageError` where it
    must say which.
    """
    components = read_components(reference.folder)
    component = _choose_component(reference, tuple(components))
    variants = _choose_variants(reference, component, components[component])
    reasons = {variant.name: _why_not(variant) for variant in variants}
    plain = sorted((variant for variant in variants if not reasons[variant.name]), key=_rank)
    if not plain or plain[0].model is None:
        raise ModelError(
            f"the model package {reference.name} holds no model in plain ONNX",
            details=tuple(f"variant {ascii(name)[:80]}: {reason}" for name, reason in reasons.items()),
            hint="compiled models cannot be prepared for another device: give the original ONNX model",
        )
    return PackageModel(model=plain[0].model, weights=_apart(plain[0]), component=component, variant=plain[0].name)


def join_model(found: PackageModel, folder: Path) -> Path:
    """The model with its weights beside it, as ONNX has them: where it stands, or copied into the empty `folder`.

    Raises `ModelError` where two files have one name, or something among the weights is a link.
    """
    if found.weights is None:
        return found.model
    files = list_files(found.weights, "the folder of its weights")
    if found.model.name in files:
        raise ModelError(
            "the model package cannot be read", details=(f"one of its weight files is also named {found.model.name!a}",)
        )
    for name, source in {**files, found.model.name: found.model}.items():
        _place(source, folder / name)
    return folder / found.model.name


def _choose_component(reference: PackageReference, names: tuple[str, ...]) -> str:
    wanted = reference.component or (names[0] if len(names) == 1 else "")
    if wanted in names:
        return wanted
    shown = ", ".join(ascii(name)[:80] for name in names)
    if reference.component:
        raise UsageError(f"the model package {reference.name} has no such component", hint=f"it has {shown}")
    raise UsageError(
        f"the model package {reference.name} holds several models: {shown}",
        hint=f"name one: {reference.folder}?component=NAME; for one bundle of several, name each: "
        "'NAME=PACKAGE?component=NAME' and --bundle",
    )


def _choose_variants(
    reference: PackageReference, component: str, variants: tuple[PackagedVariant, ...]
) -> tuple[PackagedVariant, ...]:
    chosen = tuple(variant for variant in variants if reference.variant in ("", variant.name))
    if reference.variant and not chosen:
        shown = ", ".join(ascii(variant.name)[:80] for variant in variants)
        raise UsageError(f"component {ascii(component)[:80]} has no such variant", hint=f"it has {shown or 'none'}")
    return chosen


def _why_not(variant: PackagedVariant) -> str:
    """Why a variant is no model to start from; empty where it is one."""
    if variant.model is None or not variant.model.is_file():
        return "it names no file for ONNX Runtime"
    if variant.model.suffix == ".ort":
        return "it is in the ORT format"
    if variant.compiled_for or _is_compiled(variant.model):
        return f"it was compiled for {ascii(variant.provider or 'a device')[1:-1][:80]}"
    return ""


def _is_compiled(model: Path) -> bool:
    if not model.stat().st_size:
        return False  # an empty file cannot be mapped
    with model.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(_COMPILED) >= 0


def _rank(variant: PackagedVariant) -> int:
    """The CPU's first, then one for any provider, then in the order of the package."""
    if variant.provider == find_provider(_PORTABLE).runtime_name:
        return 0
    return 1 if not variant.provider else 2


def _apart(variant: PackagedVariant) -> Path | None:
    beside = variant.model is None or variant.weights in (None, variant.model.parent)
    return None if beside else variant.weights


def _place(source: Path, target: Path) -> None:
    """A copy: ONNX refuses weights that are a link of any kind."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
