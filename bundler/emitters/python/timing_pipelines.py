"""Time the user's own pipeline over all models of a bundle, in the bundle's own runtime."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from bundler.devices.registry import open_device
from bundler.emitters.contract import PIPELINE, ProofRequest
from bundler.emitters.load import LoadWatch
from bundler.emitters.proofs import make_opening
from bundler.emitters.python.launching import Launch, open_launch, start, state_need
from bundler.emitters.python.layout import Layout, read_layout
from bundler.emitters.python.measuring import MEASURE_SECONDS
from bundler.emitters.reports import UNREADABLE
from bundler.model.errors import StageError, UsageError
from bundler.model.measurement import WHOLE, Measurement
from bundler.model.paths import real_path
from bundler.support.data import data_root
from bundler.support.text import visible

_MISSING = "ModuleNotFoundError"


def measure_pipeline(request: ProofRequest, function: str, samples: Path) -> Measurement:
    """The times of `function` of the bundle's `pipeline.py` over the folder `samples`, with its packages installed.

    Raises `UsageError` for a bundle that has no such program, or runs elsewhere, `EnvironmentMissingError` where the
    packages are not available, and `StageError` where the pipeline cannot start or fails.
    """
    layout = read_layout(real_path(request.bundle))
    if layout.format == "pex":
        raise UsageError(
            f"--pipeline cannot be used with {request.bundle.name}: a single file runs only its own program",
            hint="build the bundle with --format dir, and time that",
        )
    opening = make_opening(request, layout.config, state_need(layout))
    with open_device(request.on, opening) as device:
        if not isinstance(device, str) and not (device.facts.is_here and device.facts.level == "executed"):
            raise UsageError(
                f"--pipeline times on this machine, and {request.bundle.name} runs {device.facts.place}",
                hint="time it on a machine of its target's system and processor",
            )
        if isinstance(device, str):
            raise _cannot_start(request.bundle, device)
        with open_launch(layout, device, opening, in_place=True, added=layout.pipeline_lock) as launch:
            if isinstance(launch, str):
                raise _cannot_start(request.bundle, launch)
            return _measure(request, layout, launch, function, samples)


def _cannot_start(bundle: Path, why: str) -> StageError:
    return StageError(
        f"the pipeline of {bundle.name} cannot start: {why}", hint=f"run `bundler verify {bundle}`, which says more"
    )


def _measure(request: ProofRequest, layout: Layout, launch: Launch, function: str, samples: Path) -> Measurement:
    program = data_root("templates") / "python" / "time_pipeline.py"
    for path in (program, real_path(samples)):
        launch.device.put(path)
    seconds = request.timing.seconds or MEASURE_SECONDS
    watch = LoadWatch()
    arguments = (layout.package, function, str(real_path(samples)), f"{seconds:g}")
    ending = start(_start_program(launch, program, layout.root), arguments)
    if ending.failure is not None:
        raise _failed(request.bundle, ending.failure, samples)
    try:
        return _read_times(ending.report, watch.others(), function)
    except UNREADABLE as error:
        raise _failed(request.bundle, f"its output is not from bundler's program ({error})", samples) from error


def _failed(bundle: Path, why: str, samples: Path) -> StageError:
    hint = f"correct {PIPELINE} in its project, or the samples in {samples}, and build the bundle again"
    if why.startswith(_MISSING):
        hint = 'name its package in the project file, and build again: pipeline = { …, requires = ["PACKAGE"] }'
    return StageError(f"the pipeline of {bundle.name} failed: {visible(why)}", hint=hint)


def _start_program(launch: Launch, program: Path, root: Path) -> Launch:
    """The same Python, with another program: `pipeline.py` lies in the bundle's folder."""
    environment = {**launch.environment, "PYTHONPATH": str(root)}
    return replace(launch, command=(launch.command[0], str(program)), environment=environment)


def _read_times(report: Any, others: float | None, function: str) -> Measurement:
    series, variants = report["bundle"], report["variants"]
    taken = ", ".join(f"{name}/{variant}" for name, variant in variants.items())
    return Measurement(
        name=taken,
        variant=f"pipeline.py:{function}",
        component=WHOLE,
        opening_ms=tuple(value * 1000 for value in series["first_answer_seconds"]),
        latency_ms=tuple(value * 1000 for value in series["latency_seconds"]),
        others=others,
    )
