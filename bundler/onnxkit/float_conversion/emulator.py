"""Emulate a half-precision device on a CPU, for any choice of the nodes that stay in 32 bits.

ONNX Runtime's CPU runs most half-precision operators in 32 bits and removes the casts between them: an overflow on a
GPU does not occur there. So this model rounds every value to 16 bits where the device would store it. Each rounding has
a switch that is an input, so that one session serves a whole search. Operators are assumed to compute in 32 bits and to
round their results, as GPUs accumulate. An overflow inside an operator is not emulated; where it was seen on a GPU, in
the sum of a mean, `Search` looks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime

from bundler.model.errors import StageError
from bundler.onnxkit.float_conversion.converter import Conversion
from bundler.onnxkit.float_conversion.switches import Edge, Wiring, wire_switches
from bundler.onnxkit.linked_models import LinkedModel, open_structure
from bundler.onnxkit.sessions import REFERENCE, RUNTIME_ERRORS, clean_message
from bundler.onnxkit.value_files import Value


@dataclass(frozen=True, slots=True)
class Emulator:
    """A session on the model with its switches, and their wiring."""

    session: onnxruntime.InferenceSession
    conversion: Conversion
    wiring: Wiring

    def run_all(self, inputs: Mapping[str, Value], kept: Collection[str] | None) -> dict[str, Value]:
        """The model's outputs with the nodes in `kept` in 32 bits (None: all of them). Raises `StageError`."""
        names = list(self.wiring.outputs.values())
        values = self.run(inputs, kept, names)
        return dict(zip(self.wiring.outputs, (values[name] for name in names), strict=True))

    def run(self, inputs: Mapping[str, Value], kept: Collection[str] | None, names: Sequence[str]) -> dict[str, Value]:
        """The values called `names`, as their nodes compute them, before rounding. Raises `StageError`."""
        rounds = self._rounds(kept)
        switches = {name: np.array(edge in rounds) for edge, name in self.wiring.switches.items()}
        options = onnxruntime.RunOptions()
        options.log_severity_level = 4
        try:
            values = self.session.run(list(names), {**inputs, **switches}, options)
        except RUNTIME_ERRORS as cause:
            hint = "samples must have the names, types and shapes of the model's inputs"
            details = (clean_message(cause),)
            raise StageError("the model does not run on the samples", details=details, hint=hint) from cause
        return dict(zip(names, values, strict=True))

    def _rounds(self, kept: Collection[str] | None) -> set[Edge]:
        """The edges whose value is rounded: all except those between two 32-bit nodes."""
        if kept is None:
            return set()
        wide = self.wiring.blocked | set(kept)
        return {edge for edge in self.wiring.switches if self._is_rounded(edge, wide)}

    def _is_rounded(self, edge: Edge, wide: Collection[str]) -> bool:
        if edge.value in self.wiring.weights:
            return any(reader not in wide for reader in self.wiring.weights[edge.value])
        maker = self.wiring.makers.get(edge.value)
        made_wide = self.conversion.keep_io if maker is None else maker in wide
        read_wide = self.conversion.keep_io if edge.reader is None else edge.reader in wide
        return not (made_wide and read_wide)


def open_emulator(linked: LinkedModel, conversion: Conversion, clamped: Collection[str]) -> Emulator:
    """The emulator of a model with inferred types and unique names; `clamped` weights are out of range."""
    model, wiring = wire_switches(linked.model, conversion, clamped)
    return Emulator(open_structure(model, linked.folders.source, REFERENCE), conversion, wiring)
