"""Verifies a Python bundle: runs the golden set in its own runtime."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bundler.devices.registry import open_device
from bundler.emitters.brought import Brought, describe_comparison, fetch_outputs, list_wanted
from bundler.emitters.contract import Compare, ProofRequest, VariantProof
from bundler.emitters.proofs import leave_unproven, make_opening, make_unproven
from bundler.emitters.python.context import describe_classes
from bundler.emitters.python.launching import Launch, open_launch, start, state_need
from bundler.emitters.python.layout import WHEELS, Layout, read_layout
from bundler.emitters.python.wheelhouse import check_locked
from bundler.emitters.reports import Ending, Reported, read_report
from bundler.execution.temporary import temporary_folder
from bundler.model.paths import real_path
from bundler.model.runtime import RuntimeComponent, RuntimeVariant
from bundler.support.data import data_root

_OPTIONS = ("--json", "--variant", "each")


def prove_bundle(request: ProofRequest) -> tuple[VariantProof, ...]:
    """Run the golden set on the device that was asked for, or one that suits; else check its files and say why not.

    Raises `VerificationError` when the folder is no bundle, or its wheels are not those of its lock.
    """
    layout = read_layout(real_path(request.bundle))
    if layout.format == "dir":
        check_locked(layout.root, WHEELS, layout.lock)
    opening = make_opening(request, layout.config, state_need(layout))
    with open_device(request.on, opening) as device:
        if isinstance(device, str):
            return leave_unproven(layout.config, device)
        with open_launch(layout, device, opening) as launch:
            if isinstance(launch, str):
                return leave_unproven(layout.config, launch)
            return run_self_test(layout, launch, request.compare)


def run_self_test(layout: Layout, launch: Launch, compare: Compare | None = None) -> tuple[VariantProof, ...]:
    """Start the bundle once and read its report on each of its variants, from each way in which its files may lie. Its
    outputs are brought back and compared with `compare`.
    """
    with temporary_folder("outputs") as name, temporary_folder("golden") as scratch:
        folder = Path(name)
        wanted = list_wanted(layout.config, layout.recorded)
        place = launch.device.put(folder)
        ending = _start_self_test(layout, launch, folder, (place, json.dumps(wanted)))
        brought = None
        if compare is not None and not _is_alone(layout, launch) and fetch_outputs(launch.device, place, folder):
            find_golden = functools.partial(layout.find_golden, scratch=Path(scratch))
            brought = Brought(folder=folder, wanted=wanted, compare=compare, find_golden=find_golden)
        return tuple(
            _make_proof(component, variant, _read(ending, component, variant, layout, brought), layout, launch)
            for component, variant in layout.config.pairs
        )


def _read(
    ending: Ending, component: RuntimeComponent, variant: RuntimeVariant, layout: Layout, brought: Brought | None
) -> Reported:
    recorded = layout.recorded[component.name]
    found = read_report(ending, component, variant, recorded)
    if brought is not None:
        found = brought.judge(found, component, variant, recorded)
    return replace(found, figures={**found.figures, "process_seconds": ending.seconds})


def _is_alone(layout: Layout, launch: Launch) -> bool:
    """A single file unpacks itself: no installer lays its files, and no program of ours runs beside it."""
    return layout.format == "pex" or launch.command[-2:] != ("-m", layout.package)


def _start_self_test(layout: Layout, launch: Launch, folder: Path, task: tuple[str, str]) -> Ending:
    """`task` is where the device writes the outputs, and which."""
    if _is_alone(layout, launch):
        return start(launch, ("self-test", *_OPTIONS))
    program = launch.device.put(data_root("templates") / "python" / "self_test_installed.py")
    copy = "" if layout.artifact else str(layout.root)
    classes = json.dumps(describe_classes(layout.config))
    command = (*launch.command[:-2], program, layout.package, copy, classes, *task)
    begun = replace(launch, command=command, writable=(*launch.writable, folder))
    return start(begun, _OPTIONS)


def _make_proof(
    component: RuntimeComponent, variant: RuntimeVariant, found: Reported, layout: Layout, launch: Launch
) -> VariantProof:
    if found.passed is None or not found.raw:
        return make_unproven(component.name, variant.name, found.reason, passed=found.passed)
    installations = _read_installations(found.raw)
    refusals = "; ".join(f"not opened from {how}: {why}" for how, why in installations.items() if why)
    refusals = str(found.raw.get("calls") or "") or refusals
    facts = launch.device.facts
    return VariantProof(
        component=component.name,
        variant=variant.name,
        level=facts.level,
        passed=found.passed and not refusals,
        comparison=None if refusals else found.comparison,
        reason=found.reason
        or refusals
        or _describe_run(layout, launch)
        + _describe_copy(found)
        + _describe_installations(installations)
        + describe_comparison(found.brought, layout.recorded[component.name].samples),
        figures=found.figures,
        nodes=found.nodes,
        place=facts.place,
        means=launch.means,
        unrun=launch.unrun,
        ran_on=facts.record(_name_runtime(layout)),
        host=facts.describe(),
    )


def _read_installations(raw: Mapping[str, Any]) -> dict[str, str]:
    """The ways in which the files lay, each with why the variant did not open (nothing: it did)."""
    found = raw.get("installations")
    return {str(how): str(why) for how, why in found.items()} if isinstance(found, dict) else {}


def _describe_run(layout: Layout, launch: Launch) -> str:
    place = launch.device.facts.place
    return f"ran with {_name_runtime(layout)} on {launch.means}{place and f' {place}'}, with no index"


def _name_runtime(layout: Layout) -> str:
    return f"onnxruntime {layout.config.pairs[0][1].requires.runtime}"


def _describe_copy(found: Reported) -> str:
    """Whether it ran on what was generated for this device, and whether the device's own copy was tried."""
    if "prewarm_seconds" in found.figures:
        return ", on files that were generated for it on this machine"
    copy = found.raw.get("device_copy")
    if not isinstance(copy, dict):
        return ""
    if copy.get("status") == "passed":
        return ", as shipped and from the device's own copy"
    return ", as shipped; the device's own copy could not be kept there"  # Why is of the machine, not of the bundle.


def _describe_installations(found: Mapping[str, str]) -> str:
    """Which of them the golden set ran from depends on the machine's file systems, so that it is not said."""
    *first, last = sorted(found) or ("",)
    return f", and opened from {', '.join(first)} and {last}" if first else ""
