"""Check the user's names of excluded nodes and operators against the model."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from onnx import GraphProto

from bundler.model.errors import UsageError

_MAX_SHOWN = 60
"""Maximum number of a name's characters in an error."""


def check_exclusions(names: set[str], graph: GraphProto, nodes: Sequence[str], operators: Sequence[str]) -> None:
    """Reject names that the graph does not have; `names` are those of its nodes. Raises `UsageError`."""
    known = {"node": names, "operator": {node.op_type for node in graph.node}}
    unknown = [
        (kind, name)
        for kind, names in (("node", nodes), ("operator", operators))
        for name in dict.fromkeys(names)
        if name not in known[kind]
    ]
    if unknown:
        raise UsageError(
            "nodes or operators to exclude from quantisation are not in the model",
            details=tuple(_explain(kind, name, known[kind]) for kind, name in unknown),
            hint="`bundler inspect MODEL` lists the operators; node names are those in the ONNX file",
        )


def _explain(kind: str, name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), 1)
    return f"no {kind} {_show(name)}" + (f" (did you mean {_show(close[0])}?)" if close else "")


def _show(name: str) -> str:
    return repr(name if len(name) <= _MAX_SHOWN else f"{name[:_MAX_SHOWN]}…")
