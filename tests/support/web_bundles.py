"""Emit requests for the web: tiny models, inspected and recorded by the real stages, shipped as they are."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import onnx

from bundler.emitters.contract import EmitRequest
from bundler.model.artifacts import Artifact
from bundler.model.runtime import Compatibility, ProviderEntry, RuntimeVariant
from bundler.profiles.schema import Bundle, Platform, Provider, Runtime, TargetProfile, Variant, WebSettings
from tests.support.bundles import make_request, model_artifact

RUNTIME = "1.30.0"
CHAINS = {
    "webgpu": (("webgpu", "wasm"), ("jspi", "asyncify")),
    "wasm": (("wasm",), ("wasm",)),
}
"""Providers and builds of each variant."""


def make_web_request(
    model: onnx.ModelProto, folder: Path, variants: tuple[str, ...] = ("wasm",), **changes: Any
) -> EmitRequest:
    """A request to bundle `model` for browsers; `changes` replace its fields or those of its configuration."""
    web = changes.pop("web", WebSettings())
    request = make_request(model, folder, **changes)
    artifact = model_artifact(request)
    outcome = next(iter(request.models.values()))
    config = dataclasses.replace(
        request.config,
        target=changes.get("target", "web-wasm"),
        variants=tuple(make_web_variant(name, variants[0], artifact) for name in variants),
    )
    return dataclasses.replace(
        request,
        config=config,
        profile=make_profile(variants, web),
        models=dict.fromkeys(variants, outcome),
        build="tiny → web-wasm",
    )


def make_web_variant(name: str, folder: str, artifact: Artifact) -> RuntimeVariant:
    """A variant as the planner makes it; equal models share one folder."""
    providers, builds = CHAINS[name]
    files = tuple(dataclasses.replace(record, path=f"models/{folder}/{record.path}") for record in artifact.files)
    return RuntimeVariant(
        name=name,
        model=files[0].path,
        files=files,
        providers=tuple(ProviderEntry(name=provider, options={}) for provider in providers),
        session={"graph_optimization_level": "ORT_DISABLE_ALL"},
        session_config={},
        disabled_optimizers=(),
        requires=Compatibility(systems=("Emscripten",), machines=("wasm32",), runtime=RUNTIME),
        builds=builds,
    )


def make_profile(variants: tuple[str, ...], web: WebSettings) -> TargetProfile:
    """A profile for browsers."""
    return TargetProfile(
        id="web-wasm",
        title="Browsers, on the CPU",
        group="Web",
        platform=Platform(system="web", architecture="wasm32"),
        runtime=Runtime(package="onnxruntime-web", version=RUNTIME),
        variants=tuple(Variant(name=name, providers=(Provider(name=name),)) for name in variants),
        bundle=Bundle(ecosystem="web"),
        web=web,
    )
