"""Run a session on values, element types that NumPy lacks included."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import onnxruntime

from bundler.model.errors import ModelError
from bundler.workbench.elements import ELEMENTS, Element, element_of_array, storage_bytes
from bundler.workbench.sessions import RUNTIME_ERRORS, clean_message
from bundler.workbench.value_files import Value, from_storage, to_storage

_SEVERITY_FATAL: Final = 4
_FOREIGN: Final = {element.runtime: element for element in ELEMENTS if element.foreign}


class RunError(Exception):
    """The runtime refused to run these inputs; the text is its own, cleaned."""


def run_session(session: onnxruntime.InferenceSession, feeds: Mapping[str, Value]) -> dict[str, Value]:
    """All outputs by name, in the model's order. Raises `RunError` with the runtime's words."""
    names = [output.name for output in session.get_outputs()]
    options = onnxruntime.RunOptions()
    options.log_severity_level = _SEVERITY_FATAL
    try:
        if _needs_raw_values(session, feeds):
            values = _run_raw(session, names, feeds, options)
        else:
            values = session.run(names, dict(feeds), options)
    except RUNTIME_ERRORS as cause:
        raise RunError(clean_message(cause)) from cause
    return dict(zip(names, values, strict=True))


def _needs_raw_values(session: onnxruntime.InferenceSession, feeds: Mapping[str, Value]) -> bool:
    arrays = (value for value in feeds.values() if isinstance(value, np.ndarray))
    outputs = (_foreign_element(output.type) for output in session.get_outputs())
    return any(element_of_array(array).foreign for array in arrays) or any(outputs)


def _foreign_element(text: str) -> Element | None:
    """The element type of `tensor(bfloat16)` and the like; None for what NumPy has and for all that is no tensor."""
    match = re.fullmatch(r"tensor\((\w+)\)", text)
    return _FOREIGN.get(match[1]) if match else None


def _run_raw(
    session: onnxruntime.InferenceSession, names: list[str], feeds: Mapping[str, Value], options: Any
) -> list[Value]:
    given = {name: _to_runtime(name, value) for name, value in feeds.items()}
    return [_from_runtime(value) for value in session.run_with_ort_values(names, given, options)]


def _to_runtime(name: str, value: Value) -> onnxruntime.OrtValue:
    if not isinstance(value, np.ndarray):
        raise ModelError(f"input {name!r}: a value that is no tensor cannot go beside element types that NumPy lacks")
    element = element_of_array(value)
    if not element.foreign:
        return onnxruntime.OrtValue.ortvalue_from_numpy(value)
    if element.packed:
        raise ModelError(f"input {name!r}: ONNX Runtime's Python API takes no {element.name} from a caller")
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
