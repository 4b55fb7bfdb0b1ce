"""OpenVINO's plugin finds devices on Intel's hardware only: a test that runs on one is skipped elsewhere."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import pytest

DEVICES = """
import onnxruntime, onnxruntime_ep_openvino as plugin
onnxruntime.register_execution_provider_library("openvino", plugin.get_library_path())
print(*(device.ep_metadata.get("ov_device") for device in onnxruntime.get_ep_devices()))
"""


@functools.cache
def require_openvino(python: Path) -> None:
    """Skips the test where the plugin that `python` has lists no CPU."""
    listed = subprocess.run([str(python), "-c", DEVICES], capture_output=True, text=True, check=False)
    assert listed.returncode == 0, listed.stderr
    if "CPU" not in listed.stdout.split():
        pytest.skip("OpenVINO's plugin lists no CPU on this machine: it finds devices on Intel's hardware only")
