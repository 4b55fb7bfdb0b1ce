"""Check a compiler's result and write it in one form: files of fixed names, no paths, nothing unused."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import onnx
from google.protobuf.message import DecodeError, EncodeError
from onnx import AttributeProto, ModelProto, NodeProto

from bundler.model.errors import StageError
from bundler.model.signature import Port
from bundler.onnxkit.canonical.tensor_data import DataFolders, embed_nested
from bundler.onnxkit.placement import CONTEXT
from bundler.onnxkit.signatures import LISTED_INITIALIZERS_END, check_interface, model_signature
from bundler.onnxkit.structure import integer_attribute, iterate_graphs, iterate_nodes, keep_only, qualified_name

_STATEMENT: Final = "ep_compatibility_info."
_FILE, _EMBEDDED, _SOURCE, _SDK = "ep_cache_context", "embed_mode", "source", "ep_sdk_version"
_HINT: Final = "the provider's compiler is defective or of an incompatible version: `bundler doctor` shows the versions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A compiled model: its number of `contexts`, the compiler's version, and its statement about devices."""

    model: ModelProto
    contexts: int
    sdk: str
    statement: str


def read_compiled(path: Path, provider: str, before: ModelProto, source: Path) -> Compiled:
    """The compiled model at `path`, its weights included; those of subgraphs may be in the folder `source`. Raises
    `StageError` when it is not as requested.
    """
    model = _load(path)
    embed_nested(model, DataFolders(path, source))
    nodes = _contexts(model)
    own = [node for node in nodes if _text(node, _SOURCE) in ("", provider)]
    if not own:
        found = ", ".join(sorted({_text(node, _SOURCE)[:60] for node in nodes})) or "no provider"
        raise StageError(
            f"the model has no part compiled for {provider}", details=(f"compiled by: {found}",), hint=_HINT
        )
    _check_signature(before, model)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    sdk = next((found for node in own if (found := _text(node, _SDK))), "")
    return Compiled(model=model, contexts=len(own), sdk=sdk, statement=metadata.get(_STATEMENT + provider, ""))


def rename_contexts(models: Sequence[ModelProto], folder: Path) -> None:
    """Give the files of all models fixed names, in the order of their nodes. Raises `StageError` for a missing one."""
    names: dict[str, str] = {}
    for node in (node for model in models for node in _contexts(model)):
        attribute = _attribute(node, _FILE)
        if attribute is None or integer_attribute(node, _EMBEDDED, 1) or not attribute.s:
            continue
        old = attribute.s.decode("utf-8", "replace")
        if old not in names:
            _check_file(folder, old)
            names[old] = f"context_{len(names)}.bin" if names else "context.bin"
        attribute.s = names[old].encode()
    passing = {old: folder / f".{new}" for old, new in names.items()}
    for old, place in passing.items():
        (folder / old).rename(place)
    for old, place in passing.items():
        place.rename(folder / names[old])


def holds_all(model: ModelProto, folder: Path, record: str, items: Sequence[str]) -> bool:
    """Whether the compiled files in `folder` contain `record` with each of `items`."""
    wanted = {record.format(item).encode() for item in items}
    for node in _contexts(model):
        attribute = _attribute(node, _FILE)
        if attribute is not None:
            embedded = integer_attribute(node, _EMBEDDED, 1)
            wanted -= _find_all(attribute.s if embedded else folder / attribute.s.decode(), wanted)
    return not wanted


def _find_all(place: bytes | Path, texts: set[bytes]) -> set[bytes]:
    """The `texts` that occur in bytes or in a file, which may be larger than memory."""
    if isinstance(place, bytes):
        return {text for text in texts if text in place}
    with place.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return {text for text in texts if content.find(text) >= 0}


def write_canonical(model: ModelProto, before: ModelProto, path: Path) -> None:
    """Write the model with its declared interface and only the operator sets that it requires. Raises `StageError`."""
    ports = {port.name for port in model_signature(before).inputs}  # old formats list weights among the inputs
    declared = [*(info for info in before.graph.input if info.name in ports), *before.graph.output]
    for new, old in zip((*model.graph.input, *model.graph.output), declared, strict=True):
        new.type.CopyFrom(old.type)
    used = {node.domain for node in iterate_nodes(model)} | {""}
    keep_only(model.opset_import, lambda item: item.domain in used)
    model.opset_import.sort(key=lambda item: item.domain)
    model.ir_version = max(before.ir_version, LISTED_INITIALIZERS_END)
    for node in _contexts(model):
        node.attribute.sort(key=lambda item: item.name)
    model.metadata_props.sort(key=lambda item: item.key)
    try:
        path.write_bytes(model.SerializeToString(deterministic=True))
    except (EncodeError, ValueError) as cause:
        hint = "store the compiled part in a file next to the model (`embed = false`)"
        raise StageError("the compiled model has more than 2 GB, which its format cannot hold", hint=hint) from cause


def _load(path: Path) -> ModelProto:
    if not path.is_file() or not path.stat().st_size:
        raise StageError("the compiler reported success but wrote no model", hint=_HINT)
    try:
        return onnx.load(path, load_external_data=False)
    except (DecodeError, OSError) as cause:
        raise StageError("the compiler wrote a model that cannot be read", hint=_HINT) from cause


def _check_file(folder: Path, name: str) -> None:
    if Path(name).name != name or name in ("", ".", ".."):
        raise StageError(f"the compiled model names a file outside its folder: {name[:120]!r}", hint=_HINT)
    if not (folder / name).is_file() or not (folder / name).stat().st_size:
        raise StageError(f"the compiled model requires the file {name[:120]!r}, which is missing or empty", hint=_HINT)


def _check_signature(before: ModelProto, after: ModelProto) -> None:
    check_interface(before, after)
    old, new = model_signature(before), model_signature(after)
    pairs = zip((*old.inputs, *old.outputs), (*new.inputs, *new.outputs), strict=True)
    wrong = tuple(f"{one.name}: {one.type.shape} became {two.type.shape}" for one, two in pairs if _differ(one, two))
    if wrong:
        raise StageError("the model's inputs or outputs changed their shapes", details=wrong, hint=_HINT)


def _differ(one: Port, two: Port) -> bool:
    old, new = one.type.shape, two.type.shape
    if old is None or new is None:
        return False
    sizes = [(a, b) for a, b in zip(old, new, strict=False) if isinstance(a, int) and isinstance(b, int)]
    return len(old) != len(new) or any(a != b for a, b in sizes)


def _contexts(model: ModelProto) -> list[NodeProto]:
    return [node for graph in iterate_graphs(model) for node in graph.node if qualified_name(node) == CONTEXT]


def _attribute(node: NodeProto, name: str) -> AttributeProto | None:
    return next((item for item in node.attribute if item.name == name), None)


def _text(node: NodeProto, name: str) -> str:
    attribute = _attribute(node, name)
    return attribute.s.decode("utf-8", "replace") if attribute is not None else ""
