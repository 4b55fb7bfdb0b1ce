"""Execution providers from plugins: a library beside the runtime, registered once per process, whose devices
are selected by the properties that the plugin reports.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import onnxruntime

from bundler.model.errors import StageError

_MODULE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_PRIVATE: Final = frozenset({"library_path"})
"""Properties of a device that differ by machine and are not used for selection."""
_registered: dict[str, str] = {}
"""Module by provider: the runtime registers a library once, and libraries are never unloaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """`library` is the Python module that knows the library's path; `select` what the device must report."""

    library: str
    select: Mapping[str, str] = field(default_factory=dict)


def read_plugins(given: Mapping[str, Mapping[str, Any]]) -> dict[str, Plugin]:
    """Plugins by the runtime's name of their provider, from a stage's options."""
    return {
        provider: Plugin(library=str(entry["library"]), select=dict(entry.get("select", {})))
        for provider, entry in given.items()
    }


def is_fresh(provider: str) -> bool:
    """Whether this process has not used the plugin yet: compilers number their results through the whole process."""
    return provider not in _registered


def register_plugin(provider: str, plugin: Plugin) -> None:
    """Register the provider with the runtime. Raises `StageError` when the module or its library is missing, and the
    binding's errors when the runtime rejects the library.
    """
    known = _registered.get(provider)
    if known == plugin.library:
        return
    if known is not None:
        raise StageError(f"two plugins provide {provider}: {known} and {plugin.library}")
    onnxruntime.register_execution_provider_library(provider, _library_path(provider, plugin))
    _registered[provider] = plugin.library


def add_plugin(options: onnxruntime.SessionOptions, provider: str, values: Mapping[str, str], plugin: Plugin) -> None:
    """Let sessions of `options` use the provider on the first device that fits. Raises the errors of `register_plugin`,
    and `StageError` when no device fits.
    """
    register_plugin(provider, plugin)
    options.add_provider_for_devices([_find_device(provider, plugin)], dict(values))


def _library_path(provider: str, plugin: Plugin) -> str:
    if not _MODULE.fullmatch(plugin.library):
        raise StageError(f"{plugin.library[:80]!r} is not the name of a Python module for {provider}")
    try:
        module = importlib.import_module(plugin.library)
    except ImportError as cause:
        raise StageError(
            f"the plugin for {provider} is not in this environment: no module {plugin.library}",
            details=(str(cause),),
            hint="it must be installed in the environment of this step; `bundler doctor` shows the environments",
        ) from cause
    find = getattr(module, "get_library_path", None)
    path = Path(str(find())) if callable(find) else None
    if path is None or not path.is_file():
        raise StageError(
            f"the module {plugin.library} names no existing library of {provider}",
            details=("it has no get_library_path()" if path is None else f"{path.name} is not a file",),
            hint="its wheel may not be for this system; after `bundler cache clear`, bundler creates its "
            "environments again",
        )
    return str(path)


def _find_device(provider: str, plugin: Plugin) -> onnxruntime.OrtEpDevice:
    devices = onnxruntime.get_ep_devices()
    for device in devices:
        if device.ep_name == provider and plugin.select.items() <= dict(device.ep_metadata).items():
            return device
    wanted = ", ".join(f"{key}={value}" for key, value in sorted(plugin.select.items()))
    raise StageError(
        f"{provider} has no device on this machine" + (f" with {wanted}" if wanted else ""),
        details=_describe_devices(devices, provider),
        hint="compile on a machine that has one, or compile on the device (compile.here = false)",
    )


def _describe_devices(devices: Sequence[onnxruntime.OrtEpDevice], provider: str) -> tuple[str, ...]:
    own = [device for device in devices if device.ep_name.partition(".")[0] == provider]
    lines = []
    for device in own:
        said = sorted((key, value) for key, value in device.ep_metadata.items() if key not in _PRIVATE and value)
        lines.append(f"found {device.ep_name}: " + ", ".join(f"{key}={value[:60]}" for key, value in said))
    others = ", ".join(sorted({str(device.ep_name) for device in devices})) or "no provider"
    return tuple(lines) or (f"the plugin lists no device; other devices are of {others}",)
