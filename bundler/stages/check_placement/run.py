"""Estimate which nodes of a model a mobile provider takes. The model's weights are not loaded."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto, NodeProto

from bundler.model.codec import decode
from bundler.model.errors import StageError
from bundler.model.stage import Note, NoteLevel, Report, StageRequest, StageResult
from bundler.stages.check_placement.checking import Estimate, estimate
from bundler.stages.check_placement.folding import fixed_values, fold_sizes
from bundler.stages.check_placement.spec import Options
from bundler.workbench.float_conversion.converter import lift_constants
from bundler.workbench.placement_facts import count_placement, counted_nodes, left_node
from bundler.workbench.structure import iterate_graphs, read_structure


def run(request: StageRequest, report: Report) -> StageResult:
    """Facts alone. Raises `StageError`, `ModelError`."""
    source, options = request.input("model"), decode(Options, dict(request.options))
    model = read_structure(source)
    report(0.1, "inferring shapes")
    for graph in iterate_graphs(model):
        lift_constants(graph)
    shaped = fold_sizes(model)
    if not counted_nodes(shaped):
        raise StageError("the model has no nodes that a provider could take", hint="nothing is to be gained here")
    report(0.5, "estimating")
    found, fixed = (estimate(shaped, options.checker, fixed=answer) for answer in (False, True))
    facts = _describe(options.provider, shaped, found, fixed)
    return StageResult(facts=facts, notes=_notes(found, fixed))


def _describe(provider: str, model: ModelProto, found: Estimate, fixed: Estimate) -> dict[str, Any]:
    nodes, known = counted_nodes(model), fixed_values(model)
    left = tuple(left_node(node, _explain(node, found, known)) for node in nodes if not _takes(found, node))
    facts = count_placement(provider, len(nodes), left)
    facts |= {"estimated": True, **_judge(found), "caveats": list(found.caveats)}
    if fixed.taken != found.taken and not known.issuperset(info.name for info in model.graph.input):
        taken = sum(_takes(fixed, node) for node in nodes)
        facts["fixed"] = {"taken": taken, "share": round(taken / len(nodes), 6), **_judge(fixed)}
    return facts


def _judge(found: Estimate) -> dict[str, Any]:
    return {"partitions": found.info.num_partitions, "suitable": found.suitable, "verdict": found.verdict}


def _takes(found: Estimate, node: NodeProto) -> bool:
    return bool(node.output) and node.output[0] in found.taken


def _explain(node: NodeProto, found: Estimate, known: frozenset[str]) -> str:
    if not found.knows(node):
        return "the provider has no such operator"
    if not known.issuperset(node.input):
        return "an input has a dynamic shape"
    return "an input has more dimensions than the provider takes"


def _notes(found: Estimate, fixed: Estimate) -> tuple[Note, ...]:
    if found.suitable == "yes":
        return ()
    better = fixed.suitable not in (found.suitable, "no")
    advice = f"; with all its dimensions fixed (--dim NAME=SIZE): {fixed.verdict.rstrip('.')}" if better else ""
    level: NoteLevel = "warning" if found.suitable == "no" else "info"
    return (Note(text=found.verdict.rstrip(".") + advice, level=level),)
