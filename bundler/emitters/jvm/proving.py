"""Verifies a bundle for the JVM: runs the golden set with its own loader and runtime."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from bundler.devices.contract import Device
from bundler.devices.registry import open_device
from bundler.emitters.contract import ProofRequest, VariantProof
from bundler.emitters.jvm.launching import UNREADABLE, Ending, OpenJar, open_jar, start
from bundler.emitters.proofs import leave_unproven, make_opening, make_unproven
from bundler.model.paths import real_path
from bundler.model.results import Comparison, restore_output

_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""Numbers that JSON lacks, as the loader writes them."""

Key = tuple[str, str]
"""The names of a component and of its variant."""


def prove_bundle(request: ProofRequest) -> tuple[VariantProof, ...]:
    """Run the golden set of every variant, or say why none was run. Raises `VerificationError` when the folder is no
    bundle.
    """
    opened = open_jar(real_path(request.bundle))
    opening = make_opening(request, opened.config, opened.need)
    with open_device(request.on, opening) as device:
        if isinstance(device, str):
            return leave_unproven(opened.config, device)
        opening.say("verifying on the Java virtual machine")
        ending = start(opened, device, ("self-test",))
        return tuple(
            _make_proof((component.name, variant.name), ending, opened, device)
            for component, variant in opened.config.pairs
        )


def _make_proof(key: Key, ending: Ending, opened: OpenJar, device: Device) -> VariantProof:
    outcome = ending.outcomes.get(key)
    if outcome is None:
        return make_unproven(*key, ending.failure or "the bundle did not report it", passed=False)
    if outcome.get("status") == "unavailable":
        return make_unproven(*key, str(outcome.get("reason", "")))
    try:
        return _read_proof(key, outcome, ending, opened, device)
    except UNREADABLE as error:
        return make_unproven(*key, f"its figures cannot be read: {type(error).__name__}: {error}", passed=False)


def _read_proof(key: Key, outcome: Mapping[str, Any], ending: Ending, opened: OpenJar, device: Device) -> VariantProof:
    component = next(component for component, variant in opened.config.pairs if (component.name, variant.name) == key)
    comparison = read_comparison(outcome)
    outputs = {port.name for port in component.signature.outputs}
    if comparison.samples < 1 or {found.name for found in comparison.outputs} != outputs:
        return make_unproven(*key, "it did not compare each output with recorded samples", passed=False)
    runtime = f"onnxruntime {opened.config.pairs[0][1].requires.runtime}"
    return VariantProof(
        component=key[0],
        variant=key[1],
        level=device.facts.level,
        passed=outcome["status"] == "passed",
        comparison=comparison,
        reason=str(outcome["reason"]) or f"ran with {runtime} on the Java virtual machine, from the bundle's own jars",
        figures={**outcome["figures"], "process_seconds": ending.seconds},
        nodes={str(name): int(count) for name, count in outcome.get("nodes", {}).items()},
        ran_on=device.facts.record(runtime),
        host=device.facts.describe(),
    )


def read_comparison(outcome: Mapping[str, Any]) -> Comparison:
    """The figures that the loader reported."""
    unjudged = outcome.get("unjudged", {})
    outputs = (
        restore_output({**_restore(output), "name": output["name"]}, str(unjudged.get(output["name"], "")))
        for output in outcome["outputs"]
    )
    return Comparison(samples=int(outcome["samples"]), outputs=tuple(outputs))


def _restore(output: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _NUMBERS.get(value, value) if isinstance(value, str) else value for key, value in output.items()}
