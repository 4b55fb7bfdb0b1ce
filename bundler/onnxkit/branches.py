"""Find the branches of conditions (`If`) that a model takes on given inputs.

A copy of the model has a marker node at the end of each branch, and the runtime's own profile shows which markers ran:
also in conditions inside loops and other conditions.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import onnx
import onnxruntime
from onnx import GraphProto, ModelProto, NodeProto, helper

from bundler.model.free_dimensions import shown_name
from bundler.onnxkit.running import RunError, run_session
from bundler.onnxkit.sessions import REFERENCE, RUNTIME_ERRORS, session_options
from bundler.onnxkit.structure import iterate_graphs, iterate_nodes
from bundler.onnxkit.value_files import Value
from bundler.onnxkit.value_flow import read_flow

MAX_FOLLOWED_BYTES: Final = 1 << 30
"""Limit of a model file's bytes: a larger model is not loaded a second time for this."""
_FULL_PROFILE: Final = 1_000_000
"""Maximum number of events in the runtime's profile."""
_MARK: Final = re.compile(r"bundler_branch_(\d+)_end")
_FAILURES: Final[tuple[type[Exception], ...]] = (*RUNTIME_ERRORS, RunError, OSError)
_SIDES: Final = {"then_branch": "then", "else_branch": "else"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One branch of an `If`: its node (by name, or by its first output), and the side."""

    node: str
    side: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marked:
    """A branch, the value that selects it, and the index of the branch that contains it."""

    branch: Branch
    condition: str
    around: int | None


def has_branches(structure: ModelProto) -> bool:
    """Whether a model has conditions."""
    return any(node.op_type == "If" for node in iterate_nodes(structure))


def untaken_branches(path: Path, samples: Iterable[Mapping[str, Value]]) -> tuple[Branch, ...] | None:
    """The branches that no sample takes; None where this cannot be determined.

    Branches inside a listed one are not listed, nor are branches that no input can select (exporters leave conditions
    on the rank of a tensor).
    """
    if path.stat().st_size > MAX_FOLLOWED_BYTES:
        return None
    model = onnx.load(path, load_external_data=False)
    varies = read_flow(model).varies
    marked = _mark_branches(model)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        options = session_options(REFERENCE)
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder, "profile"))
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
        try:
            session = onnxruntime.InferenceSession(model.SerializeToString(), options)
            for values in samples:
                run_session(session, values)
            taken = _read_marks(Path(session.end_profiling()))
        except _FAILURES:
            return None
    if taken is None:
        return None
    return tuple(
        item.branch
        for place, item in enumerate(marked)
        if place not in taken and (item.around is None or item.around in taken) and varies(item.condition)
    )


def _mark_branches(model: ModelProto) -> list[_Marked]:
    """Mark the end of every branch, and return the branches in the order of their marks."""
    used = {name for graph in iterate_graphs(model) for node in graph.node for name in (*node.input, *node.output)}
    prefix = "bundler_mark"
    while any(name.startswith(prefix) for name in used):
        prefix += "_"
    found: list[_Marked] = []
    for nodes in (model.graph.node, *(function.node for function in model.functions)):
        _mark_nodes(list(nodes), None, prefix, found)
    return found


def _mark_nodes(nodes: Sequence[NodeProto], around: int | None, prefix: str, found: list[_Marked]) -> None:
    """`around` is the index of the branch that contains these nodes."""
    for node in nodes:
        for attribute in node.attribute:
            if not attribute.HasField("g"):
                continue
            inside = list(attribute.g.node)
            place = around
            if node.op_type == "If":
                place = len(found)
                branch = Branch(node=name_condition(node), side=_SIDES.get(attribute.name, shown_name(attribute.name)))
                found.append(_Marked(branch=branch, condition=node.input[0], around=around))
                _add_mark(attribute.g, f"{prefix}_{place}", place)
            _mark_nodes(inside, place, prefix, found)


def name_condition(node: NodeProto) -> str:
    """The name of a condition, as people read it: its node's, or that of its first output."""
    return shown_name(node.name or node.output[0])


def _add_mark(graph: GraphProto, name: str, place: int) -> None:
    """Pass the first output through one more node, whose name appears in the profile."""
    if not graph.output:
        return
    last = graph.output[0].name
    graph.node.append(helper.make_node("Identity", [last], [name], name=f"bundler_branch_{place}_end"))
    graph.output[0].name = name


def _read_marks(profile: Path) -> set[int] | None:
    """The indices of the marks that ran; None where the profile was full before the end."""
    found, events = set(), 0
    with profile.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            events += 1
            found |= {int(place) for place in _MARK.findall(line)}
    return found if events < _FULL_PROFILE else None
