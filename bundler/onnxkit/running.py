"""Run a session on values, including element types that NumPy lacks."""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import onnxruntime

from bundler.model.errors import ModelError
from bundler.onnxkit.elements import ELEMENTS, Element, element_of_array, storage_bytes
from bundler.onnxkit.sessions import RUNTIME_ERRORS, SessionSettings, clean_message
from bundler.onnxkit.value_files import Value, from_storage, to_storage

Item = TypeVar("Item")
Result = TypeVar("Result")

_SEVERITY_FATAL: Final = 4
_FOREIGN: Final = {element.runtime: element for element in ELEMENTS if element.foreign}


class RunError(Exception):
    """The runtime failed on these inputs; the text is its own message, cleaned."""


class RunTimeError(RunError):
    """A run was stopped because it took too long."""


class RunMemoryError(RunError):
    """A run required more memory than it may use."""


def run_session(session: onnxruntime.InferenceSession, feeds: Mapping[str, Value]) -> dict[str, Value]:
    """All outputs by name, in the model's order. Raises `RunError` with the runtime's message."""
    return _run(session, feeds, _quiet_options())


def run_within(session: onnxruntime.InferenceSession, feeds: Mapping[str, Value], seconds: float) -> dict[str, Value]:
    """As `run_session`, but stopped after so many seconds, at the end of the current node: then `RunTimeError`."""
    options = _quiet_options()
    timer = threading.Timer(max(seconds, 0.0), setattr, (options, "terminate", True))
    timer.daemon = True
    timer.start()
    try:
        return _run(session, feeds, options)
    except RunError as error:
        if options.terminate:
            raise RunTimeError("the run took too long and was stopped") from error
        raise
    finally:
        timer.cancel()


def _quiet_options() -> onnxruntime.RunOptions:
    options = onnxruntime.RunOptions()
    options.log_severity_level = _SEVERITY_FATAL
    return options


def _run(session: onnxruntime.InferenceSession, feeds: Mapping[str, Value], options: Any) -> dict[str, Value]:
    names = [output.name for output in session.get_outputs()]
    try:
        if _needs_raw_values(session, feeds):
            given = {name: _to_runtime(name, value) for name, value in feeds.items()}
            values = list(map(_from_runtime, session.run_with_ort_values(names, given, options)))
        else:
            values = session.run(names, dict(feeds), options)
    except _RUN_ERRORS as cause:
        raise _name_error(cause) from cause
    return dict(zip(names, values, strict=True))


_RUN_ERRORS: Final[tuple[type[Exception], ...]] = (*RUNTIME_ERRORS, MemoryError)
NO_MEMORY: Final = ("bad_alloc", "bad allocation", "Failed to allocate memory")
"""The runtime's messages when an allocation fails."""


def _name_error(cause: BaseException) -> RunError:
    message = clean_message(cause)
    if isinstance(cause, MemoryError) or any(text in message for text in NO_MEMORY):
        return RunMemoryError(f"it required more memory than a step may use (BUNDLER_MEMORY_LIMIT): {message}")
    return RunError(message)


_MAX_LANES: Final = 4
_MAX_CONCURRENT_MODEL_BYTES: Final = 1 << 30
"""Size of a model in bytes from which only one run at a time is made, for its memory."""


def make_caller(session: onnxruntime.InferenceSession, feed: Mapping[str, Value]) -> Callable[[], object]:
    """A call on these inputs with minimal overhead, for models that take microseconds. Raises the binding's errors."""
    if _needs_raw_values(session, feed):
        return lambda: run_session(session, feed)
    names = [output.name for output in session.get_outputs()]
    return partial(session.run, names, dict(feed), None)


def run_in_lanes(
    session: onnxruntime.InferenceSession,
    feeds: Iterable[Mapping[str, Value]],
    lanes: int,
    seconds: float | None = None,
) -> Iterator[dict[str, Value] | RunError]:
    """The outputs for each of `feeds`, in their order, or its error; `lanes` run at once.

    For single-threaded sessions: the results are the same as without lanes. At most one more feed than lanes is in
    memory. With one lane each run starts when its result is requested. A run of more than `seconds` is stopped.
    """
    attempt = partial(_try_run, session, seconds=seconds)
    return map(attempt, feeds) if lanes == 1 else map_in_lanes(attempt, feeds, lanes)


def map_in_lanes(call: Callable[[Item], Result], items: Iterable[Item], lanes: int) -> Iterator[Result]:
    """The results of `call` in order; `lanes` calls run at once, with at most one more item than that in memory."""
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(max_workers=lanes) as pool:
        for item in items:
            waiting.append(pool.submit(call, item))
            if len(waiting) > lanes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def count_lanes(settings: SessionSettings, model: Path) -> int:
    """How many concurrent runs of a session with these settings are useful."""
    if settings.session.get("intra_op_num_threads") != 1 or model.stat().st_size > _MAX_CONCURRENT_MODEL_BYTES:
        return 1
    return min(_MAX_LANES, os.cpu_count() or 1)


def _try_run(
    session: onnxruntime.InferenceSession, feed: Mapping[str, Value], seconds: float | None
) -> dict[str, Value] | RunError:
    try:
        return run_session(session, feed) if seconds is None else run_within(session, feed, seconds)
    except RunError as error:
        return error


def _needs_raw_values(session: onnxruntime.InferenceSession, feeds: Mapping[str, Value]) -> bool:
    arrays = (value for value in feeds.values() if isinstance(value, np.ndarray))
    outputs = (_foreign_element(output.type) for output in session.get_outputs())
    return any(element_of_array(array).foreign for array in arrays) or any(outputs)


def _foreign_element(text: str) -> Element | None:
    """The element type of `tensor(bfloat16)` and the like; None for NumPy's types and for values other than tensors."""
    match = re.fullmatch(r"tensor\((\w+)\)", text)
    return _FOREIGN.get(match[1]) if match else None


def _to_runtime(name: str, value: Value) -> onnxruntime.OrtValue:
    if not isinstance(value, np.ndarray):
        raise ModelError(f"input {name!r}: only tensors are supported together with element types that NumPy lacks")
    element = element_of_array(value)
    if not element.foreign:
        return onnxruntime.OrtValue.ortvalue_from_numpy(value)
    if element.packed:
        raise ModelError(f"input {name!r}: ONNX Runtime's Python API does not accept {element.name} from a caller")
    plain = np.frombuffer(to_storage(value, element), f"u{element.bits // 8}").reshape(value.shape)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(plain, element.onnx)


def _from_runtime(value: onnxruntime.OrtValue) -> Value:
    element = _foreign_element(value.data_type())
    if element is None:
        plain: Value = value.numpy()
        return plain
    shape = value.shape()
    count = int(np.prod(shape))
    data = ctypes.string_at(value.data_ptr(), storage_bytes(element, count)) if count else b""
    return from_storage(data, element, shape).copy()
