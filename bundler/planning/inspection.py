"""The step before any plan."""

from __future__ import annotations

from bundler.model.plan import MODEL, Step

INSPECT_ID = "inspect"


def inspect_step(name: str) -> Step:
    """Facts from the structure of the model called `name`."""
    return Step(id=INSPECT_ID, stage="inspect", inputs={"model": MODEL}, options={"name": name}, reason="always")
