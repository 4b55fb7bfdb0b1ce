"""Reads `bundle.json` and `runtime.json` of bundles of one model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_document(path: Path) -> dict[str, Any]:
    """The document, with the fields of its only component beside those of the bundle."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    (component,) = document["components"]
    return {**document, **component}
