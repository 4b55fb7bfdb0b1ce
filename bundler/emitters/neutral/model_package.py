"""ONNX Runtime's own model package, written around the same folder: `manifest.json` beside `runtime.json`.

The layout is that of schema 1.0 (`model_package/README.md` of ONNX Runtime, read with 1.31.1); docs/ortpackage.md says
what was tested, and what the format cannot express.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from bundler.emitters.contract import EmitRequest
from bundler.emitters.neutral.project import write_folder
from bundler.emitters.writing import write_text
from bundler.model.errors import UsageError
from bundler.model.proof import Emitted
from bundler.model.runtime import RuntimeConfig, RuntimeVariant
from bundler.profiles.schema import Runtime, TargetProfile
from bundler.support.text import visible

SCHEMA = "1.0"
MANIFEST = "manifest.json"
DOCUMENTATION = "docs/ortpackage.md"

_OLDEST = (1, 28)
"""The first release of the runtime that reads schema 1."""

_FORBIDDEN = (
    "session.debug_layout_transformation",
    "session.collect_node_memory_stats_to_file",
    "session.enable_profiling",
    "session.optimized_model_filepath",
)
"""Entries that the reader of packages refuses, because they write files."""

_UNSAID = {
    "chain": "provider chains: a variant has one provider, and the runtime appends its CPU provider by itself",
    "session": "session options that are not configuration entries (threads, optimisation level): "
    "the runtime's defaults apply, unless you pass others",
    "optimizers": "optimisers that must not run at load time (`disabled_optimizers`): with "
    "the runtime's defaults they run, and the graph differs from the verified one",
    "select": "which of a plugin's devices to use",
    "deferred": "files generated on the device: opened from the package, such a variant starts without them",
    "together": "which components must run on the variant of one name",
    "state": "which outputs are inputs of the next call",
    "metadata": "the original model's metadata: use runtime.json",
    "requires": "the exact versions of the runtime and its plugins, and the minimum share of assigned nodes",
    "integrity": "digests of files: use bundle.json",
}


def write_model_package(request: EmitRequest, folder: Path) -> Emitted:
    """Write the folder with a manifest. Raises `UsageError` where the target's runtime cannot open such packages."""
    _check_target(request.profile)
    _check_entries(request.config)
    emitted = write_folder(request, folder, tuple(list_unsaid(request.config)))
    write_text(folder / MANIFEST, render_manifest(request.config, request.version))
    return emitted


def render_manifest(config: RuntimeConfig, version: str) -> str:
    """The text of `manifest.json`. Variants keep their order: where two fit equally, the runtime takes the first."""
    data = {
        "schema_version": SCHEMA,
        "package_name": visible(config.name),
        "package_version": visible(version),
        "layout": "portable",
        "components": {
            component.name: {"variants": {variant.name: _describe(variant) for variant in component.variants}}
            for component in config.components
        },
    }
    return json.dumps(data, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def list_unsaid(config: RuntimeConfig) -> Iterator[str]:
    """What this configuration has and a package cannot express, one line each."""
    variants = [variant for _, variant in config.pairs]
    present = {
        "chain": any(len(variant.providers) > 1 for variant in variants),
        "session": any(variant.session for variant in variants),
        "optimizers": any(variant.disabled_optimizers for variant in variants),
        "select": any(entry.select for variant in variants for entry in variant.providers),
        "deferred": any(variant.prepare for variant in variants),
        "together": bool(config.together),
        "state": any(component.state for component in config.components),
        "metadata": any(component.metadata for component in config.components),
    }
    return (text for name, text in _UNSAID.items() if present.get(name, True))


def _describe(variant: RuntimeVariant) -> dict[str, Any]:
    """Without `device`: the reader (1.31.1) rejects a variant that has one when the session names no device."""
    model = PurePosixPath(variant.model)
    first, compiled = variant.providers[0], variant.requires.compiled
    orders: dict[str, Any] = {"model_file": model.name}
    if variant.session_config:
        orders["session_options"] = dict(sorted(variant.session_config.items()))
    if first.options:
        orders["provider_options"] = dict(sorted(first.options.items()))
    described = {"variant_directory": model.parent.as_posix(), "ep": first.name, "executor_info": {"ort": orders}}
    if compiled is not None and compiled.statement:
        described["compatibility_string"] = compiled.statement
    return described


def _check_target(profile: TargetProfile) -> None:
    runtime = profile.runtime
    if profile.platform.system == "web":
        _refuse("applications on the web cannot open model packages: the runtime's JavaScript has no call for it")
    if _release(runtime) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        _refuse(f"{runtime.package} {runtime.version} cannot open model packages: {oldest} was the first")


def _release(runtime: Runtime) -> tuple[int, ...]:
    """The first two numbers of its version."""
    from packaging.version import Version  # noqa: PLC0415 (only this format asks)

    return Version(runtime.version).release[:2]


def _check_entries(config: RuntimeConfig) -> None:
    found = sorted({key for _, variant in config.pairs for key in variant.session_config if key in _FORBIDDEN})
    if found:
        _refuse(f"a model package must not set {', '.join(found)}: its reader refuses entries that write files")


def _refuse(message: str) -> None:
    raise UsageError(message, hint=f"--format files writes the same folder without a manifest; see {DOCUMENTATION}")
