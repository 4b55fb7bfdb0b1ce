"""Record a stream: the state of each step is an output of the step before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime

from bundler.model.errors import UsageError
from bundler.model.signature import Signature
from bundler.model.stage import Note
from bundler.model.state import StateLink
from bundler.onnxkit.digests import digest_each
from bundler.onnxkit.running import RunError, run_session
from bundler.onnxkit.value_files import Value, count_bytes
from bundler.stages.record_golden.initial_values import make_initial

MAX_STREAM_BYTES: Final = 8 << 20
"""Limit for inputs, states and outputs of all steps together, which are part of every bundle."""
LEAST_STEPS: Final = 9
"""Recorded whatever their size: with fewer, an error that grows is not seen."""

LARGE_STREAM_BYTES: Final = 32 << 20
"""Inputs and states from which on their size is worth a warning: outputs come to them, and the first
`LEAST_STEPS` ship whatever they take."""

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
    files: Mapping[str, Path],
    *,
    replace_values: Callable[[int], Mapping[str, Value]] | None = None,
) -> Steps:
    """Run the steps in order, each with the state that the one before gave. Later steps than fit into
    `MAX_STREAM_BYTES` are left out; `files` are those of initial values, by role. A step that the model rejects gets
    other values from `replace_values`: a mode (a sampling rate) may need other sizes, and a stream keeps its sizes.
    Raises `UsageError` where the model does not run, an initial value does not fit, or a state changes its shape.
    """
    ports = {port.name: port for port in signature.inputs}
    initial = {link.input: make_initial(ports[link.input], link, files) for link in links}
    state: dict[str, Value] = dict(initial)
    samples: list[tuple[str, Mapping[str, Value]]] = []
    digests: list[Mapping[str, bytes]] = []
    size = 0
    for index, (name, values) in enumerate(steps):
        inputs = _complete(signature, values, state)
        try:
            outputs = run_session(session, inputs)
        except RunError as error:
            if replace_values is None:
                raise _refuse_step(name, error, links) from error
            inputs = _complete(signature, replace_values(index), state)
            try:
                outputs = run_session(session, inputs)
            except RunError as again:
                raise _refuse_step(name, again, links) from again
        size += count_bytes(inputs) + count_bytes(outputs)
        if size > MAX_STREAM_BYTES and len(samples) >= LEAST_STEPS:
            break
        samples.append((name, inputs))
        digests.append(digest_each(outputs))
        state = {link.input: _take(link, state[link.input], outputs[link.output]) for link in links}
    for link in links:
        _require_growth(link, initial[link.input], state[link.input])
    return samples, digests


def _complete(signature: Signature, values: Mapping[str, Value], state: Mapping[str, Value]) -> dict[str, Value]:
    """The inputs of a step, in the model's order."""
    given = {**values, **state}
    return {port.name: given[port.name] for port in signature.inputs if port.name in given}


def _refuse_step(name: str, error: RunError, links: Sequence[StateLink]) -> UsageError:
    return UsageError(
        f"the original model does not run on the step {name} of the stream",
        details=(str(error),),
        hint=_describe_remedy(links),
    )


def _take(link: StateLink, before: Value, after: Value) -> Value:
    one, other = _shape(before), _shape(after)
    shorter = link.grows is not None and len(one) == len(other) and other[link.grows] < one[link.grows]
    if shorter or _drop_axis(one, link.grows) != _drop_axis(other, link.grows):
        hint = "a state keeps its shape: fix the sizes of the other inputs that it follows (--dim, --shape)"
        if link.grows is not None:
            hint = "a state keeps its shape, except along the axis where it grows; it never becomes shorter there"
        raise UsageError(
            f"state {link.input!r} has the shape {list(one)}, and {link.output!r} has {list(other)}", hint=hint
        )
    return after


def _require_growth(link: StateLink, before: Value, after: Value) -> None:
    if link.grows is not None and _shape(before)[link.grows] == _shape(after)[link.grows]:
        raise UsageError(
            f"state {link.input!r} does not grow along axis {link.grows}: all steps left it as {list(_shape(after))}",
            hint="link it without grows, and fix its sizes (--dim, --shape)",
        )


def _shape(value: Value) -> tuple[int, ...]:
    return value.shape if isinstance(value, np.ndarray) else ()


def _drop_axis(shape: Sequence[int], axis: int | None) -> list[int]:
    return [size for place, size in enumerate(shape) if place != axis]


def _describe_remedy(links: Sequence[StateLink]) -> str:
    if all(link.grows is None for link in links):
        return "all steps of a stream have the state's sizes; check --state, the samples and --dim"
    return (
        "give real steps with --samples, in which inputs as long as the state (a mask) grow with it; if the model "
        "needs a state of some length, start from a file (initial=start.npy)"
    )


def describe_large(samples: Sequence[tuple[str, Mapping[str, Value]]]) -> Iterator[Note]:
    """Say that the steps make the bundle large."""
    size = sum(count_bytes(values) for _, values in samples)
    if size >= LARGE_STREAM_BYTES:
        text = (
            f"{len(samples)} steps have {size / 1e6:.0f} MB of inputs and states, which ship with the outputs in the "
            "golden set: with shorter first steps, a growing state is smaller"
        )
        yield Note(text=text, level="warning")


def describe_steps(taken: int, total: int) -> Note:
    """Say that a stream is recorded in part."""
    return Note(text=f"the first {taken} of {total} steps of the stream are recorded and judged")
