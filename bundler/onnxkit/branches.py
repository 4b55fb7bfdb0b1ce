"""The branches of its conditions (`If`) that a model takes on given inputs.

A copy of the model bears a mark at the end of each branch, and the runtime's own profile says which marks ran: also in
conditions within loops and within other conditions.
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
"""A model file of more bytes is not opened a second time for this."""
_FULL_PROFILE: Final = 1_000_000
"""Events that the runtime's profile holds."""
_MARK: Final = re.compile(r"bundler_branch_(\d+)_end")
_FAILURES: Final[tuple[type[Exception], ...]] = (*RUNTIME_ERRORS, RunError, OSError)
_SIDES: Final = {"then_branch": "then", "else_branch": "else"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One way through an `If`: its node (by name, or by its first output), and which side."""

    node: str
    side: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marked:
    """A branch, the value that chooses it, and the place of the branch that it stands in."""

    branch: Branch
    condition: str
    around: int | None


def has_branches(structure: ModelProto) -> bool:
    """Whether a model chooses between ways at all."""
    return any(node.op_type == "If" for node in iterate_nodes(structure))


def untaken_branches(path: Path, samples: Iterable[Mapping[str, Value]]) -> tuple[Branch, ...] | None:
    """The branches that none of the samples goes through; None where that cannot be found out.

    What stands inside of one is not listed again, and a way that no input could choose (exporters leave questions about
    the rank of a tensor) is not listed at all.
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
    """Mark the end of every branch, and answer them in the order of their marks."""
    used = {name for graph in iterate_graphs(model) for node in graph.node for name in (*node.input, *node.output)}
    prefix = "bundler_mark"
    while any(name.startswith(prefix) for name in used):
        prefix += "_"
    found: list[_Marked] = []
    for nodes in (model.graph.node, *(function.node for function in model.functions)):
        _mark_nodes(list(nodes), None, prefix, found)
    return found


def _mark_nodes(nodes: Sequence[NodeProto], around: int | None, prefix: str, found: list[_Marked]) -> None:
    """`around` is the place of the branch that these nodes stand in."""
    for node in nodes:
        for attribute in node.attribute:
            if not attribute.HasField("g"):
                continue
            inside = list(attribute.g.node)
            place = around
            if node.op_type == "If":
                place = len(found)
                name = shown_name(node.name or node.output[0])
                branch = Branch(node=name, side=_SIDES.get(attribute.name, shown_name(attribute.name)))
                found.append(_Marked(branch=branch, condition=node.input[0], around=around))
                _add_mark(attribute.g, f"{prefix}_{place}", place)
            _mark_nodes(inside, place, prefix, found)


def _add_mark(graph: GraphProto, name: str, place: int) -> None:
    """The first output goes through one more node, which the profile knows by its name."""
    if not graph.output:
        return
    last = graph.output[0].name
    graph.node.append(helper.make_node("Identity", [last], [name], name=f"bundler_branch_{place}_end"))
    graph.output[0].name = name


def _read_marks(profile: Path) -> set[int] | None:
    """The places of the marks that ran; None where the profile was full before the end."""
    found, events = set(), 0
    with profile.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            events += 1
            found |= {int(place) for place in _MARK.findall(line)}
    return found if events < _FULL_PROFILE else None
