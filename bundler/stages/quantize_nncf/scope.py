"""Which nodes stay as they are: the user's names, checked against the model."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from onnx import GraphProto

from bundler.model.errors import UsageError

_SHOWN = 60
"""Characters of a name that an error repeats."""


def check_exclusions(names: set[str], graph: GraphProto, nodes: Sequence[str], operators: Sequence[str]) -> None:
    """Refuse what nothing in the graph is called; `names` are those of its nodes. Raises `UsageError`."""
    known = {"node": names, "operator": {node.op_type for node in graph.node}}
    unknown = [
        (kind, name)
        for kind, names in (("node", nodes), ("operator", operators))
        for name in dict.fromkeys(names)
        if name not in known[kind]
    ]
    if unknown:
        raise UsageError(
            "what shall be kept out of quantisation is not in the model",
            details=tuple(_explain(kind, name, known[kind]) for kind, name in unknown),
            hint="`bundler inspect MODEL` lists the operators; names of nodes are those in the ONNX file",
        )


def _explain(kind: str, name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), 1)
    return f"no {kind} {_show(name)}" + (f" (did you mean {_show(close[0])}?)" if close else "")


def _show(name: str) -> str:
    return repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…")
