"""The ingredients of each step in the last build, to explain why a step is stale."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bundler.execution.cache import Cache
from bundler.support.files import replace_whole
from bundler.support.remembered import kept_at, recall, seal

Steps = dict[str, dict[str, Any]]


def recall_history(cache: Cache, model: Path | None, build: str) -> Steps:
    """Ingredients by step id, as the last build of this model under this name used them; empty when there was none."""
    data = recall(kept_at(cache.root, "history", _place(cache, model, build).name), _about(model, build))
    return {str(step): item for step, item in data.items() if isinstance(item, dict)} if isinstance(data, dict) else {}


def remember_history(cache: Cache, model: Path | None, build: str, steps: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep the ingredients for the next build. Failures are ignored: they only cost an explanation."""
    place = _place(cache, model, build)
    known = recall_history(cache, model, build)
    merged = {**known, **steps}  # a build may execute its plan in parts
    if merged != known:
        data = seal(merged, _about(model, build))
        with contextlib.suppress(OSError):
            replace_whole(place, data, draft=cache.scratch.new_path())


def _place(cache: Cache, model: Path | None, build: str) -> Path:
    name = hashlib.sha256(f"{model}\0{build}".encode("utf-8", "surrogateescape")).hexdigest()
    return cache.root / "history" / f"{name}.json"


def _about(model: Path | None, build: str) -> str:
    return f"history {model} {build}"
