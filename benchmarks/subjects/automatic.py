"""What the automatic choice of precision costs beside building with every method that it may try."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bars import set_bar
from document import Row, Section, Table
from models import Ready, measure_each
from pairs import Pairs, alternate, show_ratio, show_seconds
from processes import CommandError
from workplace import Workplace, build_bundle

BAR_SECONDS = 184.0
"""Half of what the choice took for the 90 MB encoder when every method was tried and timed (368 s)."""
MODELS = ("encoder_90mb",)
METHODS = (
    "none",
    "dynamic-int8",
    "static-int8",
    "static-int8-percentile",
    "static-int8-full",
    "static-int8-mixed",
    "weights-8bit",
    "weights-4bit",
)
GATES: Mapping[str, tuple[str, ...]] = {
    "its default": (),
    "35 dB": ("--set", "accuracy.sqnr_db=35"),
}
"""At 35 dB `static-int8` misses the gate, so that the search for nodes to keep in floating point may be tried."""


@dataclass(slots=True, kw_only=True)
class Found:
    """By gate: seconds and CPU seconds of the choice over those of all methods, and the last choice."""

    wall: dict[str, Pairs] = field(default_factory=dict)
    processor: dict[str, Pairs] = field(default_factory=dict)
    choices: dict[str, Any] = field(default_factory=dict)


def measure(workplace: Workplace) -> Section:
    measured, failures = measure_each(workplace, MODELS, _measure)
    columns = (
        "model",
        "gate",
        "`auto`",
        "every method",
        "ratio",
        "CPU time",
        "every method",
        "ratio",
        "bar",
        "",
        "chosen",
    )
    return Section(
        name="automatic",
        title="the automatic choice of precision",
        method=(
            "`bundler build --no-prove --set precision.method=auto`, which also times what it tries, beside one build "
            "for each method that it may try, one after the other; synthetic calibration data, an empty step cache "
            "for each side, tool environments kept. A method that misses the gate counts with its time."
        ),
        tables=(Table(columns=columns, rows=tuple(_row(*key, found) for key, found in _list(measured))),),
        notes=(*(_describe(*key, found) for key, found in _list(measured)), *failures),
        figures={
            name: {gate: {"ours": pairs.ours, "theirs": pairs.theirs} for gate, pairs in found.wall.items()}
            for name, found in measured.items()
        },
    )


def _list(measured: Mapping[str, Found]) -> list[tuple[tuple[str, str], Found]]:
    return [((name, gate), found) for name, found in measured.items() for gate in found.wall]


def _measure(workplace: Workplace, model: Ready) -> Found:
    found = Found()
    for gate, settings in GATES.items():
        costs: tuple[list[float], list[float]] = ([], [])

        def ours(gate: str = gate, settings: tuple[str, ...] = settings, kept: list[float] = costs[0]) -> float:
            workplace.forget_steps()
            built = build_bundle(workplace, model.path, workplace.empty("out"), arguments=_arguments("auto", settings))
            found.choices[gate] = built.answer["decisions"]["cpu"]["answer"]
            kept.append(built.ran.cpu_seconds)
            return built.ran.seconds

        def theirs(settings: tuple[str, ...] = settings, kept: list[float] = costs[1]) -> float:
            workplace.forget_steps()
            began = os.times()
            for method in METHODS:
                # One that misses the gate ends with an error: that is part of what trying it costs.
                with contextlib.suppress(CommandError):
                    build_bundle(workplace, model.path, workplace.empty("out"), arguments=_arguments(method, settings))
            ended = os.times()
            kept.append(sum(ended[2:4]) - sum(began[2:4]))
            return ended.elapsed - began.elapsed

        found.wall[gate] = alternate(ours, theirs, workplace.pick(1, 3))
        found.processor[gate] = Pairs(ours=tuple(costs[0][1:]), theirs=tuple(costs[1][1:]))
    return found


def _arguments(method: str, settings: tuple[str, ...]) -> tuple[str, ...]:
    return ("--no-prove", "--calibration", "synthetic", "--set", f"precision.method={method}", *settings)


def _row(name: str, gate: str, found: Found) -> Row:
    wall, processor = found.wall[gate], found.processor[gate]
    return (
        name,
        gate,
        *(show_seconds(wall.ours), show_seconds(wall.theirs), show_ratio(wall)),
        *(show_seconds(processor.ours), show_seconds(processor.theirs), show_ratio(processor)),
        f"{BAR_SECONDS:g} s",
        set_bar(f"automatic choice of precision: {name}, gate {gate}", wall.ours, BAR_SECONDS, unit="s"),
        found.choices[gate]["chosen"],
    )


def _describe(name: str, gate: str, found: Found) -> str:
    """Each method with its state, and the reason where it was not tried."""
    attempts = found.choices[gate]["attempts"]
    parts = [
        f"{item['method']} {item['state']}" + (f" ({item['reason']})" if item["reason"] else "") for item in attempts
    ]
    return f"{name}, gate {gate}: {'; '.join(parts)}."
