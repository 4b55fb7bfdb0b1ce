"""Reject invalid options before anything is loaded."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import get_args

from bundler.model.errors import UsageError
from bundler.stages.fuse_transformers.spec import FUSIONS, MODEL_TYPES, TOOLS_MODEL_TYPES, Backend, Level, Mask, Options

_PREFIX = "enable_"
_CHOICES = {"mask": get_args(Mask), "level": get_args(Level), "backend": get_args(Backend)}


def check_options(options: Options) -> tuple[str, ...]:
    """The fusions to disable, by their names in `FUSIONS`. Raises `UsageError`."""
    types = TOOLS_MODEL_TYPES if options.backend == "onnxruntime-tools" else tuple(MODEL_TYPES)
    disabled = tuple(dict.fromkeys(name.replace("-", "_").removeprefix(_PREFIX) for name in options.disabled))
    problems = [
        *(_unknown(field, getattr(options, field), known) for field, known in _CHOICES.items()),
        _unknown("model type", options.model_type, ("auto", *types)),
        *(_unknown("fusion", name, FUSIONS) for name in disabled),
        *_size_problems(options),
        *_tools_problems(options),
    ]
    found = tuple(problem for problem in problems if problem)
    if found:
        raise UsageError("invalid options of transformer fusion", details=found)
    return tuple(sorted(disabled))


def _unknown(what: str, name: str, known: Collection[str]) -> str:
    if name in known:
        return ""
    close = difflib.get_close_matches(name, known, 1)
    guess = f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(known)}"
    return f"no {what} {name[:100]!r} ({guess})"


def _size_problems(options: Options) -> list[str]:
    heads, hidden = options.heads, options.hidden_size
    if heads < 0 or hidden < 0:
        return ["heads and hidden_size cannot be negative"]
    if bool(heads) != bool(hidden):
        return ["give heads and hidden_size together, or neither"]
    if heads and hidden % heads:
        return [f"a hidden size of {hidden} cannot be split among {heads} heads"]
    return []


def _tools_problems(options: Options) -> list[str]:
    if options.backend != "onnxruntime-tools":
        return []
    newer = [name for name in ("packed", "multi_head_attention") if getattr(options, name)]
    return [f"onnxruntime-tools has no {name}; the backend onnxruntime has" for name in newer]
