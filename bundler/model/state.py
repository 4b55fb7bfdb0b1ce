"""State: an output of a call that is an input of the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLink:
    """`output` of one call becomes `input` of the next.

    The `initial` value of the input is `zeros`, a `constant` (every element is `value`), or the raw little-endian
    tensor in `file`, a path relative to the payload folder. `grows` is the axis along which the output is longer than
    the input was, such as the axis of a decoder's keys and values: its initial size is 0, or that of the file. None
    where input and output have equal shapes.
    """

    input: str
    output: str
    initial: Literal["zeros", "constant", "file"] = "zeros"
    value: float = 0.0
    file: str = ""
    shape: tuple[int, ...] = ()
    grows: int | None = None
