"""The rendered files of a bundle, as text, for any names."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from bundler.devices.browser.headers import render_policy
from bundler.emitters.contract import EmitRequest
from bundler.emitters.rendering import load_template, make_environment
from bundler.emitters.web.context import make_context
from bundler.emitters.web.demo import DemoContext, Resource
from bundler.emitters.web.downloads import Share
from bundler.emitters.web.imports import list_imports
from bundler.emitters.web.parts import Asset
from bundler.emitters.web.project import PER_IMPORT
from bundler.model.artifacts import FileRecord
from bundler.model.proof import Download, DownloadFile
from bundler.model.runtime import RuntimeComponent
from bundler.model.signature import Port, Signature, ValueType
from bundler.support.data import data_root
from tests.support.bundles import with_component

DIGEST = "0" * 64
ASSETS = (
    Asset(
        path="vendor/ort-wasm-simd-threaded.wasm",
        size=30_000_000,
        sha256=DIGEST,
        parts=tuple(
            FileRecord(path=f"vendor/ort-wasm-simd-threaded.wasm.00{n}", size=15_000_000, sha256=DIGEST) for n in (0, 1)
        ),
    ),
    Asset(
        path="payload/golden/index.json",
        size=700,
        sha256=DIGEST,
        parts=(FileRecord(path="payload/golden/index.json", size=700, sha256=DIGEST),),
    ),
)
RUNTIME = DownloadFile(path="vendor/ort.wasm", size=15_000_000, gzip=4_200_000, brotli=2_800_000)
DOWNLOADS = (Download(variant="wasm", build="wasm", browsers="all", files=(RUNTIME,)),)
SHARES = (
    Share(subpath="", files=(RUNTIME,), code=90_000),
    Share(subpath="wasm", files=(RUNTIME,), code=80_000),
    Share(subpath="self-test", files=(RUNTIME,), code=30_000),
)
_FILE = Resource(path="demo.js", sha256_base64="AA==")
DEMO = DemoContext(page_policy=render_policy(), stylesheet=_FILE, entry=_FILE, preloads=(_FILE,))

MIXED = Signature(
    inputs=(
        Port(name="input:0", type=ValueType(element_type="float32", shape=("batch", 3, None))),
        Port(name="class", type=ValueType(element_type="str", shape=())),
        Port(name="ids", type=ValueType(element_type="int64", shape=("batch", 128))),
        Port(name="half", type=ValueType(element_type="float16", shape=(4,))),
        Port(name="bias", type=ValueType(element_type="uint8", shape=None), optional=True),
    ),
    outputs=(
        Port(name="scores", type=ValueType(element_type="float32", shape=("batch", 10))),
        Port(name="mask", type=ValueType(element_type="bool", shape=("batch",))),
        Port(
            name="probabilities",
            type=ValueType(
                kind="sequence",
                element=ValueType(kind="map", key_type="int64", element=ValueType(element_type="float32", shape=())),
            ),
        ),
    ),
)


MIXED_SIZES = {"input:0": (2, 3, 5), "class": (), "ids": (2, 128), "half": (4,)}


def with_mixed(request: EmitRequest, folder: Path, **changes: Any) -> EmitRequest:
    """`request` of one model with the signature `MIXED`, and a golden set of `MIXED_SIZES`."""
    inputs = {name: {"kind": "tensor", "shape": sizes} for name, sizes in MIXED_SIZES.items()}
    (folder / "index.json").write_text(json.dumps({"samples": [{"inputs": inputs}]}), "utf-8")
    components = {name: dataclasses.replace(component, golden=folder) for name, component in request.components.items()}
    return with_config(dataclasses.replace(request, components=components), signature=MIXED, **changes)


def with_config(request: EmitRequest, **changes: Any) -> EmitRequest:
    """`request` of one model with `changes` of its component, or of its configuration."""
    own = {field.name for field in dataclasses.fields(RuntimeComponent)} - {"name"}
    changed = with_component(request, **{key: value for key, value in changes.items() if key in own})
    rest = {key: value for key, value in changes.items() if key not in own}
    return dataclasses.replace(changed, config=dataclasses.replace(changed.config, **rest))


def render_all(request: EmitRequest) -> dict[str, str]:
    """Every rendered file by its path in the bundle."""
    context = make_context(request, DIGEST, ASSETS, list_imports(request.config))
    fields = {
        field.name: getattr(value, field.name) for value in (context, DEMO) for field in dataclasses.fields(value)
    } | {"downloads": DOWNLOADS, "whole": DOWNLOADS[0], "shares": SHARES, "own": context.imports[0]}
    environment = make_environment(data_root("templates") / "web")
    rendered = load_template("web").rendered
    found = {target: environment.get_template(source).render(fields) for source, target in rendered.items()}
    for one in context.imports[1:]:
        for source, target in PER_IMPORT.items():
            found[target.format(stem=one.stem)] = environment.get_template(source).render({**fields, "own": one})
    return found
