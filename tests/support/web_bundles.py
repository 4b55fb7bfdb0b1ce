"""Emit requests for the web: tiny models, inspected and recorded by the real stages, shipped as they are.

The runtime is a stand-in of a few bytes, so that nothing is fetched; other `environments` bring the real one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx

from bundler.emitters.contract import EmitRequest
from bundler.emitters.web.npm import name_lock
from bundler.emitters.web.npm_store import KEPT
from bundler.emitters.web.vendor import list_builds
from bundler.environments.registry import Environment, Environments
from bundler.model.artifacts import Artifact
from bundler.model.events import SILENT, Reporter
from bundler.model.runtime import Compatibility, Gate, ProviderEntry, RuntimeVariant, Tolerance
from bundler.profiles.resolve import resolve_target
from tests.support.bundles import make_request, model_artifact, with_variants

RUNTIME = "1.30.0"
CHAINS = {
    "webgpu": (("webgpu",), ("jspi", "asyncify")),
    "wasm": (("wasm",), ("wasm",)),
}
"""Providers and builds of each variant."""


def make_web_request(
    model: onnx.ModelProto, folder: Path, variants: tuple[str, ...] = ("wasm",), **changes: Any
) -> EmitRequest:
    """A request to bundle `model` for browsers; `changes` replace its fields or those of its configuration."""
    target = "web-wasm" if variants == ("wasm",) else "web-webgpu"
    profile = resolve_target(target, changes.pop("web_overrides", ()))
    changes.setdefault("environments", make_stand_in(folder / "cache"))
    request = make_request(model, folder, **changes)
    artifact = model_artifact(request)
    made = tuple(make_web_variant(name, variants[0], artifact) for name in variants)
    return dataclasses.replace(
        with_variants(request, *made, target=target),
        profile=profile,
        reporter=Reporter(build=f"tiny → {target}"),
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
        gate=Gate(default=Tolerance(absolute=1e-5, relative=1e-4, sqnr_db=40.0)),
        builds=builds,
    )


class StandIn(Environments):
    """Environments whose runtime is a few bytes, kept as if it had been fetched."""

    def resolve(self, name: str, packages: Sequence[str] = (), reporter: Reporter = SILENT) -> Environment:
        """An environment with the licence texts, and nothing that runs."""
        del packages, reporter
        site = self.root / "site"
        package = site / "lib" / "python3.11" / "site-packages" / "onnxruntime"
        package.mkdir(parents=True, exist_ok=True)
        (package / "LICENSE").write_text("MIT License\n")
        (package / "ThirdPartyNotices.txt").write_text("Notices\n")
        return Environment(name=name, python=site / "bin" / "python", versions={}, digest="", python_version="3.11")


def make_stand_in(cache_root: Path) -> Environments:
    """The stand-in with its runtime, below `cache_root`."""
    data = _pack_runtime()
    digest = hashlib.sha256(data).hexdigest()
    place = cache_root / KEPT / digest[:2] / digest
    place.mkdir(parents=True)
    (place / f"onnxruntime-web-{RUNTIME}.tgz").write_bytes(data)
    lock = f"onnxruntime-web=={RUNTIME} --hash=sha256:{digest}\n"
    return StandIn(cache_root, {name_lock("onnxruntime-web", RUNTIME): lock})


def runtime_file(name: str) -> bytes:
    """The content of a file of the stand-in."""
    if name.endswith(".mjs"):
        return f"export const name = {name!r};\n".encode()
    return b"\0asm\1\0\0\0" + name.encode() * 800


def _pack_runtime() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for build in list_builds().values():
            for name in (build.module, build.binary):
                data = runtime_file(name)
                entry = tarfile.TarInfo(f"package/dist/{name}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()
