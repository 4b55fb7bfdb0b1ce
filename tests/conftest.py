"""Set before anything imports onnxruntime: no test sends telemetry or writes its database."""

from __future__ import annotations

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
