"""Disable NNCF's telemetry: the package of OpenVINO that sends it cannot be imported."""

from __future__ import annotations

import os
import sys
from typing import Final

_PACKAGE: Final = "openvino_telemetry"


def silence_telemetry() -> None:
    """Make that package unavailable. Call this before NNCF is imported.

    NNCF's own switch alone is not enough: NNCF 3.4 first creates the sender, which writes an identifier into the user's
    home folder, and only then reads the switch. Without the package it sends and writes nothing.
    """
    os.environ["NNCF_CI"] = "1"
    sys.modules[_PACKAGE] = None  # type: ignore[assignment]
