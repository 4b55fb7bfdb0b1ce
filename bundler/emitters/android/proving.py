"""Verifies a module for Android as far as a machine without a phone can.

Each variant is run by the environment that a bundle of files would take: the same version of the runtime on this
machine, or an NPU's emulator. Beside that, the module's own loader reproduces the golden set on a Java virtual machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bundler.devices.contract import Command, Need
from bundler.devices.registry import open_device
from bundler.emitters.android.loader_classes import MAIN, choose_runtime, provide_classes
from bundler.emitters.android.opening import OpenModule, open_module
from bundler.emitters.brought import describe_comparison
from bundler.emitters.contract import ProofRequest
from bundler.emitters.jvm.calling import Classes, Judge, call_classes
from bundler.emitters.jvm.launching import QUIET, TIME_LIMIT
from bundler.emitters.neutral.proving import prove_bundle as prove_files
from bundler.emitters.payload import CONFIG_NAME
from bundler.emitters.proofs import make_opening
from bundler.emitters.reports import Ending, Recorded, read_ending, read_recorded_sets, read_report
from bundler.environments.registry import Environments
from bundler.execution.temporary import temporary_folder
from bundler.model.digests import digest_file
from bundler.model.errors import BundlerError, EnvironmentMissingError, VerificationError
from bundler.model.events import Reporter
from bundler.model.paths import real_path
from bundler.model.proof import VariantProof
from bundler.model.runtime import RuntimeComponent, RuntimeConfig, RuntimeVariant
from bundler.verification.configuration import load_config
from bundler.verification.streams import INDEX


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderRun:
    """What the module's loader reported on a Java virtual machine with this version of the `runtime`, and the `judge`
    of its generated classes' outputs there. `missing` says what this machine lacks to run it; empty where it ran.
    """

    ending: Ending
    judge: Judge | None = None
    missing: str = ""
    runtime: str = ""


def prove_bundle(request: ProofRequest) -> tuple[VariantProof, ...]:
    """A proof for each variant. Raises `VerificationError` when the folder is no whole module."""
    request = replace(request, bundle=real_path(request.bundle))  # the loader runs in a folder of its own
    with open_module(request.bundle) as module:
        proofs = prove_files(replace(request, bundle=module.payload))
        if all(proof.passed is None for proof in proofs):
            return proofs
        config = load_config(request.bundle, module.payload / CONFIG_NAME)
        recorded = read_recorded_sets(module.payload, config)
        with temporary_folder("outputs") as outputs:
            ran = _run_loader(request, module, config, recorded, Path(outputs))
            return tuple(
                _combine(proof, ran, component, variant, recorded[component.name])
                for proof, (component, variant) in zip(proofs, config.pairs, strict=True)
            )


def _run_loader(
    request: ProofRequest,
    module: OpenModule,
    config: RuntimeConfig,
    recorded: Mapping[str, Recorded],
    outputs: Path,
) -> LoaderRun:
    environments = request.environments or Environments(request.cache_root)
    reporter = Reporter(request.listener, f"{config.name} → {config.target}")
    version = choose_runtime(config.pairs[0][1].requires.runtime)
    opening = make_opening(request, config, Need(runs="classes", target=config.target, stands_in=True))
    sha256 = digest_file(module.payload / CONFIG_NAME)
    try:
        with temporary_folder("facade") as scratch, open_device(None, opening) as device:
            folder = Path(scratch) / "classes"
            package, path = provide_classes(module.loader, version, environments, reporter, pin=sha256, folder=folder)
            if isinstance(device, str):
                return LoaderRun(ending=_NOTHING, missing=device)
            reporter.say("verifying the module's loader on the Java virtual machine")
            parts = [device.put(part) for part in path]
            arguments = (device.put(module.payload), sha256, "self-test", "--json")
            argv = (*QUIET, "-cp", os.pathsep.join(parts), f"{package}.{MAIN}", *arguments)
            ending = read_ending(device.run(Command(argv=argv, seconds=TIME_LIMIT)))
            assets = module.payload.parents[1]
            classes = Classes(
                config=config,
                package=module.payload.parent.name,
                loader=package,
                sha256=sha256,
                path=parts,
                recorded=recorded,
                outputs=outputs,
                assets=device.put(assets),
                payload=module.payload.relative_to(assets).as_posix(),
            )
            called = call_classes(classes, ending, device, environments, reporter)
    except EnvironmentMissingError as error:
        return LoaderRun(ending=_NOTHING, missing=error.message)
    except VerificationError:
        raise
    except BundlerError as error:
        return LoaderRun(ending=replace(_NOTHING, failure="; ".join((error.message, *error.details[:2]))))
    judge = Judge(
        classes=classes,
        called=called,
        compare=request.compare,
        find_golden=lambda component: module.payload / component.golden / INDEX,
    )
    return LoaderRun(ending=ending, judge=judge, runtime=version)


_NOTHING: Final = Ending(report={}, failure="it was not run", seconds=0.0)


def _combine(
    proof: VariantProof, ran: LoaderRun, component: RuntimeComponent, variant: RuntimeVariant, recorded: Recorded
) -> VariantProof:
    """What both say: the loader can take a verification away, and never adds one."""
    if proof.passed is not True:
        return proof
    if ran.missing:
        return replace(proof, reason=f"{proof.reason}; the module's own loader was not run: {ran.missing}")
    reported = read_report(ran.ending, component, variant, recorded)
    if ran.judge is not None:
        reported = ran.judge.judge(reported, component, variant)
    if reported.passed is None:
        return replace(proof, reason=f"{proof.reason}; not by the module's own loader: {reported.reason}")
    if not reported.passed or ran.judge is None:
        why = f"the module's own loader on the Java virtual machine: {reported.reason}"
        return replace(proof, passed=False, reason=why)
    how = (
        "and by the module's own loader, except its Android classes, on the Java virtual machine with "
        f"onnxruntime {ran.runtime}{describe_comparison(reported.brought, recorded.samples)}"
        f"{ran.judge.called.describe(component, variant)}"
    )
    return replace(proof, reason=f"{proof.reason}, {how}")
