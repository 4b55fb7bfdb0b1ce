"""Estimate which nodes of a model are assigned to a mobile provider. The model's weights are not loaded."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import onnxruntime
from onnx import ModelProto, NodeProto

from bundler.model.codec import decode
from bundler.model.errors import StageError
from bundler.model.open_sizes import describe_gain, suggest_fixing, suggest_options
from bundler.model.stage import Note, NoteLevel, Report, StageRequest, StageResult
from bundler.onnxkit.fixed_models import fix_model, fold_shapes
from bundler.onnxkit.placement_facts import count_placement, counted_nodes, left_node
from bundler.onnxkit.signatures import model_signature
from bundler.onnxkit.size_folding import fixed_values
from bundler.onnxkit.structure import read_structure
from bundler.stages.check_placement.checking import Estimate, estimate
from bundler.stages.check_placement.spec import Options


def run(request: StageRequest, report: Report) -> StageResult:
    """Facts only. Raises `StageError`, `ModelError`."""
    source, options = request.input("model"), decode(Options, dict(request.options))
    model = read_structure(source)
    report(0.1, "inferring shapes")
    shaped = fold_shapes(model)
    if not counted_nodes(shaped):
        raise StageError("the model has no nodes to assign to a provider", hint="disable the check for this model")
    report(0.5, "estimating")
    found = estimate(shaped, options)
    facts = _describe(options.provider, shaped, found)
    gain = _find_gain(model, options, facts)
    if gain is not None:
        facts["fixed"] = gain
    return StageResult(facts=facts, notes=_notes(found, gain))


def _describe(provider: str, model: ModelProto, found: Estimate) -> dict[str, Any]:
    nodes, known = counted_nodes(model), fixed_values(model)
    left = tuple(left_node(node, _explain(node, found, known)) for node in nodes if not _takes(found, node))
    facts = count_placement(provider, len(nodes), left)
    estimated = {"estimated": True, "estimated_by": f"onnxruntime {onnxruntime.__version__}"}
    return {**facts, **estimated, **_describe_judgement(found), "caveats": list(found.caveats)}


def _find_gain(model: ModelProto, options: Options, facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """The estimate with all sizes of the inputs fixed; None where it assigns no more nodes."""
    signature = model_signature(model)
    words = suggest_options(signature)
    if not words:
        return None
    fixed = deepcopy(model)
    fix_model(fixed, suggest_fixing(signature))
    fixed = fold_shapes(fixed)
    nodes = counted_nodes(fixed)
    try:
        found = estimate(fixed, options)
    except StageError:  # the model with its own sizes could be read, and is reported
        return None
    assigned = sum(_takes(found, node) for node in nodes)
    share = round(assigned / len(nodes), 6) if nodes else 0.0
    if share <= facts["share"]:
        return None
    counts = {"assigned": assigned, "left": len(nodes) - assigned, "share": share}
    return {**counts, **_describe_judgement(found), "options": list(words)}


def _describe_judgement(found: Estimate) -> dict[str, Any]:
    return {"partitions": found.info.num_partitions, "suitable": found.suitable, "verdict": found.verdict}


def _takes(found: Estimate, node: NodeProto) -> bool:
    return bool(node.output) and node.output[0] in found.assigned


def _explain(node: NodeProto, found: Estimate, known: frozenset[str]) -> str:
    if not found.knows(node):
        return "the provider does not support the operator"
    if found.reads_text(node):
        return "the provider does not support texts"
    if not known.issuperset(node.input):
        return "an input has a dynamic shape"
    return "an input has more dimensions than the provider supports"


def _notes(found: Estimate, gain: Mapping[str, Any] | None) -> tuple[Note, ...]:
    advice = f"; {describe_gain(gain['assigned'], gain['assigned'] + gain['left'])}" if gain else ""
    if found.suitable == "yes" and not gain:
        return ()
    level: NoteLevel = "warning" if found.suitable == "no" else "info"
    return (Note(text=found.verdict.rstrip(".") + advice, level=level),)
