"""Time each variant of a bundle in its own runtime, in turns with a plain session on the original model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bundler.devices.contract import Device
from bundler.devices.registry import open_device
from bundler.emitters.contract import ProofRequest
from bundler.emitters.load import LoadWatch
from bundler.emitters.proofs import make_opening
from bundler.emitters.python.launching import Launch, open_launch, start, state_need
from bundler.emitters.python.layout import Layout, read_layout
from bundler.emitters.reports import UNREADABLE, Ending
from bundler.model.errors import UsageError
from bundler.model.free_dimensions import shown_name
from bundler.model.measurement import Measurement, Throughput, Timing
from bundler.model.paths import real_path
from bundler.model.runtime import RuntimeConfig, RuntimeVariant
from bundler.model.signature import describe_type

MEASURE_SECONDS = 3.0
"""Maximum time for one variant."""

START_SECONDS = 0.25
"""What Python with its runtime takes to start, where the whole bundle has a limit."""

LEAST_SECONDS = 0.1
"""The shortest time for one variant."""

MEASURE_OPENINGS = 30
MEASURE_RUNS = 1000
"""Maximum number of loads and calls, however fast the model."""


def measure_bundle(request: ProofRequest) -> tuple[Measurement, ...]:
    """Time each variant and a plain session on the original model in turns, in the bundle's own runtime.

    Without a model there is nothing beside it. A variant that cannot be timed is left out, and a message says
    why; empty where none runs at full speed. Raises `UsageError` for a batch that the bundle does not take.
    """
    began = time.monotonic()
    layout = read_layout(real_path(request.bundle))
    _check_batch(layout, request.timing.batch)
    opening = make_opening(request, layout.config, state_need(layout))
    with open_device(request.on, opening) as device:
        if isinstance(device, str):
            return ()
        if device.facts.level != "executed":
            if request.on is not None:
                opening.say(f"not timed: times {device.facts.place} do not predict times on the device")
            return ()
        with open_launch(layout, device, opening, in_place=True) as launch:
            if isinstance(launch, str):
                return ()
            baselines = {name: _put_baseline(device, model) for name, model in request.models.items()}
            return tuple(_measure_variants(layout.config, launch, request, baselines, began=began, say=opening.say))


def _measure_variants(
    config: RuntimeConfig,
    launch: Launch,
    request: ProofRequest,
    baselines: Mapping[str, tuple[str, ...]],
    *,
    began: float,
    say: Callable[[str], None],
) -> Iterator[Measurement]:
    """Those that can be timed, in order of preference, while there is time."""
    for component, variant in config.pairs:
        label = config.label(component.name, variant.name)
        seconds = _limit_seconds(request.timing, time.monotonic() - began)
        if not seconds:
            budget = f"{request.timing.in_all:g} s timing budget"
            say(f"variant {label} not timed: the {budget} is used up; use --measure")
            continue
        chosen = () if config.sole else ("--component", component.name)
        bounds = (*chosen, *_bound(seconds), *baselines.get(component.name, ()))
        measurement = _measure_variant(variant, launch, request, bounds)
        if isinstance(measurement, str):
            say(f"variant {label} could not be timed: {measurement}"[:300])
        else:
            yield replace(measurement, component=component.name)


def _limit_seconds(timing: Timing, spent: float) -> float:
    """Seconds for the next variant, where the bundle has taken `spent`; 0 where its time is over."""
    if not timing.in_all:
        return timing.seconds or MEASURE_SECONDS
    return max(LEAST_SECONDS, timing.in_all - spent - START_SECONDS) if spent < timing.in_all else 0.0


def _check_batch(layout: Layout, batch: int) -> None:
    """Raise `UsageError` where an input has another first size, and no other: it is one for every variant."""
    ports = [port for component in layout.config.components for port in component.signature.inputs]
    for port in ports if batch else ():
        first = port.type.shape[0] if port.type.shape else None
        if isinstance(first, int) and first != batch:
            raise UsageError(
                f"{layout.root} only accepts a batch of {first}: --batch {batch} cannot be timed",
                details=(f"input {shown_name(port.name)}: {describe_type(port.type)}",),
                hint=f"remove --batch, or build a bundle whose first size is open or {batch}",
            )


def _put_baseline(device: Device, model: Path) -> tuple[str, ...]:
    """The options that time a model beside the bundle. Where the device has our own files, its data are beside it."""
    if device.facts.is_here:
        device.put(model.absolute().parent)
    return ("--compare", device.put(real_path(model)))


def _measure_variant(
    variant: RuntimeVariant,
    launch: Launch,
    request: ProofRequest,
    bounds: tuple[str, ...],
) -> Measurement | str:
    """The times, or why there are none."""
    made = ("--prewarm",) if variant.prepare else ()
    watch = LoadWatch()
    ending = start(launch, ("bench", "--json", "--variant", variant.name, *made, *bounds, *_vary(request.timing)))
    if ending.failure is not None:
        return ending.failure
    try:
        return _read_times(variant, request, watch.others() if launch.device.facts.is_here else None, ending)
    except UNREADABLE as error:
        return f"its output is not that of a loader ({error})"


def _read_times(variant: RuntimeVariant, request: ProofRequest, others: float | None, ending: Ending) -> Measurement:
    bundle = ending.report["series"]["bundle"]
    baseline = ending.report["series"].get("plain", {"first_answer_seconds": (), "latency_seconds": ()})
    return Measurement(
        name="golden sample 0",
        variant=variant.name,
        opening_ms=_milliseconds(bundle["first_answer_seconds"]),
        latency_ms=_milliseconds(bundle["latency_seconds"]),
        baseline_opening_ms=_milliseconds(baseline["first_answer_seconds"]),
        baseline_latency_ms=_milliseconds(baseline["latency_seconds"]),
        others=others,
        throughput=tuple(
            Throughput(callers=found["callers"], per_second=tuple(found["calls_per_second"]))
            for found in ending.report.get("throughput", ())
        ),
        batch=request.timing.batch,
    )


def _bound(seconds: float) -> tuple[str, ...]:
    runs = max(MEASURE_RUNS, round(MEASURE_RUNS * seconds / MEASURE_SECONDS))
    return ("--seconds", f"{seconds:g}", "--openings", str(MEASURE_OPENINGS), "--runs", str(runs))


def _vary(timing: Timing) -> tuple[str, ...]:
    """What differs from the usual; a bundle of an older loader does not know these options."""
    named = {"--batch": timing.batch, "--threads": timing.threads, "--callers": ",".join(map(str, timing.callers))}
    spinning = {None: (), True: ("--spinning",), False: ("--no-spinning",)}[timing.spinning]
    return (*(text for name, value in named.items() if value for text in (name, str(value))), *spinning)


def _milliseconds(seconds: Sequence[float]) -> tuple[float, ...]:
    return tuple(value * 1000 for value in seconds)
