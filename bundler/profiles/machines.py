"""Compatible combinations on real machines: systems, instruction sets and CPU cores."""

from __future__ import annotations

from collections.abc import Mapping

ARCHITECTURES: Mapping[str, tuple[str, ...]] = {
    "linux": ("x64", "arm64", "armv7"),
    "macos": ("x64", "arm64"),
    "windows": ("x64", "arm64"),
    "android": ("arm64", "armv7", "x64"),
    "ios": ("arm64",),
    "web": ("wasm32",),
}
"""Instruction sets of each system."""

CORES: Mapping[str, tuple[str, ...]] = {
    "arm64": (
        "a64fx",
        "cortex-a35",
        "cortex-a53",
        "cortex-a55",
        "cortex-a57",
        "cortex-a710",
        "cortex-a72",
        "cortex-a76",
        "max",
        "neoverse-n1",
        "neoverse-n2",
        "neoverse-v1",
    ),
    "armv7": ("cortex-a15", "cortex-a7", "cortex-a8", "cortex-a9", "max"),
    "x64": (
        "Broadwell",
        "Cascadelake-Server",
        "EPYC",
        "EPYC-Milan",
        "EPYC-Rome",
        "Haswell",
        "Icelake-Server",
        "IvyBridge",
        "Nehalem",
        "SandyBridge",
        "SapphireRapids",
        "Skylake-Client",
        "Skylake-Server",
        "Westmere",
        "max",
    ),
}
"""Core names that QEMU's user emulation takes (`qemu-aarch64 -cpu help`, `qemu-arm`, `qemu-x86_64`; QEMU 7.2 to 9)."""
