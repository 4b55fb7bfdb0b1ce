"""Verifies a bundle for the JVM: runs the golden set with its own loader and runtime."""

from __future__ import annotations

from dataclasses import dataclass

from bundler.devices.contract import Device, Facts
from bundler.devices.registry import open_device
from bundler.emitters.brought import BY_LOADER
from bundler.emitters.contract import ProofRequest, VariantProof
from bundler.emitters.jvm.calling import Called, Classes, call_classes
from bundler.emitters.jvm.launching import OpenJar, open_jar, start
from bundler.emitters.proofs import leave_unproven, make_opening, make_unproven
from bundler.emitters.reports import Ending, read_report
from bundler.environments.registry import Environments
from bundler.model.events import Reporter
from bundler.model.paths import real_path
from bundler.model.runtime import RuntimeComponent, RuntimeVariant


@dataclass(frozen=True, slots=True, kw_only=True)
class JarRun:
    """How a jar's self-test ended on a device, and what came of calling its classes there."""

    ending: Ending
    called: Called
    facts: Facts


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
        run = JarRun(ending=ending, called=_call_classes(request, opened, ending, device), facts=device.facts)
        return tuple(_make_proof(component, variant, run, opened) for component, variant in opened.config.pairs)


def _call_classes(request: ProofRequest, opened: OpenJar, ending: Ending, device: Device) -> Called:
    classes = Classes(
        config=opened.config,
        package=opened.package,
        loader=f"{opened.package}.loader",
        sha256=opened.sha256,
        path=(device.put(opened.jar),),
    )
    environments = request.environments or Environments(request.cache_root)
    reporter = Reporter(request.listener, f"{opened.config.name} → {opened.config.target}")
    return call_classes(classes, ending, device, environments, reporter)


def _make_proof(component: RuntimeComponent, variant: RuntimeVariant, run: JarRun, opened: OpenJar) -> VariantProof:
    key = component.name, variant.name
    found = read_report(run.ending, component, variant, opened.recorded[component.name])
    if found.comparison is None:
        return make_unproven(*key, found.reason, passed=found.passed)
    fault = run.called.find_fault(component) if found.passed else found.reason
    runtime = f"onnxruntime {opened.config.pairs[0][1].requires.runtime}"
    means = f"ran with {runtime} on the Java virtual machine, from the bundle's own jars{BY_LOADER}"
    return VariantProof(
        component=component.name,
        variant=variant.name,
        level=run.facts.level,
        passed=not fault,
        comparison=None if fault and found.passed else found.comparison,
        reason=fault or f"{found.reason or means}{run.called.describe(component, variant)}",
        figures={**found.figures, "process_seconds": run.ending.seconds},
        nodes=found.nodes,
        ran_on=run.facts.record(runtime),
        host=run.facts.describe(),
    )
