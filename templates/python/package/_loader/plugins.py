"""Providers from plugins: libraries beside the runtime, which list the devices that they support.

Only imported for bundles with a plugin.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as _native

from .config import Variant
from .runtime_errors import RUNTIME_ERRORS, first_line

Settle = Callable[[dict[str, Any]], dict[str, Any]]

_guard = threading.Lock()

_KINDS = {"EP_UNSUPPORTED": "unsupported", "EP_SUPPORTED_PREFER_RECOMPILATION": "outdated"}


_MISSING = re.compile(r"(lib[\w.+-]+\.so[.\d]*): cannot open")
"""The linker's message on a library that it does not find. C programs are not translated unless they ask for it."""


class PluginError(Exception):
    """A plugin or its device is not available here; the message is a reason."""


def find_plugin_obstacle(variant: Variant) -> str | None:
    """Why the plugins of `variant` cannot serve it here; None when they can. Loads their libraries."""
    try:
        _check_versions(variant.requires.get("plugins") or {})
        for provider in variant.providers:
            if provider.get("library"):
                find_device(provider)
    except PluginError as error:
        return str(error)
    if judge_compiled(variant) == "unsupported":
        compiled = variant.requires["compiled"]
        return f"{describe_compiled(compiled)}, and {compiled['provider']} cannot use it on this device"
    return None


def add_providers(options: ort.SessionOptions, variant: Variant, settle: Settle) -> None:
    """Give `options` the provider chain of a variant with plugins, their options as `settle` makes them.

    Raises `RuntimeError` where a device is gone.
    """
    for provider in variant.providers:
        settings = settle(provider["options"])
        if not provider.get("library"):
            options.add_provider(provider["name"], settings)
            continue
        try:
            device = find_device(provider)
        except PluginError as error:
            raise RuntimeError(str(error)) from error
        options.add_provider_for_devices([device], settings)


def find_device(provider: dict[str, Any]) -> Any:
    """The first of the plugin's devices that is what `select` asks for. Raises `PluginError` with the reason."""
    name, select = provider["name"], provider.get("select") or {}
    _register(name, provider["library"])
    found = [device for device in ort.get_ep_devices() if device.ep_name == name]
    for device in found:
        if all(device.ep_metadata.get(key) == value for key, value in select.items()):
            return device
    wanted = ", ".join(f"{key} {value}" for key, value in select.items())
    if not found:
        raise PluginError(f"{name} finds no device that it supports here")
    offered = "; ".join(", ".join(f"{key} {device.ep_metadata.get(key)}" for key in select) for device in found)
    raise PluginError(f"{name} finds no device with {wanted} (found: {offered})")


def judge_compiled(variant: Variant) -> str:
    """What the runtime says of a model that was compiled before shipping: `unsupported`, `outdated` (it runs, compiling
    again would make it faster) or nothing. It judges by what the compiler wrote into the model, and on plugins alone:
    for a provider that the runtime was built with, opening the model is the only judge.
    """
    compiled = variant.requires.get("compiled")
    ask = getattr(_native, "get_model_compatibility_for_ep_devices", None)
    if not compiled or not compiled.get("statement") or ask is None:
        return ""
    for provider in variant.providers:
        if provider["name"] == compiled["provider"] and provider.get("library"):
            try:
                return _KINDS.get(ask([find_device(provider)], compiled["statement"]).name, "")
            except PluginError:
                return ""
            except RUNTIME_ERRORS:
                return ""  # It has no opinion.
    return ""


def describe_compiled(compiled: dict[str, Any]) -> str:
    """What was compiled, for a sentence."""
    devices = ", ".join(compiled["devices"]) or "another device"
    return f"it was compiled for {devices} with {compiled['sdk'] or 'an unknown compiler'}"


def list_versions(plugins: Iterable[str]) -> dict[str, str]:
    """The versions of distributions, as they are installed here; empty text for one that is not."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in plugins:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def _check_versions(wanted: dict[str, str]) -> None:
    found = list_versions(wanted)
    for name, expected in wanted.items():
        if not found[name]:
            raise PluginError(f"the plugin {name} is not installed")
        if found[name] != expected:
            raise PluginError(f"it was built for {name} {expected}; found {found[name]}")


def _register(name: str, module: str) -> None:
    """Load the library once a process; somebody else may have done it already."""
    with _guard:
        if any(device.ep_name == name for device in ort.get_ep_devices()) or name in _registered:
            return
        try:
            from importlib import import_module

            library = import_module(module).get_library_path()
        except Exception as error:  # a broken installation raises anything at all, and is a reason
            raise PluginError(f"the plugin {module} cannot be imported ({type(error).__name__}: {error})") from error
        try:
            _register_library(name, library)
        except RUNTIME_ERRORS as error:
            raise PluginError(f"the library of {module} cannot be loaded ({first_line(error)})") from error
        _registered.add(name)


def _register_library(name: str, library: str) -> None:
    """Register the library of a plugin. A library that the plugin carries under a longer name than the linker looks
    for (`libcudart.so.13.4.36` for `libcudart.so.13`) is loaded first: the linker then takes it from memory.
    """
    loaded: set[str] = set()
    while True:
        try:
            ort.register_execution_provider_library(name, library)
        except RUNTIME_ERRORS as error:
            carried = _find_carried(str(error), os.path.dirname(library)) - loaded
            if not carried:
                raise
            for path in carried:
                with suppress(OSError):  # The next attempt says what it lacks.
                    ctypes.CDLL(path)
            loaded |= carried
        else:
            return


def _find_carried(message: str, folder: str) -> set[str]:
    """The libraries in `folder` that stand for one that the linker did not find, as its message names it."""
    missing = set(_MISSING.findall(message))
    if not missing or not os.path.isdir(folder):
        return set()
    names = [entry for entry in os.listdir(folder) if any(entry.startswith(f"{name}.") for name in missing)]
    return {os.path.join(folder, name) for name in names}


_registered: set[str] = set()
