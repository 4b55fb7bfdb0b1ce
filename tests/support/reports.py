"""What an honest loader reports of a model that answers as it was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bundler.emitters.contract import EmitRequest
from bundler.emitters.reports import Recorded, read_recorded
from bundler.model.runtime import RuntimeComponent

NONE = ("cosine", "sqnr_db", "low_sqnr_db", "worst_sqnr_db", "top1_agreement", "agreement", "mismatch")
NOTHING = {"equal": True, "max_absolute": 0.0, "mean_absolute": 0.0, "max_relative": 0.0, **dict.fromkeys(NONE)}


def recorded_of(request: EmitRequest) -> Mapping[str, Recorded]:
    """The golden sets of a request, as the layout of its bundle has them."""
    return {
        name: read_recorded((built.golden / "index.json").read_bytes()) for name, built in request.components.items()
    }


def report_of(of: RuntimeComponent, recorded: Recorded, **changes: Any) -> dict[str, Any]:
    """The outcome of its first variant, with `changes`."""
    outputs = [{"name": port.name, **NOTHING} for port in of.signature.outputs]
    told = {"component": of.name, "variant": of.variants[0].name, "status": "passed", "reason": ""}
    return {**told, "samples": recorded.samples, "outputs": outputs, "figures": {}, **changes}
