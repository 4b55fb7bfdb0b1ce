"""NNCF sends telemetry through a package of OpenVINO's; here that package cannot be imported."""

from __future__ import annotations

import os
import sys
from typing import Final

_PACKAGE: Final = "openvino_telemetry"


def silence_telemetry() -> None:
    """To be called before NNCF is imported.

    NNCF's own switch alone is not enough: NNCF 3.4 first makes the object that sends, which writes an identifier into
    the user's home folder, and only then looks at the switch. Without the package it sends and writes nothing.
    """
    os.environ["NNCF_CI"] = "1"
    sys.modules[_PACKAGE] = None  # type: ignore[assignment]
