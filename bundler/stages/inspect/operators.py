"""Check that the runtime supports the model's format, opsets and operators."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from typing import Final

import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state as state

from bundler.model.errors import ModelError
from bundler.onnxkit.placement_facts import limit_lines, tidy
from bundler.onnxkit.sessions import RUNTIME_ERRORS, SessionSettings, clean_message, session_options
from bundler.onnxkit.structure import iterate_graphs, iterate_nodes, qualified_name

STANDARD_DOMAIN: Final = "ai.onnx"
_MAX_SHOWN: Final = 20
_MAX_LENGTH: Final = 400
"""Maximum number of characters of a line about one operator."""
_MAX_SHOWN_NAME: Final = 80
_CONTROL: Final = frozenset({"If", "Loop", "Scan", "SequenceMap"})
_QUANTIZED: Final = (
    "QLinear", "QuantizeLinear", "DequantizeLinear", "DynamicQuantize", "QAttention", "QGemm", "MatMulNBits",
)  # fmt: skip
_PASSING: Final = frozenset({"DequantizeLinear", "Cast", "Identity"})
"""Between a weight and its convolution."""
_INTEGER: Final = frozenset({"MatMulInteger", "ConvInteger", "MatMulIntegerToFloat"})


def domain_of(item_domain: str) -> str:
    """The name of a domain for people: the standard's domain has two spellings, and this is the long one."""
    return item_domain or STANDARD_DOMAIN


def check_versions(model: ModelProto) -> None:
    """Load a one-node model of the same format and opsets into the runtime. Raises `ModelError`."""
    imports = {domain_of(item.domain): item.version for item in model.opset_import}
    cause = _probe(model.ir_version, imports)
    if cause is None:
        return
    if _probe(model.ir_version, {STANDARD_DOMAIN: _OLD_OPSET}):
        newest = _newest(model.ir_version, lambda version: _probe(version, {STANDARD_DOMAIN: _OLD_OPSET}))
        hint = f"set `model.ir_version = {newest}` with the onnx library, and save the model again"
    else:
        known = sorted({domain_of(domain) for domain, _ in _known_operators()} & imports.keys())
        domain = next((name for name in known if _probe(_OLD_IR, _only(name, imports[name]))), STANDARD_DOMAIN)
        newest = _newest(imports.get(domain, 0), lambda version: _probe(_OLD_IR, _only(domain, version)))
        hint = f"export the model again with version {newest} of the operator set {domain}"
    opsets = tidy(", ".join(f"{name} {version}" for name, version in imports.items()), _MAX_LENGTH)
    raise ModelError(
        f"ONNX Runtime {onnxruntime.__version__} cannot read this model's format",
        details=(f"IR version {model.ir_version}; operator sets: {opsets}", clean_message(cause)),
        hint=hint,
    ) from cause


_OLD_IR: Final = 8
_OLD_OPSET: Final = 13
_PROBED: Final = 64
"""The first version that is not tried: today's newest are below 30."""


def _only(domain: str, version: int) -> dict[str, int]:
    return {STANDARD_DOMAIN: _OLD_OPSET, domain: version}


def _probe(ir_version: int, imports: Mapping[str, int]) -> Exception | None:
    """Why the runtime does not load a model with these versions."""
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "probe", [value], [result])
    opsets = [helper.make_opsetid(_short(domain), version) for domain, version in imports.items()]
    probe = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)
    try:
        onnxruntime.InferenceSession(probe.SerializeToString(), session_options(SessionSettings()))
    except RUNTIME_ERRORS as cause:
        return cause
    return None


def _newest(version: int, probe: Callable[[int], Exception | None]) -> int:
    """The newest version that the runtime loads; 1 where it loads none."""
    first = version - 1 if 0 < version < _PROBED else _PROBED
    return next((number for number in range(first, 0, -1) if not probe(number)), 1)


def check_operators(model: ModelProto) -> None:
    """Check that every operator is the runtime's or a function of the model. Raises `ModelError` with all others."""
    known = _known_operators()
    functions = {(item.domain, item.name) for item in model.functions}
    versions = {_short(item.domain): item.version for item in model.opset_import}
    problems: dict[str, str] = {}
    for node in iterate_nodes(model):
        if (node.domain, node.op_type) not in functions:
            problems.update(_operator_problem(node, known, versions))
    if problems:
        raise ModelError(
            f"ONNX Runtime {onnxruntime.__version__} does not support all operators of the model",
            details=limit_lines(list(problems), _MAX_SHOWN),
            hint=next(iter(problems.values())),
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


def _operator_problem(
    node: NodeProto, known: Mapping[tuple[str, str], int], versions: Mapping[str, int]
) -> dict[str, str]:
    """What is wrong with a node's operator, with what to do about it."""
    domain, name = _short(node.domain), qualified_name(node)
    shown = tidy(domain_of(domain), _MAX_SHOWN_NAME)
    if (domain, node.op_type) not in known:
        if all(domain != other for other, _ in known):
            problem, hint = f"{name}: the domain {node.domain!r} requires a library of custom operators", _CUSTOM
        else:
            close = difflib.get_close_matches(node.op_type, [op for other, op in known if other == domain], 1)
            problem = f"{name}: no such operator" + (f" (did you mean {close[0]}?)" if close else "")
            hint = f"correct the operator's name, or export the model with released operators of {shown} only"
    elif domain not in versions:
        problem = f"{name}: the model imports no opset for the domain {domain_of(domain)!r}"
        hint = f"add {shown!r} to the model's `opset_import`, and save it again"
    elif known[domain, node.op_type] > versions[domain]:
        first = known[domain, node.op_type]
        problem = f"{name}: requires opset {first}, and the model declares {versions[domain]}"
        hint = f"export the model again with version {first} or newer of the operator set {shown}"
    else:
        return {}
    return {tidy(problem, _MAX_LENGTH): hint}


_CUSTOM: Final = (
    "export the model with operators of ONNX (ai.onnx) and ONNX Runtime (com.microsoft) only; bundler cannot load "
    "libraries of custom operators"
)


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


def count_uneven_convolutions(model: ModelProto) -> int:
    """Convolutions that WebGPU computes wrong in its default layout, as far as their weights show it. Without groups:
    kernels of more than one element, from a multiple of 3 input channels, more than 3 and not a multiple of 4, to a
    multiple of 4. With groups: to 4 or more channels a group, which is not a multiple of the 4 or 2 channels that are
    computed at once.
    """
    weights = {tensor.name: tensor.dims for graph in iterate_graphs(model) for tensor in graph.initializer}
    weights |= {
        node.output[0]: attribute.t.dims
        for node in iterate_nodes(model)
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.name == "value"
    }
    passed_on = ((node.input[0], node.output[0]) for node in iterate_nodes(model) if node.op_type in _PASSING)
    weights |= {output: weights[given] for given, output in passed_on if given in weights}
    convolutions = (node for node in iterate_nodes(model) if node.op_type == "Conv" and len(node.input) > 1)
    return sum(_is_uneven(_count_groups(node), *weights.get(node.input[1], ())) for node in convolutions)


def _count_groups(node: NodeProto) -> int:
    return max(1, next((item.i for item in node.attribute if item.name == "group"), 1))


def _is_uneven(groups: int, outputs: int = 0, inputs: int = 0, *kernel: int) -> bool:
    if groups == 1:
        channels = inputs > 3 and inputs % 3 == 0 and inputs % 4 != 0 and outputs % 4 == 0  # noqa: PLR2004 - as documented
        return channels and set(kernel) != {1}
    at_once = math.gcd(outputs, 4)
    return outputs // groups >= 4 and outputs // groups % at_once != 0  # noqa: PLR2004 - as documented
