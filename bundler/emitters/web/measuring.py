"""Times every variant that the browser can run, in turn with a default session of its runtime on the original model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bundler.devices.browser.kind import ADAPTER, FRAMES
from bundler.devices.browser.process import Adapter, guess_adapter
from bundler.devices.contract import Command, Device, Need
from bundler.devices.registry import open_device
from bundler.emitters.contract import ProofRequest
from bundler.emitters.proofs import make_opening
from bundler.emitters.web.package import OpenPackage, open_package
from bundler.emitters.web.pages import put_pages
from bundler.emitters.web.parts import name_stored
from bundler.emitters.web.proving import Pair, encode_pairs, list_pairs, read_pair
from bundler.emitters.web.vendor import VENDOR, list_builds
from bundler.model.codec import parse_json
from bundler.model.errors import EnvironmentMissingError
from bundler.model.measurement import Measurement, Timing
from bundler.model.paths import real_path

MEASURE_SECONDS: Final = 5.0
"""Maximum time for one variant."""

MEASURE_OPENINGS: Final = 30
MEASURE_RUNS: Final = 1000
"""Maximum number of loads and calls, however fast the model."""

TIME_LIMIT: Final = 600.0
"""Time limit in seconds for all variants, long enough for the shaders of a software adapter."""

PAGE: Final = "measure.html"
_MODEL: Final = "original-{component}.onnx"


@dataclass(slots=True, kw_only=True)
class PageTimes:
    """What the page has reported: the series of each variant, and why others have none."""

    timed: dict[Pair, Mapping[str, Any]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    lacks_adapter: bool = False

    def record(self, line: str) -> None:
        """Record one message."""
        message = parse_json(line)
        match message.get("kind"):
            case "no-adapter":
                self.lacks_adapter = True
            case "timed":
                self.timed[read_pair(message)] = message
            case "remark":
                self.remarks.append(str(message.get("text", ""))[:500])


def measure_bundle(request: ProofRequest) -> tuple[Measurement, ...]:
    """Time each variant and a plain session on the original model in turns, in one browser.

    Without a model there is nothing beside it. A variant that cannot be timed is left out, and a message says
    why; empty where there is no browser. Raises as `prove_bundle` does.
    """
    with open_package(request.bundle) as package:
        opening = make_opening(request, package.config, Need(runs="pages", target=package.config.target))
        with open_device(request.on, opening) as device:
            if isinstance(device, str):
                return ()
            table = _time_all(package, device, request, opening.say)
        for remark in table.remarks:
            opening.say(remark)
        return tuple(_read(pair, table.timed[pair]) for pair in list_pairs(package) if pair in table.timed)


def _time_all(package: OpenPackage, device: Device, request: ProofRequest, say: Callable[[str], None]) -> PageTimes:
    table = PageTimes()
    adapter: Adapter = guess_adapter()
    failure = _visit(package, device, adapter, request, table)
    if table.lacks_adapter and adapter == "hardware":
        failure = _visit(package, device, "software", request, table)
    if failure:
        say(f"timing {device.facts.place} was cut short: {failure}")
    return table


def _visit(package: OpenPackage, device: Device, adapter: Adapter, request: ProofRequest, table: PageTimes) -> str:
    pairs = list_pairs(package)
    models = {name: (_MODEL.format(component=name), source) for name, source in request.models.items()}
    task = {
        "variants": encode_pairs(pairs),
        "adapter": adapter,
        "models": {name: address for name, (address, _) in models.items()},
        "seconds": _limit_seconds(request.timing, len(pairs)),
        "openings": MEASURE_OPENINGS,
        "runs": MEASURE_RUNS,
    }
    command = Command(
        argv=(PAGE,),
        seconds=TIME_LIMIT + request.timing.seconds * len(pairs),
        environment={ADAPTER: adapter, FRAMES: "1"},
        on_line=table.record,
    )
    beside = {address: real_path(source) for address, source in models.values()}
    beside |= _list_modules(package) if models else {}
    for name, source in beside.items():
        device.put(source, name)
    try:
        with put_pages(device, package, task):
            return device.run(command).errors
    except EnvironmentMissingError as error:
        return error.message


def _limit_seconds(timing: Timing, variants: int) -> float:
    """Seconds for each variant; what opens a page and compiles its runtime is not of them."""
    return timing.in_all / variants if timing.in_all else timing.seconds or MEASURE_SECONDS


def _list_modules(package: OpenPackage) -> dict[str, Path]:
    """The runtime's modules under names that a plain page can import; none that is stored in parts."""
    stored = {name: package.root / VENDOR / name_stored(build.module) for name, build in list_builds().items()}
    return {f"{name}.mjs": path for name, path in stored.items() if path.is_file()}


def _read(pair: Pair, reported: Mapping[str, Any]) -> Measurement:
    bundle, plain = reported.get("bundle") or {}, reported.get("plain") or {}
    return Measurement(
        name="golden sample 0",
        component=pair[0],
        variant=pair[1],
        opening_ms=_series(bundle.get("opening_ms", ())),
        latency_ms=_series(bundle.get("latency_ms", ())),
        baseline_opening_ms=_series(plain.get("opening_ms", ())),
        baseline_latency_ms=_series(plain.get("latency_ms", ())),
    )


def _series(values: Sequence[Any]) -> tuple[float, ...]:
    """Only finite times: the coarse clock of a browser may give others."""
    return tuple(float(value) for value in values if isinstance(value, (int, float)) and math.isfinite(value))
