"""What holds for every test and every process that one starts, however the tests themselves were started."""

from __future__ import annotations

import os
import signal

# Set before anything imports onnxruntime: no test sends telemetry or writes its database.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

# Bundles that a test runs where they lie must stay as their manifest lists them, and a test that limits the size of
# files must not leave half of a module's byte code behind for the next one.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

# A shell starts its background jobs with Ctrl-C ignored, and children inherit that; the tests of Ctrl-C need it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)
