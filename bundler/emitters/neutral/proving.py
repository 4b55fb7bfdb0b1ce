"""Verifies a bundle without a runtime: each variant in an environment that can run it, where there is one."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass, replace
from pathlib import Path

from bundler.devices.contract import Need
from bundler.devices.registry import open_device
from bundler.emitters.contract import ProofRequest
from bundler.emitters.neutral.running import Bench, open_bench
from bundler.emitters.payload import CONFIG_NAME
from bundler.emitters.proofs import leave_unproven, make_opening, make_unproven
from bundler.environments.registry import RUNTIME, Environment, Environments
from bundler.model.artifacts import record_folder
from bundler.model.errors import EnvironmentMissingError, StageError, VerificationError
from bundler.model.gates import check_gate, describe_failures
from bundler.model.proof import Proof, VariantProof
from bundler.model.reference import ReferenceFigures
from bundler.model.results import Comparison, OutputComparison
from bundler.model.runtime import Compatibility, Compiled, RuntimeComponent, RuntimeConfig, RuntimeVariant
from bundler.providers.registry import find_by_runtime_name
from bundler.verification.configuration import load_config
from bundler.verification.streams import find_state_fault

NOT_HELD = "runtime.json sets no limit for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a variant is run here: `environment` by name, and the level of proof that this reaches.

    `remark` is the reason given for a success, and `place` is that of `VariantProof`. `plugin` is the module that
    carries the first provider there, empty where the runtime itself has it.
    """

    environment: str
    level: Proof
    remark: str
    plugin: str = ""
    place: str = ""


def prove_bundle(request: ProofRequest) -> tuple[VariantProof, ...]:
    """A proof for each variant. Raises `VerificationError` when the folder is no whole bundle of this kind, and
    `UsageError` for a device that has not our environments: without a runtime of its own the bundle needs them.
    """
    config = read_config(request.bundle)
    _check_golden(request.bundle, config)
    build = f"{config.name} → {config.target}"
    environments = request.environments or Environments(request.cache_root)
    need = Need(runs="programs", target=config.target, here=True)
    with open_device(request.on, make_opening(request, config, need)) as device:
        if isinstance(device, str):
            return leave_unproven(config, device)
        with open_bench(request, environments, device.facts, build) as bench:
            return tuple(_prove(variant, component, config, bench) for component, variant in config.pairs)


def _check_golden(bundle: Path, config: RuntimeConfig) -> None:
    """Raise `VerificationError` where another golden set would be compared with than was recorded, or the state of a
    stream is another.
    """
    for component in config.components:
        if record_folder(bundle / component.golden).digest != component.golden_digest:
            whose = "its golden set" if config.sole else f"the golden set of {component.name}"
            raise _not_whole(bundle, f"{whose} is not the one that runtime.json names")
        fault = find_state_fault(bundle, component)
        if fault:
            raise _not_whole(bundle, fault if config.sole else f"{component.name}: {fault}")


def _not_whole(bundle: Path, why: str) -> VerificationError:
    return VerificationError(f"{bundle} is not a complete bundle of files", details=(why,), hint="build it again")


def read_config(bundle: Path) -> RuntimeConfig:
    """The bundle's `runtime.json`, held to what bundler writes. Raises `VerificationError`."""
    return load_config(bundle, bundle / CONFIG_NAME)


def find_way(variant: RuntimeVariant) -> Way | str:
    """How this variant can be run on this machine, or why it cannot: a sentence."""
    compiled = variant.requires.compiled
    if compiled is not None:
        return _way_of_compiled(variant, compiled)
    if variant.prepare is not None:
        return f"its {variant.prepare.thing} is generated on the device"
    absent = [entry.name for entry in variant.providers if not _is_everywhere(entry.name)]
    if absent:
        return f"{RUNTIME} for Python, which would run it here, has no {' and no '.join(absent)}"
    version = variant.requires.runtime
    remark = f"ran with {RUNTIME} {version} for Python on this machine"
    return Way(environment=f"{RUNTIME}=={version}", level="stand-in", remark=remark)


def _way_of_compiled(variant: RuntimeVariant, compiled: Compiled) -> Way | str:
    knowledge = find_by_runtime_name(compiled.provider)
    if knowledge is None or knowledge.compiler is None or not knowledge.compiler.executes:
        return f"the file compiled for {compiled.provider} runs on the device only"
    if len(compiled.devices) > 1:
        devices = ", ".join(compiled.devices)
        return f"it was compiled for several devices at once ({devices}), and only a device can pick its part"
    native = is_native(variant.requires)
    if compiled.partners and not native:
        return f"{' and '.join(compiled.partners)} share its file, which only a device can open"
    how = f"{knowledge.title} on this machine" if native else f"{knowledge.title}'s library, without the device"
    return Way(
        environment=knowledge.compiler.environment,
        level="stand-in" if native else "emulated",
        remark=f"ran with {how}",
        plugin=next((carrier.module for carrier in knowledge.presence.availability if carrier.is_plugin), ""),
        place="" if native else f"in {knowledge.title}'s emulator",
    )


def is_native(requires: Compatibility) -> bool:
    """Whether this machine is of the kind that the variant is for."""
    need = Need(runs="programs", systems=requires.systems, machines=requires.machines)
    return need.fits(platform.system(), platform.machine())


def _is_everywhere(runtime_name: str) -> bool:
    """Whether every build of the runtime has this provider."""
    knowledge = find_by_runtime_name(runtime_name)
    if knowledge is None or knowledge.validation_provider or knowledge.presence.gone:
        return False
    return knowledge.package == RUNTIME and not knowledge.presence.availability


def _prove(variant: RuntimeVariant, component: RuntimeComponent, config: RuntimeConfig, bench: Bench) -> VariantProof:
    way = find_way(variant)
    if isinstance(way, str):
        return make_unproven(component.name, variant.name, way)
    bench.reporter.say(f"verifying variant {config.label(component.name, variant.name)} in {way.environment}")
    try:
        environment = bench.resolve(way.environment)
    except EnvironmentMissingError as error:
        why = f"the environment {way.environment} is not available here: {error.message}"
        return make_unproven(component.name, variant.name, why)
    return replace(_run(variant, component, bench, way, environment), component=component.name)


def _run(
    variant: RuntimeVariant, component: RuntimeComponent, bench: Bench, way: Way, environment: Environment
) -> VariantProof:
    began = time.perf_counter()
    try:
        comparison = bench.compare(component, variant, environment, way.plugin)
    except StageError as error:
        return _judged(variant, way, None, "; ".join((error.message, *error.details[:2])), 0.0)
    failures = check_gate(comparison, variant.gate, component.unstable_outputs)
    lines = describe_failures(comparison, failures)
    comparison = _mark_unjudged(comparison, variant, component)
    proof = _judged(variant, way, comparison, "; ".join(lines), time.perf_counter() - began)
    runtime = f"{RUNTIME} {environment.versions.get(RUNTIME, variant.requires.runtime)}"
    return replace(proof, ran_on=bench.facts.record(runtime), host=bench.facts.describe())


def _mark_unjudged(comparison: Comparison, variant: RuntimeVariant, component: RuntimeComponent) -> Comparison:
    """With what `runtime.json` holds to nothing, of whose values nothing was shown."""

    def mark(output: OutputComparison) -> OutputComparison:
        if variant.gate.of(output.name).judged and output.name not in component.unstable_outputs:
            return output
        known = output.reference or ReferenceFigures(name=output.name)
        return replace(output, reference=replace(known, unjudged=known.unjudged or NOT_HELD))

    return replace(comparison, outputs=tuple(map(mark, comparison.outputs)))


def _judged(
    variant: RuntimeVariant, way: Way, comparison: Comparison | None, fault: str, seconds: float
) -> VariantProof:
    return VariantProof(
        variant=variant.name,
        level=way.level,
        passed=not fault,
        comparison=comparison,
        reason=fault or way.remark,
        figures={"process_seconds": seconds},
        place=way.place,
    )
