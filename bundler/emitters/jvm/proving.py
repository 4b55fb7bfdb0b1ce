"""Verifies a bundle for the JVM: runs the golden set with its own loader and runtime."""

from __future__ import annotations

import functools
from pathlib import Path

from bundler.devices.contract import Device, Facts
from bundler.devices.registry import open_device
from bundler.emitters.brought import describe_comparison
from bundler.emitters.contract import ProofRequest, VariantProof
from bundler.emitters.jvm.calling import Classes, Judge, call_classes
from bundler.emitters.jvm.launching import OpenJar, open_jar, start
from bundler.emitters.proofs import leave_unproven, make_opening, make_unproven
from bundler.emitters.reports import Ending, read_report
from bundler.environments.registry import Environments
from bundler.execution.temporary import temporary_folder
from bundler.model.events import Reporter
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
        with temporary_folder("calls") as scratch:
            judge = _call_classes(request, opened, ending, device, Path(scratch))
            return tuple(
                _make_proof(component, variant, ending, judge, device.facts)
                for component, variant in opened.config.pairs
            )


def _call_classes(request: ProofRequest, opened: OpenJar, ending: Ending, device: Device, scratch: Path) -> Judge:
    outputs = scratch / "outputs"
    outputs.mkdir()
    classes = Classes(
        config=opened.config,
        package=opened.package,
        loader=f"{opened.package}.loader",
        sha256=opened.sha256,
        path=(device.put(opened.jar),),
        recorded=opened.recorded,
        outputs=outputs,
    )
    environments = request.environments or Environments(request.cache_root)
    reporter = Reporter(request.listener, f"{opened.config.name} → {opened.config.target}")
    called = call_classes(classes, ending, device, environments, reporter)
    find_golden = functools.partial(opened.find_golden, scratch=scratch / "golden")
    return Judge(classes=classes, called=called, compare=request.compare, find_golden=find_golden)


def _make_proof(
    component: RuntimeComponent, variant: RuntimeVariant, ending: Ending, judge: Judge, facts: Facts
) -> VariantProof:
    recorded = judge.classes.recorded[component.name]
    found = judge.judge(read_report(ending, component, variant, recorded), component, variant)
    if found.passed is None or not found.raw:
        return make_unproven(component.name, variant.name, found.reason, passed=found.passed)
    runtime = f"onnxruntime {judge.classes.config.pairs[0][1].requires.runtime}"
    means = f"ran with {runtime} on the Java virtual machine, from the bundle's own jars"
    compared = describe_comparison(found.brought, recorded.samples)
    return VariantProof(
        component=component.name,
        variant=variant.name,
        level=facts.level,
        passed=found.passed,
        comparison=found.comparison,
        reason=f"{means}{compared}{judge.called.describe(component, variant)}" if found.passed else found.reason,
        figures={**found.figures, "process_seconds": ending.seconds},
        nodes=found.nodes,
        ran_on=facts.record(runtime),
        host=facts.describe(),
    )
