"""What the templates are rendered from: a pure function of the request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import bundler
from bundler.emitters.contract import EmitRequest
from bundler.emitters.device import DeviceContext, describe_device
from bundler.emitters.payload import describe_recorded_preprocessing
from bundler.emitters.python.modules import find_batch
from bundler.emitters.python.names import (
    RESERVED_INPUTS,
    RESERVED_OUTPUTS,
    PackageNames,
    choose_names,
    make_identifiers,
    make_version,
)
from bundler.emitters.python.profile import PythonSettings
from bundler.emitters.python.wheelhouse import ANYWHERE, list_requirements
from bundler.model.runtime import Compiled
from bundler.model.signature import Port, ValueType, describe_type
from bundler.support.text import shorten

BACKEND = "flit_core>=3.12,<4"
NUMPY_TYPES = {
    **{name: name for name in ("float16", "float32", "float64", "complex64", "complex128")},
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "bool_",
    "str": "object_",
    "bfloat16": "uint16",
    "float8e4m3fn": "uint8",
    "float8e4m3fnuz": "uint8",
    "float8e5m2": "uint8",
    "float8e5m2fnuz": "uint8",
}
"""Element types to NumPy's scalar types. Types that NumPy lacks are given as the bits that they are stored in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortContext:
    """One input or output, as the facade and the README show it."""

    name: str
    python_name: str
    annotation: str
    type: str
    description: str
    optional: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """All that the templates of this ecosystem see. Text in it is raw: each place escapes for itself."""

    package: str
    distribution: str
    version: str
    title: str
    summary: str
    bundler_version: str
    format: str
    artifact: str
    backend: str
    requirements: tuple[str, ...]
    requires_python: str
    python_versions: tuple[str, ...]
    config_sha256: str
    inputs: tuple[PortContext, ...]
    outputs: tuple[PortContext, ...]
    batch: int | None
    example: tuple[str, ...]
    uses_numpy: bool
    uses_any: bool
    variants: tuple[str, ...]
    strict: bool
    preprocessing: tuple[str, ...]
    device_copy: bool
    telemetry: bool
    prepared: tuple[tuple[str, str], ...]
    compiled: tuple[tuple[str, str], ...]
    plugins: tuple[str, ...]
    runtime: str
    device: DeviceContext


def make_context(request: EmitRequest, config_sha256: str, platform: str = ANYWHERE) -> Context:
    """The context for one bundle; `config_sha256` pins the bytes of its `runtime.json`, `platform` is the tag of the
    bundle's own wheel.
    """
    config, profile = request.config, request.profile
    names, version = choose_names(config.model, request.package_name), make_version(request.version)
    inputs = _make_ports(config.signature.inputs, "input", RESERVED_INPUTS)
    outputs = _make_ports(config.signature.outputs, "output", RESERVED_OUTPUTS)
    annotations = [port.annotation for port in (*inputs, *outputs)]
    return Context(
        package=names.package,
        distribution=names.distribution,
        version=version,
        title=f"{shorten(config.model)} for {config.target}",
        summary=f"The ONNX model {shorten(config.model)}, built for {profile.title}.",
        bundler_version=bundler.__version__,
        format=request.format,
        artifact=_name_artifact(request.format, names, version, platform),
        backend=BACKEND,
        requirements=list_requirements(profile.runtime),
        requires_python=require_pythons(PythonSettings.of(profile).versions),
        python_versions=PythonSettings.of(profile).versions,
        config_sha256=config_sha256,
        inputs=inputs,
        outputs=outputs,
        batch=find_batch(config.signature),
        example=tuple(f"{port.python_name}=…" for port in inputs if not port.optional),
        uses_numpy=any("np." in annotation for annotation in annotations),
        uses_any=any("Any" in annotation for annotation in annotations),
        variants=tuple(variant.name for variant in config.variants),
        strict=config.fallback == "strict",
        preprocessing=describe_recorded_preprocessing(config.preprocessing),
        device_copy=any(variant.device_cache for variant in config.variants),
        telemetry=config.telemetry,
        prepared=tuple((variant.name, variant.prepare.thing) for variant in config.variants if variant.prepare),
        compiled=tuple(
            (variant.name, describe_compiled(variant.requires.compiled))
            for variant in config.variants
            if variant.requires.compiled
        ),
        plugins=tuple(f"{name} {version}" for name, version in sorted(profile.runtime.plugins.items())),
        runtime=f"{profile.runtime.package} {profile.runtime.version}",
        device=describe_device(request),
    )


def require_pythons(versions: Sequence[str]) -> str:
    """A specifier that holds for these versions of Python 3 and no others: an installer then refuses the rest by the
    package's metadata, before it fetches anything.
    """
    minors = sorted(int(version.partition(".")[2]) for version in versions)
    gaps = [f"!=3.{minor}.*" for minor in range(minors[0], minors[-1]) if minor not in minors]
    return ",".join((f">=3.{minors[0]}", f"<3.{minors[-1] + 1}", *gaps))


def describe_compiled(compiled: Compiled) -> str:
    """What was compiled ahead of time, as text."""
    devices = ", ".join(compiled.devices) or "the device"
    return f"{compiled.provider} for {devices}" + (f", with {compiled.sdk}" if compiled.sdk else "")


def _name_artifact(format_: str, names: PackageNames, version: str, platform: str) -> str:
    if format_ == "wheel":
        return name_wheel(names, version, platform)
    return f"{names.distribution}.pex" if format_ == "pex" else names.package


def name_wheel(names: PackageNames, version: str, platform: str) -> str:
    """The file name of the bundle's own wheel, as the standard for wheels has it."""
    return f"{names.distribution.replace('-', '_')}-{version}-py3-none-{platform}.whl"


def _make_ports(ports: tuple[Port, ...], stem: str, reserved: frozenset[str]) -> tuple[PortContext, ...]:
    names = make_identifiers([port.name for port in ports], stem, reserved)
    return tuple(_make_port(port, name, is_input=stem == "input") for port, name in zip(ports, names, strict=True))


def _make_port(port: Port, python_name: str, *, is_input: bool) -> PortContext:
    annotation = annotate(port.type)
    if port.optional and not annotation.endswith("| None"):
        annotation = f"{annotation} | None"
    if is_input and annotation.endswith("| None"):
        annotation = f"{annotation} = None"
    return PortContext(
        name=port.name,
        python_name=python_name,
        annotation=annotation,
        type=shorten(describe_type(port.type)),
        description=_describe(port, python_name),
        optional=port.optional,
    )


def _describe(port: Port, python_name: str) -> str:
    text = shorten(describe_type(port.type))
    if (port.type.element_type or "").startswith(("bfloat16", "float8")):
        text += ", as the bits that it is stored in"
    if port.optional:
        text += ", the model's own default when left out"
    return text if port.name == python_name else f"{text} (`{shorten(port.name)}` in the model)"


def annotate(value: ValueType) -> str:
    """The type as a Python annotation. Raises nothing: what has no type of its own is `Any`."""
    if value.kind == "tensor" and value.element_type in NUMPY_TYPES:
        return f"npt.NDArray[np.{NUMPY_TYPES[value.element_type]}]"
    if value.kind == "sequence" and value.element:
        return f"list[{annotate(value.element)}]"
    if value.kind == "optional" and value.element:
        return f"{annotate(value.element)} | None"
    if value.kind == "map" and value.element:
        return f"dict[{_scalar(value.key_type)}, {_scalar(value.element.element_type)}]"
    return "Any"


def _scalar(element_type: str | None) -> str:
    if element_type == "str":
        return "str"
    if element_type is None:
        return "Any"
    return "float" if "float" in element_type else "int"
