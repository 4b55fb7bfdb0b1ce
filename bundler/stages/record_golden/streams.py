"""Record a stream: the state of each step is an output of the step before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import onnxruntime

from bundler.model.errors import UsageError
from bundler.model.signature import Port, Signature
from bundler.model.stage import Note
from bundler.model.state import StateLink
from bundler.onnxkit.digests import digest_each
from bundler.onnxkit.elements import element_named
from bundler.onnxkit.running import RunError, run_session
from bundler.onnxkit.seeded_sets import count_bytes
from bundler.onnxkit.value_files import Value

MAX_STREAM_BYTES: Final = 8 << 20
"""Limit for inputs, states and outputs of all steps together, which are part of every bundle."""
LEAST_STEPS: Final = 9
"""Recorded whatever their size: with fewer, an error that grows is not seen."""

Steps = tuple[list[tuple[str, Mapping[str, Value]]], list[Mapping[str, bytes]]]
"""Inputs with their states by name of the step, and the digests of the outputs."""


def take_state_away(signature: Signature, links: Sequence[StateLink]) -> Signature:
    """The signature that a user's samples fit: without the inputs of the state."""
    taken = {link.input for link in links}
    return replace(signature, inputs=tuple(port for port in signature.inputs if port.name not in taken))


def record_stream(
    session: onnxruntime.InferenceSession,
    steps: Sequence[tuple[str, Mapping[str, Value]]],
    signature: Signature,
    links: Sequence[StateLink],
) -> Steps:
    """Run the steps in order, each with the state that the one before gave. Later steps than fit into
    `MAX_STREAM_BYTES` are left out. Raises `UsageError` where the model does not run or a state changes its shape.
    """
    ports = {port.name: port for port in signature.inputs}
    state: dict[str, Value] = {link.input: _begin(ports[link.input], link) for link in links}
    samples: list[tuple[str, Mapping[str, Value]]] = []
    digests: list[Mapping[str, bytes]] = []
    size = 0
    for name, values in steps:
        inputs = {
            port.name: {**values, **state}[port.name] for port in signature.inputs if port.name in {**values, **state}
        }
        try:
            outputs = run_session(session, inputs)
        except RunError as error:
            raise UsageError(
                f"the original model does not run on the step {name} of the stream",
                details=(str(error),),
                hint="all steps of a stream have the state's sizes; check --state, the samples and --dim",
            ) from error
        size += count_bytes(inputs) + count_bytes(outputs)
        if size > MAX_STREAM_BYTES and len(samples) >= LEAST_STEPS:
            break
        samples.append((name, inputs))
        digests.append(digest_each(outputs))
        state = {link.input: _take(link, state[link.input], outputs[link.output]) for link in links}
    return samples, digests


def _begin(port: Port, link: StateLink) -> Value:
    """The initial value of a state, whose sizes are fixed."""
    shape = tuple(size for size in port.type.shape or () if isinstance(size, int))
    kind = element_named(port.type.element_type or "").dtype
    return np.full(shape, link.value).astype(kind)


def _take(link: StateLink, before: Value, after: Value) -> Value:
    if np.shape(before) != np.shape(after):  # type: ignore[arg-type] # both are arrays
        raise UsageError(
            f"state {link.input!r} has the shape {list(np.shape(before))}, and {link.output!r} came as "  # type: ignore[arg-type]
            f"{list(np.shape(after))}",  # type: ignore[arg-type]
            hint="a state keeps its shape: fix the sizes of the other inputs that it follows (--dim, --shape)",
        )
    return after


def describe_steps(taken: int, total: int) -> Note:
    """Say that a stream is recorded in part."""
    return Note(text=f"the first {taken} of {total} steps of the stream are recorded and judged")
