"""Identify the accelerator and its driver, without starting a driver's tools.

What is generated on the device is valid for these alone. Where nothing can be found the text says `unknown`: then only
the runtime's own error shows that a driver has changed.
"""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from .config import Variant

_MODULES = ("nvidia", "amdgpu", "amdxdna", "i915", "xe", "intel_vpu", "qaic", "kgsl", "msm")
"""Drivers of accelerators, by their names in the Linux kernel."""

_NVIDIA = "/proc/driver/nvidia"
_SYSFS = "/sys/module"

_CLASSES = ("{4d36e968-e325-11ce-bfc1-08002be10318}", "{f01a9d53-3ff6-48d2-9f97-c8a7004be10c}")
"""Windows' setup classes of display adapters and of compute accelerators."""

_PASSING = ("PATH", "LUID", "MEM", "STATISTICS", "THERMAL", "TEMPERATURE", "UTILIZATION", "FREE")
"""Parts of the names of properties that may differ from start to start on the same device: the path of a library, an
identifier that Windows assigns at each boot, load and temperature.
"""

_CHOICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
"""Variables that make another device the first."""


def identify_device(variant: Variant) -> str:
    """A text that changes only with the device or its driver. Raises `PluginError` when a device is gone."""
    facts = [_describe_plugin_device(provider) for provider in variant.providers if provider.get("library")]
    if facts and all(kind == "CPU" for kind, _ in facts):
        return repr(facts)
    return repr((facts, [(name, os.environ.get(name)) for name in _CHOICES], identify_drivers()))


def _describe_plugin_device(provider: dict[str, Any]) -> tuple[str, Any]:
    """The kind of hardware, and all lasting properties that the plugin reports."""
    from .plugins import find_device

    found = find_device(provider)
    hardware = found.device
    numbers = (hardware.vendor_id, hardware.device_id)
    return hardware.type.name, (found.ep_vendor, numbers, _lasting(found.ep_metadata), _lasting(hardware.metadata))


def _lasting(reported: dict[str, str]) -> list[tuple[str, str]]:
    return sorted(pair for pair in reported.items() if not any(part in pair[0].upper() for part in _PASSING))


def identify_drivers() -> str:
    """The drivers of accelerators with their versions, and the models of NVIDIA's cards."""
    if sys.platform == "win32":
        return repr(_read_registry()) or "unknown"
    if sys.platform != "linux":
        return platform.version()  # Drivers come with the system.
    found = [text for text in (_read(f"{_NVIDIA}/version"), *_read_cards()) if text]
    loaded = [name for name in _MODULES if os.path.isdir(f"{_SYSFS}/{name}")]
    # A driver that is part of the kernel has no version of its own.
    found += [f"{name} {_read(f'{_SYSFS}/{name}/version') or platform.release()}" for name in loaded]
    return "\n".join(found) or "unknown"


def _read_cards() -> list[str]:
    folder = f"{_NVIDIA}/gpus"
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    texts = [_read(f"{folder}/{name}/information") for name in names]
    return [line.strip() for text in texts for line in text.splitlines() if line.startswith(("Model:", "Video BIOS:"))]


def _read(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as stream:
            return stream.read(4096).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _read_registry() -> list[tuple[str, str]]:
    """Name and version of each driver of the two classes."""
    if sys.platform != "win32":
        return []
    import winreg

    found = []
    for identifier in _CLASSES:
        for number in range(16):
            path = rf"SYSTEM\CurrentControlSet\Control\Class\{identifier}\{number:04d}"
            try:
                with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
                    values = [winreg.QueryValueEx(key, name)[0] for name in ("DriverDesc", "DriverVersion")]
            except OSError:
                continue
            found.append((str(values[0]), str(values[1])))
    return found
