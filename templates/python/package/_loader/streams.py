"""Streams: calls of a model with state, each of which goes on from the state that the one before left."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import OrtDevice

from .checks import check_values, dtype_name, match_names
from .config import Component, Port, Variant
from .errors import ClosedError, InputError
from .integrity import Memory, read_pinned
from .sessions import unwrap, wrap
from .storage import STORAGE

if TYPE_CHECKING:
    from typing import Protocol, Self

    class Owner(Protocol):
        """The model that a stream runs."""

        @property
        def session(self) -> ort.InferenceSession:
            """The runtime's session. Raises `ClosedError`."""
            ...

        def require_open(self) -> None:
            """Raise the error that every call of a closed model raises."""
            ...


_CPU = OrtDevice(OrtDevice.cpu(), OrtDevice.default_memory(), 0)


class StreamState:
    """One stream: the state in two sets of buffers, in the memory of the provider, which take turns as what a call
    reads and what it writes. A call copies no state. It allocates none either, but for one that grows, which the
    runtime allocates with each call.
    """

    def __init__(self, model: Owner, component: Component, variant: Variant) -> None:
        links: list[dict[str, Any]] = component.data["state"]
        inputs = {port.name: port for port in component.inputs}
        given = {link["output"] for link in links}
        taken = {link["input"] for link in links}
        self._model = model
        self._session: ort.InferenceSession | None = model.session
        self._call = model.session._sess.run_with_iobinding  # noqa: SLF001 (the runtime's version is pinned)
        self._links = [(link["output"], inputs[link["input"]]) for link in links]
        self._growing = [place for place, link in enumerate(links) if link["grows"] is not None]
        self._initial = [_make_initial(component.payload, inputs[link["input"]], link) for link in links]
        self._ports = [port for port in component.inputs if port.name not in taken]
        self._wanted = [port.name for port in component.outputs if port.name not in given]
        self._optional = any(port.optional for port in self._ports)
        self._device = variant.device or "cpu"
        self._current = 0
        self._seen: list[Any] | None = None
        self._busy = threading.Lock()
        self._fill(self._initial)

    def run(self, values: tuple[Any, ...]) -> list[Any]:
        """Run one step; the outputs that are no state, in the model's order. A step that fails leaves the state as it
        was. Raises `InputError`, also where another thread uses the stream.
        """
        if not self._busy.acquire(blocking=False):
            raise _is_busy()
        try:
            self._require_open()
            self._check(values)
            binding = self._bindings[self._current]
            if self._optional or self._growing:
                self._bind_state(binding, self._current)
            for place in self._growing:
                binding.bind_output(self._links[place][0], self._device)
            # Below the wrappers, which take longer than a small model. Outputs are bound anew, or this step would
            # write into the arrays that an earlier one gave.
            native = binding._iobinding  # noqa: SLF001
            for name in self._wanted:
                native.bind_output(name, _CPU)
            for port, value in zip(self._ports, values):  # noqa: B905 (lengths are equal)
                if value is not None:
                    _bind_value(native, port, value)
            self._call(native, None)
            results = native.get_outputs()
            self._current ^= 1
            for place in self._growing:
                self._buffers[self._current][place] = ort.OrtValue(results[len(self._wanted) + place])
            return [unwrap(results[place]) for place in range(len(self._wanted))]
        finally:
            self._busy.release()

    def reset(self) -> None:
        """Begin again with the initial state."""
        self._write(self._initial)

    def read(self) -> dict[str, np.ndarray]:
        """A copy of the state, by the Python names of its inputs."""
        if not self._busy.acquire(blocking=False):
            raise _is_busy()
        try:
            self._require_open()
            pairs = zip(self._links, self._buffers[self._current], strict=True)
            return {port.python_name: np.array(unwrap(value)) for (_, port), value in pairs}
        finally:
            self._busy.release()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`, as `read` gave it. Raises `InputError`."""
        ports = [port for _, port in self._links]
        values: list[Any] = match_names(ports, state)
        check_values(ports, values)
        self._write([np.ascontiguousarray(value).reshape(value.shape) for value in values])

    def close(self) -> None:
        """Free the state, after the step that another thread may be running. Every later call raises `ClosedError`."""
        with self._busy:
            self._session = None
            self._call = None
            self._bindings.clear()
            self._buffers.clear()

    def _write(self, values: list[np.ndarray]) -> None:
        if not self._busy.acquire(blocking=False):
            raise _is_busy()
        try:
            self._require_open()
            self._fill(values)
        finally:
            self._busy.release()

    def _require_open(self) -> ort.InferenceSession:
        if self._session is None:
            raise ClosedError("the stream is closed", hint="open another: model.stream()")
        self._model.require_open()
        return self._session

    def _check(self, values: tuple[Any, ...]) -> None:
        """Layouts that fit are remembered, as for the calls of a model."""
        layout = [(value.__class__, getattr(value, "dtype", None), getattr(value, "shape", None)) for value in values]
        if layout != self._seen:
            check_values(self._ports, values)
            self._seen = layout

    def _fill(self, values: list[np.ndarray]) -> None:
        """Make both sets of buffers with `values`, and the two calls that read one and write the other."""
        self._buffers = [
            [self._store(port, value) for (_, port), value in zip(self._links, values, strict=True)] for _ in "ab"
        ]
        self._bindings = [self._bind(0), self._bind(1)]

    def _store(self, port: Port, value: np.ndarray) -> ort.OrtValue:
        """A copy of a value in the provider's memory."""
        if self._device == "cpu":
            return wrap(value.copy(), port.element_type or "")
        return ort.OrtValue.ortvalue_from_numpy(value, self._device, 0)

    def _bind(self, place: int) -> ort.IOBinding:
        binding = self._require_open().io_binding()
        for name in self._wanted:
            binding.bind_output(name, "cpu")
        for index, ((name, _), value) in enumerate(zip(self._links, self._buffers[place ^ 1], strict=True)):
            if index in self._growing:
                binding.bind_output(name, self._device)
            else:
                binding.bind_ortvalue_output(name, value)
        self._bind_state(binding, place)
        return binding

    def _bind_state(self, binding: ort.IOBinding, place: int) -> None:
        """Only the state: an optional input of the call before is not one of this call."""
        binding.clear_binding_inputs()
        for (_, port), value in zip(self._links, self._buffers[place], strict=True):
            binding.bind_ortvalue_input(port.name, value)


class BundledStream:
    """The base of the package's streams. A stream is used by one thread at a time; a model has any number of them."""

    def __init__(self, state: StreamState) -> None:
        self._state = state
        self._run = state.run

    @property
    def state(self) -> dict[str, np.ndarray]:
        """A copy of the state, by the Python names of its inputs; assigned, the stream goes on from there."""
        return self._state.read()

    @state.setter
    def state(self, values: Mapping[str, Any]) -> None:
        self._state.restore(values)

    def reset(self) -> None:
        """Begin again with the initial state."""
        self._state.reset()

    def close(self) -> None:
        """Free the state. Every later call raises `ClosedError`."""
        self._state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _make_initial(payload: str, port: Port, link: dict[str, Any]) -> np.ndarray:
    """Raises `IntegrityError` for a file that is missing or altered."""
    if link["initial"] == "file":
        data = read_pinned(Memory(payload, always=True), link["file"], link["sha256"])
        stored = np.dtype(dtype_name(port)).newbyteorder("<")
        return np.frombuffer(data, stored).astype(stored.newbyteorder("=")).reshape(link["shape"])
    sizes = [0 if axis == link["grows"] else size for axis, size in enumerate(port.shape or ())]
    shape = [size for size in sizes if isinstance(size, int)]
    return np.full(shape, link["value"]).astype(dtype_name(port))


def _bind_value(native: Any, port: Port, value: np.ndarray | np.generic) -> None:
    """The array lives as long as the call, and no call after it reads it."""
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not value.flags.c_contiguous:
        value = value.copy()
    if port.element_type in STORAGE:
        native.bind_ortvalue_input(port.name, wrap(value, port.element_type)._ortvalue)  # noqa: SLF001
    else:
        native.bind_input(port.name, value)


def _is_busy() -> InputError:
    return InputError(
        "the stream is in use by another thread",
        why="each step goes on from the one before",
        hint="open a separate stream for each thread: model.stream()",
    )
