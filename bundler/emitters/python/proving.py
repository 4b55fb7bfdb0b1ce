"""Verifies a Python bundle: runs the golden set in its own runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bundler.devices.registry import open_device
from bundler.emitters.contract import ProofRequest, VariantProof
from bundler.emitters.proofs import leave_unproven, make_opening, make_unproven
from bundler.emitters.python.launching import UNREADABLE, Ending, Launch, open_launch, start, state_need
from bundler.emitters.python.layout import WHEELS, Layout, read_layout
from bundler.emitters.python.wheelhouse import check_locked
from bundler.model.paths import real_path
from bundler.model.results import Comparison, restore_output
from bundler.model.runtime import SOLE
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
            return run_self_test(layout, launch)


def run_self_test(layout: Layout, launch: Launch) -> tuple[VariantProof, ...]:
    """Start the bundle once and read its report on each of its variants, from each way in which its files may lie."""
    ending = _start_self_test(layout, launch)
    try:
        return _read_outcomes(layout, launch, ending)
    except UNREADABLE as error:
        why = f"its output is not that of a loader ({type(error).__name__}: {error})"
        return _read_outcomes(layout, launch, replace(ending, report={}, failure=why[:200]))


def _start_self_test(layout: Layout, launch: Launch) -> Ending:
    """A single file unpacks itself: no installer lays its files."""
    if layout.format == "pex" or launch.command[-2:] != ("-m", layout.package):
        return start(launch, ("self-test", *_OPTIONS))
    program = launch.device.put(data_root("templates") / "python" / "self_test_installed.py")
    copy = "" if layout.artifact else str(layout.root)
    command = (*launch.command[:-2], program, layout.package, copy)
    return start(replace(launch, command=command), _OPTIONS)


def _read_outcomes(layout: Layout, launch: Launch, ending: Ending) -> tuple[VariantProof, ...]:
    outcomes = {
        (outcome.get("component", SOLE), outcome["variant"]): outcome for outcome in ending.report.get("variants", ())
    }
    return tuple(
        _make_proof((component.name, variant.name), outcomes, ending, layout, launch)
        for component, variant in layout.config.pairs
    )


Key = tuple[str, str]
"""The names of a component and of its variant."""


def _make_proof(
    key: Key, outcomes: Mapping[Key, Mapping[str, Any]], ending: Ending, layout: Layout, launch: Launch
) -> VariantProof:
    outcome = outcomes.get(key)
    if outcome is None:
        return make_unproven(*key, ending.failure or "the bundle did not report it", passed=False)
    ran = outcome["status"] != "unavailable"
    installations = dict(outcome.get("installations", {}))
    refusals = "; ".join(f"not opened from {how}: {why}" for how, why in installations.items() if why)
    facts = launch.device.facts
    component, variant = key
    return VariantProof(
        component=component,
        variant=variant,
        level=facts.level if ran else "resolved",
        passed=outcome["status"] == "passed" and not refusals if ran else None,
        comparison=_read_comparison(outcome) if ran and not refusals else None,
        reason=outcome["reason"]
        or refusals
        or _describe_run(layout, launch) + _describe_copy(outcome) + _describe_installations(installations),
        figures={**outcome["figures"], "process_seconds": ending.seconds} if ran else {},
        nodes=dict(outcome.get("nodes", {})),
        place=facts.place if ran else "",
        means=launch.means if ran else "",
        unrun=launch.unrun if ran else (),
        ran_on=facts.record(_name_runtime(layout)) if ran else None,
        host=facts.describe() if ran else "",
    )


def _describe_run(layout: Layout, launch: Launch) -> str:
    place = launch.device.facts.place
    return f"ran with {_name_runtime(layout)} on {launch.means}{place and f' {place}'}, with no index"


def _name_runtime(layout: Layout) -> str:
    return f"onnxruntime {layout.config.pairs[0][1].requires.runtime}"


def _describe_copy(outcome: Mapping[str, Any]) -> str:
    """Whether it ran on what was generated for this device, and whether the device's own copy was tried."""
    if "prewarm_seconds" in outcome["figures"]:
        return ", on files that were generated for it on this machine"
    copy = outcome.get("device_copy")
    if copy is None:
        return ""
    if copy["status"] == "passed":
        return ", as shipped and from the device's own copy"
    return ", as shipped; the device's own copy could not be kept there"  # Why is of the machine, not of the bundle.


def _describe_installations(found: Mapping[str, str]) -> str:
    """Which of them the golden set ran from depends on the machine's file systems, so that it is not said."""
    *first, last = sorted(found) or ("",)
    return f", and opened from {', '.join(first)} and {last}" if first else ""


def _read_comparison(outcome: Mapping[str, Any]) -> Comparison:
    unjudged = outcome.get("unjudged", {})
    outputs = (restore_output(output, unjudged.get(output["name"], "")) for output in outcome["outputs"])
    return Comparison(samples=outcome["samples"], outputs=tuple(outputs))
