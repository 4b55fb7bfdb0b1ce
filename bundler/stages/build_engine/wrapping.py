"""A model of one EPContext node: the engine, with the interface of the model that it was built from.

The node carries the attributes that ONNX Runtime's provider itself writes: it reads `embed_mode`, `ep_cache_context`
(the engine, or its file beside the model), `partition_name` (the name of its runtime cache) and `source`; the others
are informative.
"""

from __future__ import annotations

import hashlib
from typing import Final

from onnx import ModelProto, NodeProto, helper

from bundler.model.errors import StageError
from bundler.onnxkit.structure import standard_opset
from bundler.stages.build_engine.header import HEADER_BYTES

DOMAIN: Final = "com.microsoft"
STATEMENT: Final = "ep_compatibility_info."
"""The key of a model's metadata under which a provider, whose name follows, states what its context requires."""
_MIN_IR: Final = 4
_PROTOBUF_LIMIT: Final = 2**31 - 2**20


def state_compatibility(header: bytes) -> str:
    """The statement about an engine that the provider checks before loading it: the header in hexadecimal."""
    return header[:HEADER_BYTES].hex()


def wrap_engine(
    source: ModelProto, engine: memoryview, provider: str, version: str, *, devices: str, file: str
) -> ModelProto:
    """The model around `engine`; with an empty `file` the engine is embedded. Raises `StageError` for one too large."""
    if not file and engine.nbytes > _PROTOBUF_LIMIT:
        hint = "store it in a separate file: embed = false"
        raise StageError("the engine is larger than the 2 GB that one ONNX file can hold", hint=hint)
    weights = {tensor.name for tensor in source.graph.initializer}
    inputs = [info for info in source.graph.input if info.name not in weights]
    node = helper.make_node(
        "EPContext", [info.name for info in inputs], [info.name for info in source.graph.output], domain=DOMAIN
    )
    node.name = f"engine_{hashlib.sha256(engine).hexdigest()[:16]}"
    _describe(node, bytes(engine) if not file else file.encode(), provider, version, devices=devices, embedded=not file)
    graph = helper.make_graph([node], source.graph.name or "engine", inputs, list(source.graph.output))
    opsets = [helper.make_opsetid("", standard_opset(source) or 1), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=max(source.ir_version, _MIN_IR))
    statement = {STATEMENT + provider: state_compatibility(bytes(engine[:HEADER_BYTES]))}
    kept = {entry.key: entry.value for entry in source.metadata_props if not entry.key.startswith(STATEMENT)}
    helper.set_model_props(model, dict(sorted((kept | statement).items())))
    return model


def default_inputs(source: ModelProto) -> tuple[str, ...]:
    """Inputs with a default value: it is built into the engine, so they are no longer inputs."""
    if source.ir_version < _MIN_IR:
        return ()
    values = {tensor.name for tensor in source.graph.initializer}
    return tuple(info.name for info in source.graph.input if info.name in values)


def _describe(node: NodeProto, context: bytes, provider: str, version: str, *, devices: str, embedded: bool) -> None:
    values: dict[str, bytes | int] = {
        "embed_mode": int(embedded),
        "ep_cache_context": context,
        "ep_sdk_version": version.encode(),
        "hardware_architecture": devices.encode(),
        "main_context": 0,
        "partition_name": node.name.encode(),
        "source": provider.encode(),
    }
    node.attribute.extend(helper.make_attribute(key, value) for key, value in values.items())
