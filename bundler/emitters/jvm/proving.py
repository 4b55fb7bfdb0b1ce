"""Verifies a bundle for the JVM: runs the golden set with its own loader and runtime."""

from __future__ import annotations

from bundler.devices.contract import Device
from bundler.devices.registry import open_device
from bundler.emitters.brought import BY_LOADER
from bundler.emitters.contract import ProofRequest, VariantProof
from bundler.emitters.jvm.launching import OpenJar, open_jar, start
from bundler.emitters.proofs import leave_unproven, make_opening, make_unproven
from bundler.emitters.reports import Ending, read_report
from bundler.model.paths import real_path
from bundler.model.runtime import RuntimeComponent, RuntimeVariant


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
            _make_proof(component, variant, ending, opened, device) for component, variant in opened.config.pairs
        )


def _make_proof(
    component: RuntimeComponent, variant: RuntimeVariant, ending: Ending, opened: OpenJar, device: Device
) -> VariantProof:
    key = component.name, variant.name
    found = read_report(ending, component, variant, opened.recorded[component.name])
    if found.comparison is None:
        return make_unproven(*key, found.reason, passed=found.passed)
    runtime = f"onnxruntime {opened.config.pairs[0][1].requires.runtime}"
    return VariantProof(
        component=component.name,
        variant=variant.name,
        level=device.facts.level,
        passed=found.passed,
        comparison=found.comparison,
        reason=found.reason or f"ran with {runtime} on the Java virtual machine, from the bundle's own jars{BY_LOADER}",
        figures={**found.figures, "process_seconds": ending.seconds},
        nodes=found.nodes,
        ran_on=device.facts.record(runtime),
        host=device.facts.describe(),
    )
