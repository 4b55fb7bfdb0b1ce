"""What the templates of bundles in Kotlin are rendered from: a pure function of the request."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import bundler
from bundler.emitters.contract import EmitRequest
from bundler.emitters.device import DeviceContext, describe_device
from bundler.emitters.jvm.names import choose_names, make_properties, make_version, name_getter, name_types
from bundler.emitters.jvm.preparation import Ecosystem, PreparationContext, describe_preparation, list_classes
from bundler.emitters.maps import advise_on_maps
from bundler.emitters.payload import describe_metadata, describe_recorded_preprocessing
from bundler.model.errors import UsageError
from bundler.model.facts import ModelFacts
from bundler.model.runtime import RuntimeComponent, RuntimeConfig
from bundler.model.signature import Port, Signature, ValueType, describe_type
from bundler.support.text import shorten, visible

ELEMENTS: Final = {
    "float32": "FLOAT32",
    "float64": "FLOAT64",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "uint8": "UINT8",
    "bool": "BOOL",
    "str": "STRING",
}
"""Types of elements that the runtime's Java API has (`ai.onnxruntime.OnnxJavaType` 1.28.0), by the loader's names."""

_LAST_CODE: Final = 0xFFFF
"""Java's native interface writes a NUL, and what is beyond, in another form of UTF-8 than the runtime reads (Java
Native Interface specification, "Modified UTF-8 Strings"; measured).
"""

_VIEWS: Final = {
    "float32": ("floats", "1f"),
    "float64": ("doubles", "1.0"),
    "float16": ("shorts", "0x3C00"),
    "bfloat16": ("shorts", "0x3F80"),
    "int16": ("shorts", "1"),
    "int32": ("ints", "1"),
    "int64": ("longs", "1"),
}
"""What reads and writes the elements of a type, and how a one is written in it; bytes for all others."""
_JAVA_CASTS: Final = {"bytes": "(byte) ", "shorts": "(short) "}


@dataclass(frozen=True, slots=True, kw_only=True)
class PortContext:
    """One input or output. `property` is its name in Kotlin, `type` what a person reads, and `element` the loader's
    name of its element type. `sizes` are expressions for a tensor of it, None where its rank is not known.
    """

    property: str
    name: str
    type: str
    element: str
    optional: bool
    sizes: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamContext:
    """What one step of a stream takes and gives."""

    inputs: tuple[PortContext, ...]
    outputs: tuple[PortContext, ...]
    state: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentContext:
    """One model: `property` is its member in a bundle of several, `type` its class. `dimensions` are the parameters of
    the sizes that its inputs leave open; with `fixed` all sizes of its outputs are known. `fills` and `java_fills` are
    statements of an example that fill `inputs`. Inputs of text cannot be allocated: `makes` and `java_makes` are
    expressions for each required input of such a model, empty for others.
    """

    name: str
    property: str
    type: str
    summary: str
    inputs: tuple[PortContext, ...]
    outputs: tuple[PortContext, ...]
    dimensions: tuple[str, ...]
    fixed: bool
    stream: StreamContext | None
    variants: tuple[str, ...]
    preprocessing: tuple[str, ...]
    metadata: tuple[str, ...]
    preparation: PreparationContext | None
    fills: tuple[str, ...]
    java_fills: tuple[str, ...]
    makes: tuple[str, ...]
    java_makes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """All that the templates see. Text in it is raw: each place escapes for itself. `type` is the class that is opened:
    the bundle's where there are several models, else the model's.
    """

    package: str
    loader: str
    group: str
    artifact: str
    version: str
    type: str
    title: str
    summary: str
    bundler_version: str
    config_sha256: str
    runtime: str
    components: tuple[ComponentContext, ...]
    several: bool
    together: tuple[str, ...]
    generated: tuple[str, ...]
    strict: bool
    device: DeviceContext
    preparation_classes: tuple[str, ...]


def make_context(request: EmitRequest, config_sha256: str, family: Mapping[str, Ecosystem]) -> Context:
    """The context of one bundle; `config_sha256` pins the bytes of its `runtime.json`, and `family` is what the
    ecosystem adds to the preparation of raw inputs. Raises `UsageError` for a model with inputs or outputs that the
    loader cannot hold.
    """
    config, profile = request.config, request.profile
    names = choose_names(config.name, request.package_name)
    components = _make_components(request, names.type, family)
    title = visible(profile.title)
    models = ", ".join(visible(shorten(component.model)) for component in config.components)
    return Context(
        package=names.package,
        loader=names.loader,
        group=names.group,
        artifact=names.artifact,
        version=make_version(request.version),
        type=name_bundle(config, names.type),
        title=f"{visible(shorten(config.name))} for {config.target}",
        summary=f"The ONNX model{'' if config.sole else 's'} {models}, built for {title}.",
        bundler_version=bundler.__version__,
        config_sha256=config_sha256,
        runtime=profile.runtime.version,
        components=components,
        several=config.sole is None,
        together=config.together,
        generated=_list_generated(config),
        strict=config.fallback == "strict",
        device=describe_device(request),
        preparation_classes=list_classes(config, family),
    )


def _list_generated(config: RuntimeConfig) -> tuple[str, ...]:
    """The variants that need something generated on the device, with its name."""
    return tuple(
        f"{config.label(component.name, variant.name)} ({variant.prepare.thing})"
        for component, variant in config.pairs
        if variant.prepare
    )


def _make_components(request: EmitRequest, type_: str, family: Mapping[str, Ecosystem]) -> tuple[ComponentContext, ...]:
    config = request.config
    return tuple(
        _make_component(component, names, family, request.components[component.name].facts)
        for component, names in zip(config.components, _name_components(config, type_), strict=True)
    )


def _name_components(config: RuntimeConfig, type_: str) -> tuple[tuple[str, str], ...]:
    """The member and the class of each model; of one alone they are the class that is opened."""
    if config.sole:
        return ((type_, type_),)
    names = [component.name for component in config.components]
    return tuple(zip(make_properties(names, "model"), name_types(names, type_), strict=True))


def name_bundle(config: RuntimeConfig, type_: str) -> str:
    """The class that is opened."""
    return type_ if config.sole else f"{type_}Bundle"


def describe_classes(config: RuntimeConfig, package: str, type_: str) -> dict[str, dict[str, Any]]:
    """By component, what the classes that an app imports must be: what verification calls, whatever they are."""
    return {
        component.name: {
            "class": f"{package}.{names[1]}",
            "getter": None if config.sole else name_getter(names[0]),
            "golden": component.golden,
            "inputs": _name_getters(component.signature.inputs, "input"),
            "outputs": _name_getters(component.signature.outputs, "output"),
            "unstable": list(component.unstable_outputs),
            "state": {link.input: link.output for link in component.state},
            "fixed": all(_is_fixed(port) for port in component.signature.outputs),
        }
        for component, names in zip(config.components, _name_components(config, type_), strict=True)
    }


def _name_getters(ports: tuple[Port, ...], stem: str) -> dict[str, str]:
    names = [port.name for port in ports]
    return dict(zip(names, map(name_getter, make_properties(names, stem)), strict=True))


def _make_component(
    component: RuntimeComponent, names: tuple[str, str], family: Mapping[str, Ecosystem], facts: ModelFacts
) -> ComponentContext:
    (property_, type_), signature = names, component.signature
    inputs, outputs = _make_ports(signature.inputs, "input"), _make_ports(signature.outputs, "output")
    taken = {link.input for link in component.state}
    given = {link.output for link in component.state}
    stream = StreamContext(
        inputs=tuple(port for port in inputs if port.name not in taken),
        outputs=tuple(port for port in outputs if port.name not in given),
        state=tuple(shorten(link.input) for link in component.state),
    )
    return ComponentContext(
        name=component.name,
        property=property_,
        type=type_,
        summary=f"The ONNX model {visible(shorten(component.model))}.",
        inputs=inputs,
        outputs=outputs,
        dimensions=_list_dimensions(inputs),
        fixed=all(_is_fixed(port) for port in signature.outputs),
        stream=stream if component.state else None,
        variants=tuple(variant.name for variant in component.variants),
        preprocessing=describe_recorded_preprocessing(component.preprocessing),
        metadata=describe_metadata(component),
        preparation=describe_preparation(component, [port.property for port in inputs], family),
        fills=_write_fills(signature, inputs, facts, java=False),
        java_fills=_write_fills(signature, inputs, facts, java=True),
        makes=_write_makes(inputs, java=False),
        java_makes=_write_makes(inputs, java=True),
    )


def _write_makes(inputs: tuple[PortContext, ...], *, java: bool) -> tuple[str, ...]:
    """One tensor for each input, with 1 for each size that is open. Java has no names of arguments, so that those of
    optional inputs would have to be given, too.
    """
    required = [port for port in inputs if not port.optional]
    if not any(port.element == "STRING" for port in required) or (java and len(required) < len(inputs)):
        return ()
    made = []
    for port in required:
        if port.sizes is None:
            return ()
        sizes = [int(size) if size.isdigit() else 1 for size in port.sizes]
        made.append(
            _make_in_java(port.element, sizes) if java else f"{port.property} = {_make_in_kotlin(port.element, sizes)}"
        )
    return tuple(made)


def _make_in_kotlin(element: str, sizes: list[int]) -> str:
    shape = "".join(f", {size}L" for size in sizes)
    if element == "STRING":
        return f'Tensor.strings(Array({math.prod(sizes)}) {{ "text" }}{shape})'
    return f"Tensor.of(ElementType.{element}{shape})"


def _make_in_java(element: str, sizes: list[int]) -> str:
    shape = "".join(f", {size}" for size in sizes)
    if element == "STRING":
        return f'Tensor.strings(Collections.nCopies({math.prod(sizes)}, "text").toArray(new String[0]){shape})'
    return f"Tensor.of(ElementType.{element}{shape})"


def _write_fills(
    signature: Signature, inputs: tuple[PortContext, ...], facts: ModelFacts, *, java: bool
) -> tuple[str, ...]:
    """One element of the first input that is no mask, and ones in all of a mask, which lets everything through."""
    pairs = [(port, made) for port, made in zip(signature.inputs, inputs, strict=True) if not port.optional]
    masks = [pair for pair in pairs if facts.is_mask(pair[0])]
    others = [pair for pair in pairs if pair not in masks and "0" not in (pair[1].sizes or ())]
    write = _fill_in_java if java else _fill_in_kotlin
    return tuple(
        write(made.property, *_VIEWS.get(port.type.element_type or "", ("bytes", "1")), whole=whole)
        for chosen, whole in ((others[:1], False), (masks, True))
        for port, made in chosen
    )


def _fill_in_kotlin(property_: str, view: str, one: str, *, whole: bool) -> str:
    elements = f"inputs.{property_}.{view}()"
    return (
        f"{elements}.let {{ all -> repeat(all.capacity()) {{ all.put(it, {one}) }} }}"
        if whole
        else f"{elements}.put(0, {one})"
    )


def _fill_in_java(property_: str, view: str, one: str, *, whole: bool) -> str:
    tensor, one = f"inputs.get{property_[0].upper()}{property_[1:]}()", f"{_JAVA_CASTS.get(view, '')}{one}"
    if not whole:
        return f"{tensor}.{view}().put(0, {one});"
    return f"for (int place = 0; place < {tensor}.getSize(); place++) {tensor}.{view}().put(place, {one});"


def check_signature(signature: Signature) -> None:
    """Raise `UsageError` for an input or output that the runtime's Java API, or the loader, cannot hold."""
    for port in (*signature.inputs, *signature.outputs):
        _require_tensor(port, advise_on_maps(signature, port))


def _require_tensor(port: Port, advice: str) -> None:
    if any(char == "\0" or ord(char) > _LAST_CODE for char in port.name):
        raise UsageError(
            f"the runtime's Java API cannot pass the name {visible(shorten(port.name))}, which has a NUL or a "
            "character beyond U+FFFF",
            hint="rename that input or output in the model, or write plain files with --format files",
        )
    if port.type.kind == "tensor" and port.type.element_type in ELEMENTS:
        return
    raise UsageError(
        f"{visible(shorten(port.name))} is {visible(describe_type(port.type))}, which a bundle for Java or Android "
        "cannot hold",
        details=(f"it takes tensors of {', '.join(ELEMENTS)}",),
        hint=f"change the model's inputs and outputs to such tensors{advice}, or write plain files with --format files",
    )


def _is_fixed(port: Port) -> bool:
    sizes = port.type.shape
    return port.type.element_type != "str" and sizes is not None and all(isinstance(size, int) for size in sizes)


def _make_ports(ports: tuple[Port, ...], stem: str) -> tuple[PortContext, ...]:
    properties = make_properties([port.name for port in ports], stem)
    sizes = _name_sizes(ports, properties)
    return tuple(
        PortContext(
            property=property_,
            name=port.name,
            type=shorten(describe_type(port.type)),
            element=ELEMENTS[port.type.element_type or ""],
            optional=port.optional,
            sizes=sizes[position],
        )
        for position, (port, property_) in enumerate(zip(ports, properties, strict=True))
    )


def _name_sizes(ports: tuple[Port, ...], properties: tuple[str, ...]) -> list[tuple[str, ...] | None]:
    """For each port the sizes of a tensor of it: numbers, and names for those that the model leaves open."""
    symbols = list(dict.fromkeys(size for port in ports for size in port.type.shape or () if isinstance(size, str)))
    named = dict(zip(symbols, make_properties(symbols, "size"), strict=True))
    taken = {*named.values(), *properties}
    return [_name_axes(port.type, property_, named, taken) for port, property_ in zip(ports, properties, strict=True)]


def _name_axes(value: ValueType, property_: str, named: dict[str, str], taken: set[str]) -> tuple[str, ...] | None:
    if value.shape is None:
        return None
    return tuple(
        str(size) if isinstance(size, int) else named[size] if size else _name_axis(property_, axis, taken)
        for axis, size in enumerate(value.shape)
    )


def _name_axis(property_: str, axis: int, taken: set[str]) -> str:
    name = f"{property_}Axis{axis}"
    while name in taken:
        name += "_"
    return name


def _list_dimensions(inputs: tuple[PortContext, ...]) -> tuple[str, ...]:
    """The parameters for the sizes of required inputs that are not numbers."""
    sizes = (size for port in inputs if not port.optional for size in port.sizes or ())
    return tuple(dict.fromkeys(size for size in sizes if not size.isdigit()))
