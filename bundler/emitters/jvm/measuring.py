"""Times each variant of a bundle for the JVM in its own runtime."""

from __future__ import annotations

from dataclasses import replace

from bundler.devices.registry import open_device
from bundler.emitters.contract import ProofRequest
from bundler.emitters.jvm.launching import open_jar, start
from bundler.emitters.load import LoadWatch
from bundler.emitters.proofs import make_opening
from bundler.emitters.reports import UNREADABLE, list_outcomes
from bundler.model.measurement import Measurement
from bundler.model.paths import real_path

MEASURE_SECONDS = 3.0
"""For one variant, where the user gave no other time."""


def measure_bundle(request: ProofRequest) -> tuple[Measurement, ...]:
    """The times of each variant that runs here at full speed; empty where there is none."""
    opened = open_jar(real_path(request.bundle))
    opening = make_opening(request, opened.config, opened.need)
    with open_device(request.on, opening) as device:
        if isinstance(device, str) or device.facts.level != "executed":
            return ()
        watch = LoadWatch()
        seconds = request.timing.seconds or min(MEASURE_SECONDS, request.timing.in_all or MEASURE_SECONDS)
        ending = start(opened, device, ("bench", "--seconds", f"{seconds:g}"))
        others = watch.others()
    try:
        outcomes = list_outcomes(ending)
    except UNREADABLE as error:
        ending, outcomes = replace(ending, failure=f"its output is not that of a loader ({error})"), {}
    if ending.failure is not None:
        opening.say(f"not timed: {ending.failure}"[:300])
    found = []
    for (component, variant), outcome in outcomes.items():
        try:
            found.append(
                Measurement(
                    name="golden sample 0",
                    component=component,
                    variant=variant,
                    opening_ms=tuple(1000 * float(value) for value in outcome["first_answer_seconds"]),
                    latency_ms=tuple(1000 * float(value) for value in outcome["latency_seconds"]),
                    baseline_opening_ms=(),
                    baseline_latency_ms=(),
                    others=others,
                )
            )
        except UNREADABLE:
            opening.say(f"variant {variant} could not be timed: {outcome.get('reason', 'no times')}"[:300])
    return tuple(found)
