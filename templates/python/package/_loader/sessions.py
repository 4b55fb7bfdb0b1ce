"""Opens runtime sessions and calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime as ort

from .checks import check_values
from .config import Port, Variant
from .runtime_errors import RUNTIME_ERRORS
from .storage import STORAGE

THREADS: int | None = None
"""Threads inside one call, instead of the bundle's number: set by `bench` before anything is opened."""

_THREADS_OF_PROVIDERS = ("intra_op_num_threads", "num_of_threads")
"""The options for the number of threads of providers with their own threads."""

Adapt = Callable[[ort.SessionOptions], None]

_ERRORS_ONLY = 3
"""A level of the runtime's log."""

_SMALLEST_APART = "16384"
"""Bytes; mapping a tensor from the file of weights costs more than copying a small one: with 1024, a network of many
small convolutions (ShuffleNet) opened 1.2 times slower."""


def open_session(path: str, variant: Variant, adapt: Adapt | None = None) -> ort.InferenceSession:
    """A session as `runtime.json` describes it, without the runtime's silent fallback; `adapt` may change its options
    before it is created.

    Raises one of `RUNTIME_ERRORS`.
    """
    options = _make_options(variant)
    if adapt is not None:
        adapt(options)
    return _open(path, variant, options, variant.disabled_optimizers)


def open_original(path: str, variant: Variant) -> ort.InferenceSession:
    """A plain session on any model, with the providers of `variant` only.

    Raises one of `RUNTIME_ERRORS`.
    """
    options = ort.SessionOptions()
    if THREADS is not None:
        options.intra_op_num_threads = THREADS
    if variant.uses_plugins:
        return _open(path, variant, options, [])
    return ort.InferenceSession(path, options, providers=variant.provider_names)


def open_finished(path: str, variant: Variant) -> ort.InferenceSession:
    """The same for a model that was already optimised for this device."""
    options = _make_options(variant)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return _open(path, variant, options, [])


_RECORD = "session.record_ep_graph_assignment_info"


def save_model(options: ort.SessionOptions, path: str, weights: str | None) -> None:
    """Let the runtime save the model as it has optimised it; `weights` names a file beside it for large tensors.

    The runtime warns that such a model is for this hardware only, which is intended, so this session logs errors
    only.
    """
    options.optimized_model_filepath = path
    options.log_severity_level = _ERRORS_ONLY
    if weights is not None:
        entry = "session.optimized_model_external_initializers"
        options.add_session_config_entry(f"{entry}_file_name", weights)
        options.add_session_config_entry(f"{entry}_min_size_in_bytes", _SMALLEST_APART)


def count_nodes(path: str, variant: Variant) -> dict[str, int]:
    """The number of nodes of the optimised graph assigned to each provider; empty where the runtime cannot report it.

    Raises one of `RUNTIME_ERRORS`.
    """
    counts: dict[str, int] = {}
    for provider, _ in list_assigned(open_session(path, variant, record_assignment)):
        counts[provider] = counts.get(provider, 0) + 1
    return counts


def find_last_provider() -> str:
    """The provider that every build of the runtime has, which runs the nodes of no other."""
    names: list[str] = ort.get_available_providers()
    return names[-1]


def record_assignment(options: ort.SessionOptions) -> None:
    """Let the runtime record the assignment of nodes. It warns of entries that are set twice."""
    try:
        options.get_session_config_entry(_RECORD)
    except RUNTIME_ERRORS:
        options.add_session_config_entry(_RECORD, "1")


def list_assigned(session: ort.InferenceSession) -> list[tuple[str, str]]:
    """Provider and operator of each node, of a session that recorded them; empty if the runtime does not report it."""
    ask = getattr(session, "get_provider_graph_assignment_info", None)
    return [(part.ep_name, node.op_type) for part in (() if ask is None else ask()) for node in part.get_nodes()]


def _open(path: str, variant: Variant, options: ort.SessionOptions, disabled: list[str]) -> ort.InferenceSession:
    if variant.uses_plugins:
        from .plugins import add_providers

        add_providers(options, variant, with_threads)
        return ort.InferenceSession(path, options, disabled_optimizers=disabled or None, enable_fallback=0)
    return ort.InferenceSession(
        path,
        options,
        providers=[(provider["name"], with_threads(provider["options"])) for provider in variant.providers],
        disabled_optimizers=disabled or None,
        enable_fallback=0,
    )


def _make_options(variant: Variant) -> ort.SessionOptions:
    options = ort.SessionOptions()
    for name, value in variant.session.items():
        setattr(options, name, _native_value(getattr(options, name), value))
    for key, entry in variant.session_config.items():
        options.add_session_config_entry(key, entry)
    if THREADS is not None:
        options.intra_op_num_threads = THREADS
    if variant.least_share:
        record_assignment(options)
    return options


def with_threads(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a provider, with `THREADS` where they name a number of threads."""
    if THREADS is None:
        return options
    return {**options, **{name: str(THREADS) for name in _THREADS_OF_PROVIDERS if name in options}}


def _native_value(current: Any, value: Any) -> Any:
    """`value` for the option: enumerations are in `runtime.json` by the name of their member."""
    members = getattr(type(current), "__members__", None)
    return value if members is None else members[value]


class Runner:
    """Calls a session with values in the order of the model's inputs. Safe to use from several threads."""

    def __init__(
        self, session: ort.InferenceSession, inputs: list[Port], outputs: list[Port], device: str | None
    ) -> None:
        self._session = session
        self._call = _find_call(session)
        self._inputs = inputs
        self._names = [port.name for port in inputs]
        self._output_names = [port.name for port in outputs]
        self._outputs = outputs
        self._device = device
        self._plain = device is None and not any(port.element_type in STORAGE for port in (*inputs, *outputs))
        self._seen: tuple[list[Any], list[Any]] | None = None

    def run(self, values: tuple[Any, ...]) -> list[Any]:
        """All outputs in the model's order. Raises `InputError` when a value does not fit.

        Valid shapes and types are remembered, so that a steady loop costs one comparison per call.
        """
        try:
            layout = ([value.dtype for value in values], [value.shape for value in values])
        except AttributeError:
            layout = None
        if layout is None or layout != self._seen:
            check_values(self._inputs, values)
            self._seen = layout
        if self._plain and layout is not None:
            return self._call(self._output_names, dict(zip(self._names, values)), None)  # noqa: B905 (lengths are equal)
        return self._run_with_care(values)

    def _run_with_care(self, values: tuple[Any, ...]) -> list[Any]:
        given = {name: value for name, value in zip(self._names, values, strict=True) if value is not None}
        if self._device is not None:
            return self._run_bound(given)
        if not self._plain:
            return self._run_stored(given)
        return self._session.run(self._output_names, given)  # type: ignore[no-any-return, unused-ignore]

    def _run_bound(self, given: dict[str, Any]) -> list[Any]:
        """Outputs stay in the device's memory until all are computed, then are copied together."""
        binding = self._session.io_binding()
        for name, value in given.items():
            binding.bind_cpu_input(name, value)
        for name in self._output_names:
            binding.bind_output(name, self._device)
        self._session.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu()  # type: ignore[no-any-return, unused-ignore]

    def _run_stored(self, given: dict[str, Any]) -> list[Any]:
        """For element types that NumPy lacks: their bits are passed under their ONNX type."""
        types = {port.name: port.element_type or "" for port in self._inputs}
        wrapped = {name: _wrap(value, types[name]) for name, value in given.items()}
        return [_unwrap(value) for value in self._session.run_with_ort_values(self._output_names, wrapped)]


def _find_call(session: ort.InferenceSession) -> Callable[..., list[Any]]:
    """The session's `run` below its Python wrapper, which checks for missing names at each call, as was done here
    already. The runtime's version is pinned; a different one is called through the wrapper.
    """
    native = getattr(session, "_sess", None)
    call: Callable[..., list[Any]] = getattr(native, "run", session.run)
    return call


def _wrap(value: Any, element_type: str) -> ort.OrtValue:
    if element_type in STORAGE:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(value, STORAGE[element_type][1])
    return ort.OrtValue.ortvalue_from_numpy(value)


def _unwrap(value: ort.OrtValue) -> Any:
    """A tensor as an array. The runtime gives no array of a type that NumPy lacks, so its bits are copied out."""
    stored = _STORED.get(value.data_type())
    if stored is None:
        return value.numpy()
    import ctypes

    tensor = np.empty(value.shape(), stored)
    ctypes.memmove(tensor.ctypes.data, value.data_ptr(), tensor.nbytes)
    return tensor


_STORED = {f"tensor({name})": stored for name, (stored, _) in STORAGE.items()}
