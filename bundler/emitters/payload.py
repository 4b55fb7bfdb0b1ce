"""The payload folder of a bundle: `runtime.json`, the golden set and the models, as files of its package."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bundler.emitters.contract import BuiltComponent, EmitRequest
from bundler.emitters.writing import copy_file, copy_tree
from bundler.model.artifacts import FileRecord
from bundler.model.codec import encode, parse_json
from bundler.model.errors import DefectError
from bundler.model.preprocessing import describe_preprocessing, read_record
from bundler.model.runtime import RuntimeComponent, RuntimeConfig, RuntimeVariant
from bundler.support.text import shorten, visible

PAYLOAD = "payload"
CONFIG_NAME = "runtime.json"
MAX_SHOWN_KEYS = 20
"""Maximum number of keys of metadata that a README names; YOLO exports have eleven."""


def render_config(config: RuntimeConfig) -> str:
    """`runtime.json`'s text: sorted keys, ASCII, so that it is the same everywhere."""
    data: Any = encode(config)
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"


def describe_recorded_preprocessing(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What an application must do with images, sound or text, a line a step; empty for a model that takes arrays."""
    return describe_preprocessing(read_record(record)) if record else ()


def describe_metadata(component: RuntimeComponent) -> tuple[str, ...]:
    """The keys of the original model's metadata as a person can read them: never the values, which may be long."""
    keys = sorted(component.metadata)
    more = (f"and {len(keys) - MAX_SHOWN_KEYS} more",) if len(keys) > MAX_SHOWN_KEYS else ()
    return (*(visible(shorten(key)) for key in keys[:MAX_SHOWN_KEYS]), *more)


def copy_payload(request: EmitRequest, payload: Path) -> None:
    """Copy every component's golden set and its variants' files, each file once. Raises `DefectError` when a variant
    has no model.
    """
    copied: dict[str, FileRecord] = {}
    for component in request.config.components:
        built = request.components[component.name]
        copy_tree(built.golden, payload / component.golden)
        for variant in component.variants:
            for file, source in find_variant_files(built, variant):
                if copied.setdefault(file.path, file) is file:
                    copy_file(source, payload / file.path)


def find_variant_files(built: BuiltComponent, variant: RuntimeVariant) -> list[tuple[FileRecord, Path]]:
    """The files of a variant, each with where it is kept. Raises `DefectError` when a step made none of them."""
    sources: dict[tuple[int, str], Path] = {}
    for outcome in built.artifacts[variant.name]:
        if outcome.folder is None or outcome.artifact is None:
            raise DefectError(f"step {outcome.step} made nothing that variant {variant.name} can ship")
        sources |= {(record.size, record.sha256): outcome.folder / record.path for record in outcome.artifact.files}
    return [(file, sources[file.size, file.sha256]) for file in variant.files]


def read_sizes(golden: Path) -> dict[str, Sequence[int]]:
    """The sizes of each input in the first sample of a golden set: at others the model may not run."""
    first = parse_json((golden / "index.json").read_text(encoding="utf-8"))["samples"][0]
    return {name: value["shape"] for name, value in first["inputs"].items() if value["kind"] == "tensor"}
