"""Compute capabilities: `8.9` as people write it, and the name that TensorRT for RTX gives it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from bundler.model.errors import StageError
from bundler.model.stage import Note

_MEMBER: Final = re.compile(r"SM([0-9]+)([0-9])")
_SUPPORTED: Final = frozenset({(8, 6), (8, 9)})
_SUPPORTED_FROM: Final = (12, 0)
"""ONNX Runtime's plugin 0.5.0 loads engines on GPUs of these compute capabilities, and on all from 12.0."""


def choose_devices(asked: Iterable[str], members: Iterable[str]) -> dict[str, str]:
    """The library's name (of `members`) of each requested compute capability, ascending. Raises `StageError`."""
    known = {f"{found[1]}.{found[2]}": name for name in members if (found := _MEMBER.fullmatch(name))}
    wanted = {text.strip() for text in asked if text.strip()}
    unknown = sorted(wanted - known.keys())
    listed = ", ".join(sorted(known, key=parse_capability))
    if not wanted:
        raise StageError("no compute capability is given for the engine", hint=f"give some of {listed}")
    if unknown:
        names = ", ".join(repr(text[:20]) for text in unknown)
        raise StageError(
            f"TensorRT for RTX cannot build an engine for the compute capability {names}",
            details=(f"supported: {listed}",),
            hint="name those of the GPUs that will run the model: 8.6 is GeForce RTX 30, 8.9 is RTX 40, 12.0 is RTX 50",
        )
    return {text: known[text] for text in sorted(wanted, key=parse_capability)}


def parse_capability(text: str) -> tuple[int, int]:
    """`12.0` as (12, 0)."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def note_unopened(devices: Iterable[str]) -> tuple[Note, ...]:
    """A warning about GPUs that the engine is built for but on which ONNX Runtime does not load it."""
    pairs = {text: parse_capability(text) for text in devices}
    unopened = [text for text, pair in pairs.items() if pair not in _SUPPORTED and pair < _SUPPORTED_FROM]
    if not unopened:
        return ()
    text = (
        "ONNX Runtime's provider supports compute capability 8.6, 8.9, and 12.0 or later: "
        f"on {', '.join(unopened)} it will not load this engine"
    )
    return (Note(text=text, level="warning"),)


def mask_of(names: Iterable[str], members: Iterable[str]) -> int:
    """An engine header's bits for the library's names `names`: one each, in the enumeration's order."""
    order = [name for name in members if _MEMBER.fullmatch(name)]
    return sum(1 << order.index(name) for name in set(names))


def load_library() -> Any:
    """TensorRT for RTX, which is installed only in its own environment."""
    import tensorrt_rtx_bindings  # type: ignore[import-not-found]  # noqa: PLC0415 - 95 MB, and in one environment only

    return tensorrt_rtx_bindings
