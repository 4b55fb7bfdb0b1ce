"""A Python bundle as an application loads it, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def ask_bundle(bundle: Path, code: str) -> Any:
    """The JSON that `code` prints last, given `model` (a loaded `Model`), `json` and `numpy`."""
    package = next(path.parent.name for path in bundle.glob("*/payload"))
    program = f"import json\nimport numpy\nfrom {package} import Model\nmodel = Model(device_copy=False)\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=bundle,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
