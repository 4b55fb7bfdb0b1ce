"""What the templates are rendered from: a function of the request, its golden sets, and the files of the bundle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import bundler
from bundler.devices.browser.headers import ISOLATION, POLICY
from bundler.emitters.contract import BuiltComponent, EmitRequest
from bundler.emitters.device import DeviceContext, describe_device
from bundler.emitters.payload import describe_metadata, describe_recorded_preprocessing, read_sizes
from bundler.emitters.web.imports import SELF_TEST, Import, choose_golden
from bundler.emitters.web.modules import list_loader_modules
from bundler.emitters.web.names import choose_package_name, make_version, name_types
from bundler.emitters.web.parts import Asset
from bundler.emitters.web.profile import WebSettings
from bundler.emitters.web.typescript import annotate_input, annotate_output, write_example
from bundler.emitters.web.vendor import VENDOR
from bundler.model.codec import encode
from bundler.model.runtime import RuntimeComponent, RuntimeConfig
from bundler.model.signature import Port, describe_type
from bundler.model.state import StateLink
from bundler.providers.knowledge import RuntimeBuild
from bundler.support.text import shorten, visible

NODE = ">=20"
_DIRECTIVES = ("default-src", "script-src", "connect-src", "worker-src")
"""The directives of the verification's policy that the loader requires; the others are for the demo page."""

_INLINED = 4096
"""Bytes below which bundlers put a file into the code as a `data:` address, which a strict page refuses to fetch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortContext:
    """One input or output, as the declarations, the README and the demo show it. `annotation` is its TypeScript type,
    `key` its name as far as a person can read it.
    """

    name: str
    key: str
    annotation: str
    type: str
    optional: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleContext:
    """One input of the README's example: `value` is an expression of JavaScript."""

    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartContext:
    """One stored file: its address in the package as `new URL` takes it, and `reference`, the same for build tools."""

    path: str
    reference: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetContext:
    """One file as the loader sees it."""

    path: str
    size: int
    sha256: str
    parts: tuple[PartContext, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantContext:
    """One variant: its name, and the builds of the runtime that it may run on."""

    name: str
    builds: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportContext:
    """One import of the package, with the modules and the files of it. `name` is what an application imports;
    `variants` are its variants by component, `root` leads from its modules to the package's folder.
    """

    name: str
    subpath: str
    stem: str
    entry: str
    node: str
    types: str
    root: str
    runtime: str
    config: str
    index: str
    assets: tuple[AssetContext, ...]
    builds: Mapping[str, RuntimeBuild]
    variants: Mapping[str, tuple[str, ...]]
    runs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentContext:
    """One component: its name in code and in the declarations, and what it takes and gives."""

    name: str
    type: str
    model: str
    summary: str
    inputs: tuple[PortContext, ...]
    outputs: tuple[PortContext, ...]
    example: tuple[ExampleContext, ...]
    variants: tuple[VariantContext, ...]
    state: tuple[StateLink, ...]
    preprocessing: tuple[str, ...]
    metadata: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """All that the templates of this ecosystem see. Text in it is as the model has it, but for what does not print in
    `title` and `summary` (npm shows them on terminals): each place escapes for itself.
    """

    package: str
    version: str
    artifact: str
    format: str
    title: str
    summary: str
    bundler_version: str
    runtime: str
    node: str
    config_sha256: str
    imports: tuple[ImportContext, ...]
    kept: tuple[str, ...]
    golden: tuple[AssetContext, ...]
    self_test: str
    builds: Mapping[str, RuntimeBuild]
    modules: tuple[str, ...]
    vendor: str
    components: tuple[ComponentContext, ...]
    several: bool
    streams: bool
    together: tuple[str, ...]
    part_mb: str
    split: bool
    isolation: Mapping[str, str]
    policy: str
    precompressed: bool
    private: bool
    strict: bool
    device: DeviceContext


def make_context(
    request: EmitRequest, config_sha256: str, assets: Sequence[Asset], imports: Sequence[Import]
) -> Context:
    """The context for one bundle; the digest is that of its `runtime.json`."""
    settings, profile = request.config, request.profile
    package, version = choose_package_name(settings.name, request.package_name), make_version(request.version)
    title = visible(profile.title)
    return Context(
        package=package,
        version=version,
        artifact=name_artifact(package, version),
        format=request.format,
        title=f"{visible(shorten(settings.sole.model if settings.sole else settings.name))} for {settings.target}",
        summary=_summarise(settings, title),
        bundler_version=bundler.__version__,
        runtime=f"{profile.runtime.package} {profile.runtime.version}",
        node=NODE,
        config_sha256=config_sha256,
        imports=tuple(_make_import(one, package, assets, settings) for one in imports),
        kept=tuple(part.sha256 for asset in imports[0].choose(assets) for part in asset.parts),
        golden=tuple(_make_asset(asset) for asset in choose_golden(settings, assets)),
        self_test=SELF_TEST,
        builds=imports[0].builds,
        modules=list_loader_modules(
            several=settings.sole is None, streams=any(one.state for one in settings.components)
        ),
        vendor=VENDOR,
        components=_make_components(request, title),
        several=settings.sole is None,
        streams=any(one.state for one in settings.components),
        together=settings.together,
        part_mb=f"{WebSettings.of(profile).part_mb:g}",
        isolation=ISOLATION,
        policy="; ".join(f"{name} {POLICY[name]}" for name in _DIRECTIVES),
        split=any(len(asset.parts) > 1 for asset in assets),
        precompressed=WebSettings.of(profile).precompressed,
        private=WebSettings.of(profile).private,
        strict=settings.fallback == "strict",
        device=describe_device(request),
    )


def _make_import(one: Import, package: str, assets: Sequence[Asset], whole: RuntimeConfig) -> ImportContext:
    return ImportContext(
        name=name_import(package, one.subpath),
        subpath=one.subpath,
        stem=one.stem,
        entry=one.entry,
        node=f"{one.entry.removesuffix('.js')}.node.js" if one.subpath else "node.js",
        types=f"{one.entry.removesuffix('.js')}.d.ts",
        root="../" if one.subpath else "./",
        runtime=f"runtime.{one.stem}.js" if one.subpath else "runtime.js",
        config=_write_json(encode(one.config)),
        index=_write_json(_index_imports(one, package, whole), ordered=True),
        assets=tuple(_make_asset(asset) for asset in one.choose(assets)),
        builds=one.builds,
        variants={
            component.name: tuple(variant.name for variant in component.variants) for component in one.config.components
        },
        runs=_describe_variants(one.config),
    )


def _describe_variants(config: RuntimeConfig) -> str:
    """`webgpu (jspi or asyncify), wasm`; by component where they differ."""
    found = {}
    for component in config.components:
        shown = [
            variant.name if variant.builds == (variant.name,) else f"{variant.name} ({' or '.join(variant.builds)})"
            for variant in component.variants
        ]
        found[component.name] = ", ".join(shown)
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    return "; ".join(f"{name}: {shown}" for name, shown in found.items())


def _index_imports(one: Import, package: str, whole: RuntimeConfig) -> dict[str, Any]:
    """What the loader tells of variants that an application does not import: where they are, by component."""
    return {
        "name": name_import(package, one.subpath),
        "whole": package,
        "variants": {
            component.name: {variant.name: name_import(package, variant.name) for variant in component.variants}
            for component in whole.components
        },
    }


def name_import(package: str, subpath: str) -> str:
    """`orientation/wasm`, as an application names it."""
    return f"{package}/{subpath}" if subpath else package


def _write_json(value: Any, *, ordered: bool = False) -> str:
    """`ordered` keeps the order of keys, which for variants is that of preference."""
    return json.dumps(value, separators=(",", ":"), sort_keys=not ordered, ensure_ascii=True, allow_nan=False)


def _summarise(config: RuntimeConfig, title: str) -> str:
    """What is in the package, and what it is built for."""
    *others, last = [visible(shorten(component.model)) for component in config.components]
    named = f"models {', '.join(others)} and {last}" if others else f"model {last}"
    return f"The ONNX {named}, built for {title}."


def _make_components(request: EmitRequest, title: str) -> tuple[ComponentContext, ...]:
    config = request.config
    types = ("Model",) if config.sole else name_types([component.name for component in config.components])
    return tuple(
        _make_component(component, type_, title, request.components[component.name])
        for component, type_ in zip(config.components, types, strict=True)
    )


def _make_component(component: RuntimeComponent, type_: str, title: str, built: BuiltComponent) -> ComponentContext:
    sizes = read_sizes(built.golden)
    signature, model = component.signature, visible(shorten(component.model))
    return ComponentContext(
        name=component.name,
        type=type_,
        model=model,
        summary=f"The ONNX model {model}, built for {title}.",
        inputs=tuple(_make_port(port, annotate_input(port.type)) for port in signature.inputs),
        outputs=tuple(_make_port(port, annotate_output(port.type)) for port in signature.outputs),
        example=tuple(
            ExampleContext(
                key=shorten(port.name),
                value=write_example(port, sizes.get(port.name), mask=built.facts.is_mask(port)),
            )
            for port in signature.inputs
            if not port.optional
        ),
        variants=tuple(VariantContext(name=variant.name, builds=variant.builds) for variant in component.variants),
        state=component.state,
        preprocessing=describe_recorded_preprocessing(component.preprocessing),
        metadata=describe_metadata(component),
    )


def name_artifact(package: str, version: str) -> str:
    """The file name of the packed form, as npm names it."""
    plain = package.removeprefix("@").replace("/", "-")
    return f"{plain}-{version.replace('+', '-')}.tgz"


def _make_port(port: Port, annotation: str) -> PortContext:
    return PortContext(
        name=port.name,
        key=shorten(port.name),
        annotation=annotation,
        type=shorten(describe_type(port.type)),
        optional=port.optional,
    )


def _make_asset(asset: Asset) -> AssetContext:
    parts = tuple(
        PartContext(path=quote(part.path), reference=_refer(part.path, part.size), size=part.size, sha256=part.sha256)
        for part in asset.parts
    )
    return AssetContext(path=asset.path, size=asset.size, sha256=asset.sha256, parts=parts)


def _refer(path: str, size: int) -> str:
    """A relative address. The query keeps bundlers from putting a small file into the code; servers ignore it."""
    return f"./{quote(path)}{'?no-inline' if size < _INLINED else ''}"
