"""ONNX Runtime's own reader of model packages, through its C API: the Python binding has none.

`OrtApi` only grows, so the places of its functions are fixed; those of version 31 were read from the wheel of 1.31.1.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

API_VERSION = 31
_MESSAGE, _CREATE_ENV, _CREATE_OPTIONS, _INPUT_COUNT, _PACKAGES = 2, 3, 10, 30, 427
"""Functions of `OrtApi`."""
_OPTIONS, _CONTEXT, _COMPONENTS, _VARIANTS, _PROVIDER, _SELECT, _SELECTED, _FOLDER, _SESSION = (
    0,
    2,
    6,
    8,
    9,
    11,
    13,
    14,
    15,
)
"""Functions of `OrtModelPackageApi`."""

Pointer = ctypes.c_void_p


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What the runtime makes of a package: providers of the variants by component, and what it selects and opens when
    the session names no provider.
    """

    variants: dict[str, dict[str, str]]
    selected: str
    folder: Path
    inputs: int


class PackageError(Exception):
    """The runtime's own words."""


def open_package(root: Path, component: str = "model") -> Opened:
    """Open a package, select a variant, and create its session. Raises `PackageError`."""
    api = _api()
    packages = _table(_function(api, _PACKAGES)())
    env, options, context = Pointer(), Pointer(), Pointer()
    _do(api, api, _CREATE_ENV, 3, b"test", _to(env))
    _do(api, api, _CREATE_OPTIONS, _to(options))
    _do(api, packages, _CONTEXT, str(root).encode(), _to(context))
    names = _names(api, packages, _COMPONENTS, context)
    variants = {name: _providers(api, packages, context, name.encode()) for name in names}
    wanted, chosen, session = Pointer(), Pointer(), Pointer()
    _do(api, packages, _OPTIONS, env, options, _to(wanted))
    _do(api, packages, _SELECT, context, component.encode(), wanted, _to(chosen))
    selected, folder, inputs = ctypes.c_char_p(), ctypes.c_char_p(), ctypes.c_size_t()
    _do(api, packages, _SELECTED, chosen, _to(selected))
    _do(api, packages, _FOLDER, chosen, _to(folder))
    _do(api, packages, _SESSION, env, chosen, None, _to(session))
    _do(api, api, _INPUT_COUNT, session, _to(inputs))
    return Opened(
        variants=variants,
        selected=(selected.value or b"").decode(),
        folder=Path((folder.value or b"").decode()),
        inputs=inputs.value,
    )


def _api() -> Any:
    if sys.platform != "linux":
        pytest.skip("the runtime's C API is looked for in its Linux wheel")
    (library,) = Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so*")
    entry = ctypes.CDLL(str(library)).OrtGetApiBase
    entry.restype = Pointer
    found = ctypes.CFUNCTYPE(Pointer, ctypes.c_uint32)(_table(entry())[0])(API_VERSION)
    assert found, f"this runtime has no C API of version {API_VERSION}"
    return _table(found)


def _table(address: Any) -> Any:
    return ctypes.cast(address, ctypes.POINTER(Pointer))


def _to(value: Any) -> Any:
    return ctypes.cast(ctypes.byref(value), Pointer)


def _function(table: Any, place: int, *kinds: Any) -> Any:
    return ctypes.CFUNCTYPE(Pointer, *kinds)(table[place])


def _do(api: Any, table: Any, place: int, *arguments: Any) -> None:
    kinds = [
        ctypes.c_int if isinstance(value, int) else ctypes.c_char_p if isinstance(value, bytes) else Pointer
        for value in arguments
    ]
    status = _function(table, place, *kinds)(*arguments)
    if status:
        text = ctypes.CFUNCTYPE(ctypes.c_char_p, Pointer)(api[_MESSAGE])(status)
        raise PackageError(text.decode())


def _names(api: Any, packages: Any, place: int, *arguments: Any) -> list[str]:
    found, count = ctypes.POINTER(ctypes.c_char_p)(), ctypes.c_size_t()
    _do(api, packages, place, *arguments, _to(found), _to(count))
    return [(found[index] or b"").decode() for index in range(count.value)]


def _providers(api: Any, packages: Any, context: Any, component: bytes) -> dict[str, str]:
    found = {}
    for name in _names(api, packages, _VARIANTS, context, component):
        provider = ctypes.c_char_p()
        _do(api, packages, _PROVIDER, context, component, name.encode(), _to(provider))
        found[name] = (provider.value or b"").decode()
    return found
