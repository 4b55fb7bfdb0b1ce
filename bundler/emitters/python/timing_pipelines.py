"""Time the user's own pipeline over all models of a bundle, in the bundle's own runtime."""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import Any

from bundler.devices.registry import open_device
from bundler.emitters.contract import ProofRequest
from bundler.emitters.load import LoadWatch
from bundler.emitters.proofs import make_opening
from bundler.emitters.python.launching import UNREADABLE, Launch, open_launch, start, state_need
from bundler.emitters.python.layout import Layout, read_layout
from bundler.emitters.python.measuring import MEASURE_SECONDS
from bundler.model.measurement import WHOLE, Measurement
from bundler.model.paths import real_path
from bundler.support.data import data_root


def measure_pipeline(request: ProofRequest, function: str, samples: Path) -> Measurement | str:
    """The times of `function` of the bundle's `pipeline.py` over the folder `samples`, or why there are none."""
    layout = read_layout(real_path(request.bundle))
    if layout.format == "pex":
        return "a single file runs its own program alone; time the bundle as a folder or a wheel"
    opening = make_opening(request, layout.config, state_need(layout))
    with open_device(request.on, opening) as device:
        if isinstance(device, str):
            return device
        if not device.facts.is_here or device.facts.level != "executed":
            return f"pipelines are timed on this machine, and the bundle runs {device.facts.place}"
        with open_launch(layout, device, opening, in_place=True) as launch:
            if isinstance(launch, str):
                return launch
            return _measure(request, layout, launch, function, samples)


def _measure(request: ProofRequest, layout: Layout, launch: Launch, function: str, samples: Path) -> Measurement | str:
    program = data_root("templates") / "python" / "time_pipeline.py"
    sites = _list_sites(launch.means)
    for path in (program, real_path(samples), *map(Path, sites)):
        launch.device.put(path)
    seconds = request.timing.seconds or MEASURE_SECONDS
    watch = LoadWatch()
    arguments = (layout.package, function, str(real_path(samples)), f"{seconds:g}", *sites)
    ending = start(_start_program(launch, program, layout.root), arguments)
    if ending.failure is not None:
        return ending.failure
    try:
        return _read_times(ending.report, watch.others(), function)
    except UNREADABLE as error:
        return f"its output is not that of our program ({error})"


def _start_program(launch: Launch, program: Path, root: Path) -> Launch:
    """The same Python, with another program: `pipeline.py` lies in the bundle's folder."""
    environment = {**launch.environment, "PYTHONPATH": str(root)}
    return replace(launch, command=(launch.command[0], str(program)), environment=environment)


def _list_sites(means: str) -> tuple[str, ...]:
    """Our own packages, after those of the bundle, where they are for the same Python: the pipeline ran with them."""
    ours = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    return tuple(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))) if means == ours else ()


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
