"""Check that the runtime supports the model's format, opsets and operators."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Final

import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state as state

from bundler.model.errors import ModelError
from bundler.onnxkit.placement_facts import limit_lines, tidy
from bundler.onnxkit.sessions import RUNTIME_ERRORS, SessionSettings, clean_message, session_options
from bundler.onnxkit.structure import iterate_nodes, qualified_name

STANDARD_DOMAIN: Final = "ai.onnx"
_MAX_SHOWN: Final = 20
_MAX_LENGTH: Final = 400
"""Maximum number of characters of a line about one operator."""
_CONTROL: Final = frozenset({"If", "Loop", "Scan", "SequenceMap"})
_QUANTIZED: Final = (
    "QLinear", "QuantizeLinear", "DequantizeLinear", "DynamicQuantize", "QAttention", "QGemm", "MatMulNBits",
)  # fmt: skip
_INTEGER: Final = frozenset({"MatMulInteger", "ConvInteger", "MatMulIntegerToFloat"})


def domain_of(item_domain: str) -> str:
    """The name of a domain for people: the standard's domain has two spellings, and this is the long one."""
    return item_domain or STANDARD_DOMAIN


def check_versions(model: ModelProto) -> None:
    """Load a one-node model of the same format and opsets into the runtime. Raises `ModelError`."""
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "probe", [value], [result])
    probe = helper.make_model(graph, opset_imports=list(model.opset_import), ir_version=model.ir_version)
    try:
        onnxruntime.InferenceSession(probe.SerializeToString(), session_options(SessionSettings()))
    except RUNTIME_ERRORS as cause:
        opsets = ", ".join(f"{domain_of(item.domain)} {item.version}" for item in model.opset_import)
        imports = tidy(opsets, _MAX_LENGTH)
        raise ModelError(
            f"ONNX Runtime {onnxruntime.__version__} cannot read this model's format",
            details=(f"IR version {model.ir_version}; operator sets: {imports}", clean_message(cause)),
            hint="export the model with an older opset, or convert it with onnx.version_converter",
        ) from cause


def check_operators(model: ModelProto) -> None:
    """Check that every operator is the runtime's or a function of the model. Raises `ModelError` with all others."""
    known = _known_operators()
    functions = {(item.domain, item.name) for item in model.functions}
    versions = {_short(item.domain): item.version for item in model.opset_import}
    problems: dict[str, None] = {}
    for node in iterate_nodes(model):
        if (node.domain, node.op_type) not in functions:
            found = _operator_problems(node, known, versions)
            problems.update(dict.fromkeys(tidy(problem, _MAX_LENGTH) for problem in found))
    if problems:
        raise ModelError(
            f"ONNX Runtime {onnxruntime.__version__} does not support all operators of the model",
            details=limit_lines(list(problems), _MAX_SHOWN),
            hint="export the model with standard operators; bundler cannot load libraries of custom operators",
        )


def _short(domain: str) -> str:
    return "" if domain == STANDARD_DOMAIN else domain


def _known_operators() -> dict[tuple[str, str], int]:
    """The first version of each operator of the runtime, by domain and name."""
    first: dict[tuple[str, str], int] = {}
    for schema in state.get_all_operator_schema():
        key = (_short(schema.domain), schema.name)
        first[key] = min(first.get(key, schema.since_version), schema.since_version)
    return first


def _operator_problems(
    node: NodeProto, known: Mapping[tuple[str, str], int], versions: Mapping[str, int]
) -> Iterator[str]:
    domain, name = _short(node.domain), qualified_name(node)
    if (domain, node.op_type) not in known:
        if all(domain != other for other, _ in known):
            yield f"{name}: the domain {node.domain!r} requires a library of custom operators"
            return
        close = difflib.get_close_matches(node.op_type, [op for other, op in known if other == domain], 1)
        yield f"{name}: no such operator" + (f" (did you mean {close[0]}?)" if close else "")
    elif domain not in versions:
        yield f"{name}: the model imports no opset for the domain {domain_of(domain)!r}"
    elif known[domain, node.op_type] > versions[domain]:
        yield f"{name}: requires opset {known[domain, node.op_type]}, and the model declares {versions[domain]}"


def foreign_domains(model: ModelProto) -> tuple[str, ...]:
    """Domains of operators that are neither standard ONNX nor functions of the model."""
    own = {item.domain for item in model.functions}
    domains = {_short(node.domain) for node in iterate_nodes(model)} - own
    return tuple(sorted(domain for domain in domains if domain and not domain.startswith("ai.onnx.")))


def has_control_flow(operators: Mapping[str, int]) -> bool:
    """Whether a node contains a subgraph."""
    return not _CONTROL.isdisjoint(operators)


def is_quantized(operators: Mapping[str, int]) -> bool:
    """Whether the model computes on quantised values anywhere."""
    names = [name.rpartition(".")[2] for name in operators]
    return any(name.startswith(_QUANTIZED) or name in _INTEGER for name in names)
