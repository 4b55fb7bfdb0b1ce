"""What the templates are rendered from: a pure function of the request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import bundler
from bundler.emitters.contract import BuiltComponent, EmitRequest
from bundler.emitters.device import DeviceContext, describe_device
from bundler.emitters.payload import describe_metadata, describe_recorded_preprocessing, read_sizes
from bundler.emitters.python.modules import find_batch
from bundler.emitters.python.names import (
    RESERVED_INPUTS,
    RESERVED_OUTPUTS,
    PackageNames,
    choose_names,
    make_identifiers,
    make_version,
    name_classes,
)
from bundler.emitters.python.profile import PythonSettings
from bundler.emitters.python.wheelhouse import ANYWHERE, list_requirements
from bundler.model.errors import UsageError
from bundler.model.runtime import Compiled, RuntimeComponent, RuntimeConfig
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
class StreamContext:
    """The stream of a model with state: its classes, the inputs and outputs that are no state, and the names of the
    state's inputs, of which some are `growing`.
    """

    stream_class: str
    outputs_class: str
    inputs: tuple[PortContext, ...]
    outputs: tuple[PortContext, ...]
    state: tuple[str, ...]
    growing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentContext:
    """One model: `name` is its member in a bundle of several, `model_class` and `outputs_class` are its classes."""

    name: str
    model_class: str
    outputs_class: str
    summary: str
    inputs: tuple[PortContext, ...]
    outputs: tuple[PortContext, ...]
    batch: int | None
    stream: StreamContext | None
    example: tuple[str, ...]
    """The arguments of a call, `…` for their values, and in `call` with arrays at whose sizes the model runs."""
    call: tuple[str, ...]
    variants: tuple[str, ...]
    preprocessing: tuple[str, ...]
    metadata: tuple[str, ...]


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
    components: tuple[ComponentContext, ...]
    exports: tuple[str, ...]
    several: bool
    together: tuple[str, ...]
    uses_numpy: bool
    strict: bool
    device_copy: bool
    telemetry: bool
    prepared: tuple[tuple[str, str], ...]
    compiled: tuple[tuple[str, str], ...]
    plugins: tuple[str, ...]
    runtime: str
    device: DeviceContext
    pipeline: tuple[str, ...]
    pipeline_function: str
    pipeline_requires: tuple[str, ...]
    pipeline_locked: bool


def make_context(request: EmitRequest, config_sha256: str, platform: str = ANYWHERE) -> Context:
    """The context for one bundle; `config_sha256` pins the bytes of its `runtime.json`, `platform` is the tag of the
    bundle's own wheel.
    """
    config, profile = request.config, request.profile
    names, version = choose_names(config.name, request.package_name), make_version(request.version)
    components = _make_components(request, profile.title)
    ports = [port for component in components for port in (*component.inputs, *component.outputs)]
    variants = [(config.label(component.name, variant.name), variant) for component, variant in config.pairs]
    return Context(
        package=names.package,
        distribution=names.distribution,
        version=version,
        title=f"{shorten(config.name)} for {config.target}",
        summary=_summarise(config, profile.title),
        bundler_version=bundler.__version__,
        format=request.format,
        artifact=_name_artifact(request.format, names, version, platform),
        backend=BACKEND,
        requirements=list_requirements(profile.runtime),
        requires_python=require_pythons(PythonSettings.of(profile).versions),
        python_versions=PythonSettings.of(profile).versions,
        config_sha256=config_sha256,
        components=components,
        exports=_list_exports(components),
        several=config.sole is None,
        together=config.together,
        uses_numpy=any("np." in port.annotation for port in ports),
        strict=config.fallback == "strict",
        device_copy=any(variant.device_cache for _, variant in variants),
        telemetry=config.telemetry,
        prepared=tuple((label, variant.prepare.thing) for label, variant in variants if variant.prepare),
        compiled=tuple(
            (label, describe_compiled(variant.requires.compiled))
            for label, variant in variants
            if variant.requires.compiled
        ),
        plugins=tuple(f"{name} {version}" for name, version in sorted(profile.runtime.plugins.items())),
        runtime=f"{profile.runtime.package} {profile.runtime.version}",
        device=describe_device(request),
        pipeline=tuple(request.pipeline),
        pipeline_function=request.pipeline_function,
        pipeline_requires=request.pipeline_requires,
        pipeline_locked=bool(request.pipeline_pins),
    )


def _summarise(config: RuntimeConfig, title: str) -> str:
    """What is in the bundle, and what it is built for."""
    if config.sole:
        return f"The ONNX model {shorten(config.sole.model)}, built for {title}."
    *others, last = [component.name for component in config.components]
    return f"The ONNX models {', '.join(others)} and {last}, built for {title}."


_EXPORTS = ("ClosedError", "FallbackError", "FallbackWarning", "IncompatibleError", "InputError", "IntegrityError")


def _list_exports(components: tuple[ComponentContext, ...]) -> tuple[str, ...]:
    """All that users import from the package, in order."""
    classes = [name for component in components for name in (component.model_class, component.outputs_class)]
    streams = [component.stream for component in components if component.stream is not None]
    classes += [name for stream in streams for name in (stream.stream_class, stream.outputs_class)]
    bundle = ("Bundle",) if len(components) > 1 else ()
    return tuple(sorted((*bundle, "BundleError", *_EXPORTS, "LoadReport", "SelfTestError", *classes)))


def describe_classes(config: RuntimeConfig) -> dict[str, dict[str, Any]]:
    """By component, what the classes that an app imports must be: what verification calls, whatever they are."""
    return {
        component.name: {
            "class": classes[0],
            "model_digest": component.model_digest,
            "golden": component.golden,
            "golden_digest": component.golden_digest,
            "inputs": _name_ports(component.signature.inputs, "input", RESERVED_INPUTS | set(classes)),
            "outputs": _name_ports(component.signature.outputs, "output", RESERVED_OUTPUTS),
            "unstable": list(component.unstable_outputs),
            "state": {link.input: link.output for link in component.state},
        }
        for component, classes in zip(config.components, _name_classes(config), strict=True)
    }


def _name_classes(config: RuntimeConfig) -> tuple[tuple[str, str], ...]:
    return (("Model", "Outputs"),) if config.sole else name_classes([component.name for component in config.components])


def _name_ports(ports: tuple[Port, ...], stem: str, reserved: frozenset[str]) -> dict[str, str]:
    names = [port.name for port in ports]
    return dict(zip(names, make_identifiers(names, stem, reserved), strict=True))


def _make_components(request: EmitRequest, title: str) -> tuple[ComponentContext, ...]:
    config = request.config
    classes = _name_classes(config)
    if not config.sole:
        _check_streams(config, classes)
    return tuple(
        _make_component(*pair, title, request.components[pair[0].name], several=not config.sole)
        for pair in zip(config.components, classes, strict=True)
    )


def _check_streams(config: RuntimeConfig, classes: Sequence[tuple[str, str]]) -> None:
    """Raise `UsageError` where the class of a stream is that of another component: `detect` and `detect_stream`."""
    names = {name: component.name for component, pair in zip(config.components, classes, strict=True) for name in pair}
    for component, pair in zip(config.components, classes, strict=True):
        if component.state and f"{pair[0]}Stream" in names:
            raise UsageError(
                f"the stream of component {component.name} would have the class of {names[f'{pair[0]}Stream']}",
                hint="rename one of the two components",
            )


def _make_component(
    component: RuntimeComponent,
    classes: tuple[str, str],
    title: str,
    built: BuiltComponent,
    *,
    several: bool,
) -> ComponentContext:
    sizes = read_sizes(built.golden)
    signature, name = component.signature, component.name if several else shorten(component.model)
    inputs = _make_ports(signature.inputs, "input", RESERVED_INPUTS | set(classes))
    outputs = _make_ports(signature.outputs, "output", RESERVED_OUTPUTS)
    return ComponentContext(
        name=component.name,
        model_class=classes[0],
        outputs_class=classes[1],
        summary=f"The ONNX model {name}, built for {title}.",
        inputs=inputs,
        outputs=outputs,
        batch=None if component.state else find_batch(signature),
        stream=_make_stream(component, classes, inputs, outputs),
        example=tuple(f"{port.python_name}=…" for port in inputs if not port.optional),
        call=tuple(
            f"{made.python_name}={_write_array(port, sizes.get(port.name), mask=built.facts.is_mask(port))}"
            for port, made in zip(signature.inputs, inputs, strict=True)
            if not port.optional
        ),
        variants=tuple(variant.name for variant in component.variants),
        preprocessing=describe_recorded_preprocessing(component.preprocessing),
        metadata=describe_metadata(component),
    )


def _make_stream(
    component: RuntimeComponent,
    classes: tuple[str, str],
    inputs: tuple[PortContext, ...],
    outputs: tuple[PortContext, ...],
) -> StreamContext | None:
    """Beside `Detect` it is `DetectStream`; beside `Model`, `Stream`."""
    if not component.state:
        return None
    stem = "" if classes[0] == "Model" else classes[0]
    taken, given = {link.input for link in component.state}, {link.output for link in component.state}
    growing = {link.input for link in component.state if link.grows is not None}
    return StreamContext(
        stream_class=f"{stem}Stream",
        outputs_class=f"{stem}StreamOutputs",
        inputs=tuple(port for port in inputs if port.name not in taken),
        outputs=tuple(port for port in outputs if port.name not in given),
        state=tuple(port.python_name for port in inputs if port.name in taken),
        growing=tuple(port.python_name for port in inputs if port.name in growing),
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
    names = _name_ports(ports, stem, reserved)
    return tuple(_make_port(port, names[port.name], is_input=stem == "input") for port in ports)


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
        text += ", default: the model's own"
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


def _write_array(port: Port, sizes: Sequence[int] | None, *, mask: bool) -> str:
    """An array of these sizes: `np.zeros((1, 3), np.float32)`; `…` for a value of another kind; ones for a mask."""
    name = NUMPY_TYPES.get(port.type.element_type or "")
    if port.type.kind != "tensor" or name is None or sizes is None:
        return "…"
    if port.type.element_type == "str":
        return f"np.full({tuple(sizes)}, '…', np.{name})"
    made = "ones" if mask else "zeros"
    return f"np.{made}({tuple(sizes)}, np.{name})"


def _scalar(element_type: str | None) -> str:
    if element_type == "str":
        return "str"
    if element_type is None:
        return "Any"
    return "float" if "float" in element_type else "int"
