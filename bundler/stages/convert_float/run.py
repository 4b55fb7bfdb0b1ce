"""Convert floats by the reference, keep some nodes in 32 bits, and check that the result loads."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from onnx import ModelProto, TensorProto
from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST

from bundler.model.codec import decode
from bundler.model.errors import StageError
from bundler.model.runtime import Gate
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.float_conversion.converter import Conversion, Converted, convert, store_narrow
from bundler.onnxkit.float_conversion.emulator import open_emulator
from bundler.onnxkit.float_conversion.narrow import ONNX_TYPES
from bundler.onnxkit.float_conversion.value_types import has_type, infer_types
from bundler.onnxkit.golden import read_golden
from bundler.onnxkit.linked_models import LinkedModel, open_linked, write_linked
from bundler.onnxkit.quantization.selection import check_operators
from bundler.onnxkit.sessions import REFERENCE, open_session
from bundler.onnxkit.signatures import check_interface
from bundler.onnxkit.structure import (
    constant_tensor,
    count_operators,
    iterate_nodes,
    iterate_tensors,
    read_structure,
    standard_opset,
    tensor_bytes,
)
from bundler.stages.convert_float.search import MAX_ROUNDS, Found, Search
from bundler.stages.convert_float.spec import Options

ENTRY = "model.onnx"
_QUANTIZED: Final = frozenset(
    {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"}
    | {"QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"}
)
_BFLOAT16_OPSET: Final = 13
_MIN_CAST_BYTES: Final = 1024
"""Bytes from which a weight gets a cast of its own."""
_MAX_NAME_LENGTH: Final = 80
_MAX_CLAMPED_FACTS: Final = 20
_MAX_LISTED_NODES: Final = 3
_NO_NARROW_FORM: Final = re.compile(r"Type 'tensor\(b?float16\)' of input parameter \(.*?\) of operator \((\w+)\)")
_PARAMETRIC: Final = frozenset(
    {"BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization", "Conv", "ConvTranspose"}
    | {"Gemm", "MatMul", "PRelu"}
)
"""Operators whose weights are used as numbers. Elsewhere an out-of-range number is a mask, and clamping is right."""
_NO_KERNEL: Final = "Could not find an implementation"
"""ONNX Runtime's message for a valid operator that its CPU provider does not implement."""
_MAX_TRIES: Final = 24


def run(request: StageRequest, report: Report) -> StageResult:
    """The converted model. Raises `StageError` when nothing can be converted, or no choice of nodes meets the gate."""
    source, options = request.input("model"), decode(Options, dict(request.options))
    before = read_structure(source)
    _check(before, options, request.inputs)
    report(0.0, "reading the model's types")
    job = _Job(_name_nodes(infer_types(open_linked(source)), options), options, request.output / ENTRY, report)
    job.keep_out_of_range()
    found = job.examine(request.inputs.get("samples"))
    converted, after = job.write(found)
    if options.keep_io:
        check_interface(before, after)
    return StageResult(facts=job.facts(converted, found), entry=ENTRY, notes=job.notes(converted, found))


@dataclass(frozen=True, slots=True)
class _Named:
    """A model whose nodes have unique names, the nodes' `labels` in messages, and those that the user keeps."""

    linked: LinkedModel
    labels: Mapping[str, str]
    blocked: frozenset[str]


def _name_nodes(linked: LinkedModel, options: Options) -> _Named:
    known = {node.name for node in iterate_nodes(linked.model) if node.name}
    for name in options.block_nodes:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            meant = close[0][:_MAX_NAME_LENGTH] if close else ""
            hint = f"did you mean {meant!r}?" if close else "use the names of the model's own nodes"
            raise StageError(f"the model has no node named {name[:_MAX_NAME_LENGTH]!r} to keep", hint=hint)
    labels, blocked = {}, set()
    for number, node in enumerate(iterate_nodes(linked.model)):
        name = f"node {number}"
        unnamed = f"{node.op_type} that computes {next(filter(None, node.output), 'nothing')}"
        labels[name] = (node.name or unnamed)[:_MAX_NAME_LENGTH]
        if node.name in options.block_nodes:
            blocked.add(name)
        node.name = name
    return _Named(linked, labels, frozenset(blocked))


def _check(model: ModelProto, options: Options, inputs: Mapping[str, Path]) -> None:
    """Raise `StageError` for models and options that cannot be converted."""
    quantized = sorted(_QUANTIZED.intersection(count_operators(model)))
    narrow = [name for name, number in ONNX_TYPES.items() if has_type(model, number)]
    opset = standard_opset(model)
    if quantized:
        hint = "give the float model: 16-bit floats cannot be used with int8"
        raise StageError("the model is quantised already", details=(f"it has {', '.join(quantized)}",), hint=hint)
    if not any(tensor.data_type == TensorProto.FLOAT for tensor in iterate_tensors(model)):
        what = f"it is in {' and '.join(narrow)} already" if narrow else "it has no 32-bit float"
        raise StageError(f"nothing to convert: {what}", hint="give the 32-bit model")
    if narrow and options.type not in narrow:
        raise StageError(f"the model mixes types: it has {' and '.join(narrow)} already", hint="give the 32-bit model")
    check_operators({node.op_type for node in iterate_nodes(model)}, options.block_operators)
    if options.type == "bfloat16" and opset < _BFLOAT16_OPSET:
        raise StageError(
            f"bfloat16 requires opset {_BFLOAT16_OPSET}, and the model has opset {opset}",
            hint="export the model with a newer opset, or use float16",
        )
    if options.search and "samples" not in inputs:
        raise StageError("the search requires samples", hint="give real inputs (`--calibration`)")
    if options.search and (not options.gate or options.scope == "weights" or options.type != "float16"):
        raise StageError("the search is for whole float16 models and requires a gate", hint="remove `search`")


@dataclass(slots=True)
class _Job:
    """One conversion; `kept_operators` grows when the runtime reports that an operator has no 16-bit form."""

    named: _Named
    options: Options
    target: Path
    report: Report
    kept_operators: frozenset[str] = frozenset()
    out_of_range: frozenset[str] = frozenset()
    """Nodes whose weights are out of the 16-bit range."""
    clamped: Mapping[str, int] = field(default_factory=dict)
    runs_on_cpu: bool = True

    def conversion(self, kept: Collection[str] = ()) -> Conversion:
        """The conversion that keeps these nodes besides those that the user keeps."""
        operators = frozenset(DEFAULT_OP_BLOCK_LIST) | frozenset(self.options.block_operators) | self.kept_operators
        nodes = self.named.blocked | self.out_of_range | frozenset(kept)
        return Conversion(
            kind=self.options.type,
            keep_io=self.options.keep_io,
            block_operators=operators,
            block_nodes=nodes | _constants_of(self.named.linked.model, nodes, operators),
        )

    def keep_out_of_range(self) -> None:
        """Keep the nodes whose weights are out of the 16-bit range: a clamped variance changes the outputs."""
        if self.options.scope == "weights":
            return
        self.clamped = convert(self.named.linked, self.conversion()).clamped
        model = self.named.linked.model
        readers = (node for node in iterate_nodes(model) if node.op_type in _PARAMETRIC)
        self.out_of_range = frozenset(node.name for node in readers if not self.clamped.keys().isdisjoint(node.input))

    def examine(self, samples: Path | None) -> Found | None:
        """The figures on an emulated 16-bit device when there are samples; the search when one was requested."""
        if samples is None or self.options.scope == "weights" or self.options.type != "float16":
            return None
        golden = read_golden(samples)
        if not golden.entries:
            raise StageError("there are no samples", hint="give real inputs (`--calibration`)")
        count = min(len(golden.entries), max(1, self.options.search_samples))
        emulator = open_emulator(self.named.linked, self.conversion(), self.clamped)
        indices = [place * len(golden.entries) // count for place in range(count)]
        gate = decode(Gate, {"outputs": {}, "default": {}, **self.options.gate})
        search = Search(emulator, golden, indices, gate, self._report_round)
        if not self.options.search:
            first = search.judge(())
            return Found([], sorted(search.find_overflow()), first, first, search.rounds, count)
        found = search.find()
        if not found.last.holds():
            figures = list(found.last.facts().items())[:3]
            hint = "keep inputs and outputs in 32 bits (`keep_io`), or loosen the gate"
            details = tuple(f"{name[:_MAX_NAME_LENGTH]}: {values}" for name, values in figures)
            raise StageError("no choice of nodes in 32 bits meets the gate", details=details, hint=hint)
        return found

    def _report_round(self, number: int, text: str) -> None:
        self.report(min(0.9, 0.1 + 0.8 * number / MAX_ROUNDS), f"round {number}: {text}")

    def write(self, found: Found | None) -> tuple[Converted, ModelProto]:
        """Write the converted model to the target until the runtime loads it."""
        self.report(0.9, "converting")
        for _ in range(_MAX_TRIES):
            converted = self._convert(found)
            after = write_linked(converted.linked, self.target)
            if self._loads():
                return converted, after
        raise StageError("too many operators of this model have no form in 16 bits")

    def _convert(self, found: Found | None) -> Converted:
        if self.options.scope == "weights":
            converted = store_narrow(self.named.linked, self.options.type, _MIN_CAST_BYTES)
        else:
            converted = convert(self.named.linked, self.conversion(found.keep if found else ()))
        has_weights = any(tensor.data_type == TensorProto.FLOAT for tensor in self.named.linked.model.graph.initializer)
        if not has_type(converted.linked.model, ONNX_TYPES[self.options.type]) or (
            has_weights and not converted.weights
        ):
            hint = "keep fewer operators and nodes, or loosen the gate"
            raise StageError("nothing could be converted: every node stays in 32 bits", hint=hint)
        return converted

    def _loads(self) -> bool:
        """Whether the runtime loads the model; if not, the operator that it names is kept from now on."""
        try:
            open_session(self.target, REFERENCE, error=StageError)
        except StageError as error:
            text = " ".join(error.details)
            if _NO_KERNEL in text and self.options.type == "bfloat16":
                self.runs_on_cpu = False
                return True
            match = _NO_NARROW_FORM.search(text)
            if match is None or match[1] in self.kept_operators:
                raise
            self.kept_operators |= {match[1]}
            return False
        return True

    def facts(self, converted: Converted, found: Found | None) -> dict[str, Any]:
        """The facts of `SPEC`."""
        tensors = iterate_tensors(self.named.linked.model)
        size = sum(tensor_bytes(tensor) for tensor in tensors if tensor.data_type == TensorProto.FLOAT)
        clamped = sorted(converted.clamped.items())[:_MAX_CLAMPED_FACTS]
        facts: dict[str, Any] = {
            "type": self.options.type,
            "scope": self.options.scope,
            "keep_io": self.options.keep_io,
            "weights": len(converted.weights),
            "weight_bytes_before": size,
            "weight_bytes_after": size - sum(converted.weights.values()) // 2,
            "clamped": {name[:_MAX_NAME_LENGTH]: count for name, count in clamped},
            "kept": self._labels([*self.named.blocked, *self.out_of_range, *(found.keep if found else ())]),
            "kept_operators": sorted(self.kept_operators),
            "runs_on_cpu": self.runs_on_cpu,
            "bytes": sum(path.stat().st_size for path in self.target.parent.iterdir()),
        }
        if found is not None:
            facts |= {"figures": found.first.facts(), "overflowing": self._labels(found.overflow)}
        if found is not None and self.options.search:
            facts["search"] = {
                "rounds": found.rounds,
                "samples": found.samples,
                "nodes": len(self.named.labels),
                "figures": found.last.facts(),
            }
        return facts

    def _labels(self, names: Collection[str]) -> list[str]:
        order = {name: place for place, name in enumerate(self.named.labels)}
        return [self.named.labels[name] for name in sorted(set(names), key=lambda name: order[name])]

    def notes(self, converted: Converted, found: Found | None) -> tuple[Note, ...]:
        """Notes for the user."""
        kind = self.options.type
        clamped, values = sorted(converted.clamped), sum(converted.clamped.values())
        overflow = self._labels(found.overflow) if found is not None and not self.options.search else []
        nodes = f"{len(overflow)} nodes overflow in {kind} on the samples"
        warnings = (
            (clamped, f"{values} weights are out of the range of {kind} and clamped to its limit: {_list(clamped)}"),
            (overflow, f"{nodes}, or read such values: {_list(overflow)}"),
            (not self.runs_on_cpu, f"ONNX Runtime's CPU has no kernels for {kind}: the model cannot be run here"),
        )
        kept, operators = self._labels(self.out_of_range), sorted(self.kept_operators)
        others = (
            (kept, f"kept in 32 bits, because their weights are out of the range of {kind}: {_list(kept)}"),
            (operators, f"kept in 32 bits, because they have no {kind} form: {_list(operators)}"),
        )
        return (
            *(Note(text=text, level="warning") for applies, text in warnings if applies),
            *(Note(text=text) for applies, text in others if applies),
        )


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(name[:_MAX_NAME_LENGTH] for name in names[:_MAX_LISTED_NODES])
    return shown + (f" and {len(names) - _MAX_LISTED_NODES} more" if len(names) > _MAX_LISTED_NODES else "")


def _constants_of(model: ModelProto, kept: Collection[str], operators: Collection[str]) -> frozenset[str]:
    """Constant nodes that only kept nodes read: they are kept as well, as initializers would be."""
    readers: dict[str, list[bool]] = {}
    for node in iterate_nodes(model):
        for name in node.input:
            readers.setdefault(name, []).append(node.name in kept or node.op_type in operators)
    constants = (
        node for node in iterate_nodes(model) if node.op_type == "Constant" and constant_tensor(node) is not None
    )
    return frozenset(node.name for node in constants if kept and all(readers.get(node.output[0], [False])))
