"""Opens runtime sessions and calls them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from typing import Any

import numpy as np
import onnxruntime as ort

from .checks import check_values, match_names
from .config import Port, Variant
from .runtime_errors import RUNTIME_ERRORS
from .storage import STORAGE
from .tuning import Tuning, names_threads

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
    """A plain session on any model, with the providers and the tuning of `variant` only.

    Raises one of `RUNTIME_ERRORS`.
    """
    options = ort.SessionOptions()
    _tune(options, variant.tuning, {})
    if variant.uses_plugins:
        return _open(path, variant, options, [])
    _load_needed(variant)
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


def _load_needed(variant: Variant) -> None:
    if variant.requires.get("needs"):
        from .needs import load_needed

        load_needed(variant)


def _open(path: str, variant: Variant, options: ort.SessionOptions, disabled: list[str]) -> ort.InferenceSession:
    _load_needed(variant)
    if variant.uses_plugins:
        from .plugins import add_providers

        add_providers(options, variant, lambda given: _adjust_provider(variant, given))
        return ort.InferenceSession(path, options, disabled_optimizers=disabled or None, enable_fallback=0)
    return ort.InferenceSession(
        path,
        options,
        providers=[
            (provider["name"], _adjust_provider(variant, provider["options"])) for provider in variant.providers
        ],
        disabled_optimizers=disabled or None,
        enable_fallback=0,
    )


def _make_options(variant: Variant) -> ort.SessionOptions:
    options = ort.SessionOptions()
    for name, value in variant.session.items():
        setattr(options, name, _native_value(getattr(options, name), value))
    _tune(options, _choose_tuning(variant), variant.session_config)
    if variant.least_share:
        record_assignment(options)
    return options


def _tune(options: ort.SessionOptions, tuning: Tuning, entries: dict[str, str]) -> None:
    for key, entry in tuning.adjust_entries(entries).items():
        options.add_session_config_entry(key, entry)
    if tuning.threads is not None:
        options.intra_op_num_threads = tuning.threads


def _choose_tuning(variant: Variant) -> Tuning:
    """For the runtime's threads: next to a provider with threads of its own, more of them would compete for cores."""
    return Tuning(spinning=variant.tuning.spinning) if _has_own_threads(variant) else variant.tuning


def _adjust_provider(variant: Variant, options: dict[str, Any]) -> dict[str, Any]:
    """What was generated on the device was generated with the options of `runtime.json`, so it keeps them."""
    return options if variant.prepare is not None else variant.tuning.adjust_provider(options)


def _has_own_threads(variant: Variant) -> bool:
    return any(names_threads(provider["options"]) for provider in variant.providers)


def explain_tuning(variant: Variant) -> str:
    """What of the tuning has no effect, and what it replaces beside its own option; empty where there is neither."""
    if variant.tuning.is_empty:
        return ""
    first = variant.provider_names[0]
    if first != find_last_provider() and not (_has_own_threads(variant) and variant.prepare is None):
        return f"threads and spinning apply to nodes on the CPU only: {first} decides this itself"
    if _choose_tuning(variant).drops_affinities(variant.session_config):
        return "the bundle's affinities are for its own number of threads, and are not used"
    return ""


def _native_value(current: Any, value: Any) -> Any:
    """`value` for the option: enumerations are in `runtime.json` by the name of their member."""
    members = getattr(type(current), "__members__", None)
    return value if members is None else members[value]


_LAYOUT = attrgetter("__class__", "dtype", "shape")


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
        self._seen: list[Any] | None = None

    @property
    def session(self) -> ort.InferenceSession:
        """The session that it calls."""
        return self._session

    def run(self, values: Collection[Any]) -> list[Any]:
        """All outputs in the model's order. Raises `InputError` when a value does not fit."""
        if self._check(values):
            return self._call(self._output_names, dict(zip(self._names, values)), None)  # noqa: B905 (lengths are equal)
        return self._run_with_care(values)

    def run_named(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The same by name: outputs have the model's own, inputs those or the Python ones.

        A copy of a plain `dict` of the model's own names in its order goes to the runtime. Raises `InputError`.
        """
        if type(given) is dict:
            given = given.copy()  # another thread may alter it between the check and the call
        if type(given) is not dict or [*given] != self._names:
            results = self.run(match_names(self._inputs, given))
        elif self._check(given.values()):
            results = self._call(self._output_names, given, None)
        else:
            results = self._run_with_care(given.values())
        return dict(zip(self._output_names, results))  # noqa: B905 (lengths are equal)

    def _check(self, values: Collection[Any]) -> bool:
        """Whether the values can go to the runtime as they are. Raises `InputError` when one does not fit.

        Valid shapes and types are remembered, so that a steady loop costs one comparison per call.
        """
        try:
            layout = [*map(_LAYOUT, values)]
        except AttributeError:
            layout = None
        if layout is None or layout != self._seen:
            check_values(self._inputs, values)
            if any(isinstance(value, np.generic) for value in values):
                layout = None  # the runtime takes arrays alone
            self._seen = layout
        return self._plain and layout is not None

    def _run_with_care(self, values: Collection[Any]) -> list[Any]:
        given = {
            name: np.asarray(value) if isinstance(value, np.generic) else value
            for name, value in zip(self._names, values, strict=True)
            if value is not None
        }
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
        wrapped = {name: wrap(value, types[name]) for name, value in given.items()}
        return [unwrap(value) for value in self._session.run_with_ort_values(self._output_names, wrapped)]


def _find_call(session: ort.InferenceSession) -> Callable[..., list[Any]]:
    """The session's `run` below its Python wrapper, which checks for missing names at each call, as was done here
    already. The runtime's version is pinned; a different one is called through the wrapper.
    """
    native = getattr(session, "_sess", None)
    call: Callable[..., list[Any]] = getattr(native, "run", session.run)
    return call


def wrap(value: Any, element_type: str) -> ort.OrtValue:
    """An array as the runtime's value, which shares its memory."""
    if element_type in STORAGE:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(value, STORAGE[element_type][1])
    return ort.OrtValue.ortvalue_from_numpy(value)


def unwrap(value: ort.OrtValue) -> Any:
    """A tensor as an array. The runtime gives no array of a type that NumPy lacks, so its bits are copied out."""
    stored = _STORED.get(value.data_type())
    if stored is None:
        return value.numpy()
    import ctypes

    tensor = np.empty(value.shape(), stored)
    ctypes.memmove(tensor.ctypes.data, value.data_ptr(), tensor.nbytes)
    return tensor


_STORED = {f"tensor({name})": stored for name, (stored, _) in STORAGE.items()}
