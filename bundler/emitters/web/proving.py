"""Runs the golden set of every variant in a real browser, and derives the level of proof."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bundler.devices.browser.kind import ADAPTER
from bundler.devices.browser.process import Adapter, guess_adapter
from bundler.devices.contract import Command, Device, Facts, Need, Outcome
from bundler.devices.registry import open_device
from bundler.emitters.brought import Brought, describe_comparison, list_wanted
from bundler.emitters.contract import Compare, ProofRequest
from bundler.emitters.proofs import leave_unproven, make_opening, make_unproven
from bundler.emitters.reports import UNREADABLE, Recorded, Reported, read_outcome
from bundler.emitters.web.package import CONFIG, OpenPackage, open_package
from bundler.emitters.web.pages import put_pages
from bundler.execution.temporary import temporary_folder
from bundler.model.codec import parse_json
from bundler.model.errors import DeviceMissingError
from bundler.model.proof import VariantProof
from bundler.model.runtime import SOLE, RuntimeComponent, RuntimeVariant
from bundler.providers.wasm import PROVIDER as WASM
from bundler.verification.streams import INDEX

TIME_LIMIT: Final = 1800.0
"""Time limit in seconds for the golden set of all variants."""

PAGE: Final = "proof.html"

Pair = tuple[str, str]
"""The names of a component and of its variant."""


@dataclass(slots=True, kw_only=True)
class PageReport:
    """What the page has reported so far: the browser's name, each variant's outcome and outputs, and the variant that
    is running. `say` gets its messages.
    """

    say: Callable[[str], None]
    browser: str = ""
    outcomes: dict[Pair, Mapping[str, Any]] = field(default_factory=dict)
    outputs: dict[Pair, Any] = field(default_factory=dict)
    running: Pair | None = None
    lacks_adapter: bool = False

    def record(self, line: str) -> None:
        """Record one message."""
        message = parse_json(line)
        match message.get("kind"):
            case "browser":
                self.browser = str(message.get("name", ""))[:100]
            case "no-adapter":
                self.lacks_adapter = True
            case "remark":
                self.say(str(message.get("text", ""))[:500])
            case "began":
                self.running = read_pair(message)
            case "outputs":
                if read_pair(message) == self.running:  # none is kept that nobody asked for
                    self.outputs[read_pair(message)] = message.get("outputs")
            case "outcome":
                self.running = None
                pair = read_pair(message)
                twice = {"status": "failed", "reason": "the page reported it twice"}
                self.outcomes[pair] = twice if pair in self.outcomes else message


def read_pair(message: Mapping[str, Any]) -> Pair:
    """What a message of a page is about."""
    return str(message.get("component", SOLE)), str(message.get("variant"))


def list_pairs(package: OpenPackage) -> list[Pair]:
    """Every variant with its component, in order."""
    return [(component.name, variant.name) for component, variant in package.config.pairs]


def encode_pairs(pairs: Sequence[Pair]) -> list[dict[str, str]]:
    """The variants of a page's task."""
    return [{"component": component, "variant": variant} for component, variant in pairs]


def prove_bundle(request: ProofRequest) -> tuple[VariantProof, ...]:
    """Run every variant that a browser of this machine can run; without a browser nothing is verified, with the reason.

    Raises `EnvironmentMissingError` when the browser that was named is not there or does not start,
    `VerificationError` when the folder is no bundle.
    """
    with open_package(request.bundle) as package:
        opening = make_opening(request, package.config, Need(runs="pages", target=package.config.target))
        with open_device(request.on, opening) as device:
            if isinstance(device, str):
                return leave_unproven(package.config, device)
            opening.say(f"verifying {device.facts.place}")
            try:
                report = run_variants(package, device, opening.say)
            except DeviceMissingError as error:
                if request.on is not None:
                    raise
                # Its details name paths and process numbers of this machine: for the screen, not for the manifest.
                opening.say("; ".join(error.details))
                return leave_unproven(package.config, error.message)
            with temporary_folder("outputs") as scratch:
                brought = _bring(package, report, request.compare, Path(scratch)) if request.compare else None
                return tuple(
                    _make_proof(*pair, _read(*pair, report, package, brought), report, package, facts=device.facts)
                    for pair in package.config.pairs
                )


MOST_BYTES: Final = 32_000_000
"""Bytes of a sample's outputs that a page brings back (`_proof/calls.js`)."""


def _bring(package: OpenPackage, report: PageReport, compare: Compare, folder: Path) -> Brought:
    """The outputs of each variant's first sample, as files."""
    wanted = list_wanted(package.config, package.recorded, _count_brought)
    for component, variant in list_pairs(package):
        outputs = report.outputs.get((component, variant), {})
        with contextlib.suppress(OSError, RecursionError, *UNREADABLE):  # they are missing then, and the variant fails
            _write_outputs(folder / wanted[component][variant]["folder"], outputs)
    payload = (package.root / CONFIG).parent

    def find_golden(each: RuntimeComponent) -> Path:
        return _join_golden(payload / each.golden, folder / each.golden) / INDEX

    return Brought(folder=folder, wanted=wanted, compare=compare, find_golden=find_golden, rounding=_rounding)


def _count_brought(recorded: Recorded) -> int:
    """The first sample, where one message holds its outputs."""
    return sum(size <= MOST_BYTES for size in recorded.output_bytes[:1])


def _rounding(variant: RuntimeVariant) -> float:
    """By how much two calls in one page may differ, as a share of the largest value: `_proof/calls.js` says why."""
    return 1e-5 if {entry.name for entry in variant.providers} == {WASM.runtime_name} else 1e-3


_PART: Final = re.compile(r"(.+)\.\d{3}")


def _join_golden(stored: Path, folder: Path) -> Path:
    """The golden set with whole files: a package may store large ones in parts, and those are joined in `folder`."""
    files = sorted(path.relative_to(stored) for path in stored.rglob("*") if path.is_file())
    if folder.exists() or not any(_PART.fullmatch(path.name) for path in files):
        return folder if folder.exists() else stored
    for path in files:
        part = _PART.fullmatch(path.name)
        whole = folder / (path.with_name(part[1]) if part else path)
        whole.parent.mkdir(parents=True, exist_ok=True)
        with whole.open("ab") as stream:
            stream.write((stored / path).read_bytes())
    return folder


def _write_outputs(folder: Path, outputs: Mapping[str, Mapping[str, Any]]) -> None:
    """One sample, in the form of a golden set: the web runtime's types have the names of those, but for strings."""
    entries: dict[str, dict[str, Any]] = {}
    folder.mkdir()
    for place, (name, value) in enumerate(outputs.items()):
        entry = {"kind": "tensor", "type": value["type"], "shape": value["dims"]}
        if value["type"] == "string":
            entries[name] = {**entry, "type": "str", "values": value["data"]}
        else:
            (folder / f"{place}.bin").write_bytes(base64.b64decode(value["data"], validate=True))
            entries[name] = {**entry, "file": f"{place}.bin"}
    samples = [{"name": "0", "inputs": {}, "outputs": entries}]
    index = {"synthetic": False, "seed": None, "unstable_outputs": [], "samples": samples}
    (folder / INDEX).write_text(json.dumps(index), "ascii")


def _read(
    component: RuntimeComponent,
    variant: RuntimeVariant,
    report: PageReport,
    package: OpenPackage,
    brought: Brought | None,
) -> Reported:
    outcome, recorded = report.outcomes.get((component.name, variant.name)), package.recorded[component.name]
    if outcome is None:
        return Reported(passed=False, reason="the page did not report it")
    found = read_outcome(outcome, component, variant, recorded)
    return found if brought is None else brought.judge(found, component, variant, recorded)


def run_variants(package: OpenPackage, device: Device, say: Callable[[str], None]) -> PageReport:
    """Run all variants in the page. One that crashes the tab has failed, and the next run in a new browser.

    Raises `EnvironmentMissingError` when the browser does not start.
    """
    report = PageReport(say=say)
    adapter = guess_adapter()
    pending = list_pairs(package)
    while pending:
        outcome = _visit(package, device, adapter, pending, report)
        if report.lacks_adapter and adapter == "hardware":
            adapter, report.lacks_adapter = "software", False
            say("no GPU adapter is available here: the browser's software adapter is used instead")
            continue
        if outcome.code != 0:
            _record_failure(report, pending, outcome)
        pending = [] if outcome.code == 0 else [pair for pair in pending if pair not in report.outcomes]
    return report


def _visit(
    package: OpenPackage, device: Device, adapter: Adapter, pending: Sequence[Pair], report: PageReport
) -> Outcome:
    report.running = None
    command = Command(argv=(PAGE,), seconds=TIME_LIMIT, environment={ADAPTER: adapter}, on_line=report.record)
    with put_pages(device, package, {"variants": encode_pairs(pending), "adapter": adapter}):
        return device.run(command)


def _record_failure(report: PageReport, pending: Sequence[Pair], outcome: Outcome) -> None:
    """Attribute a failure to the variant that was running."""
    first = next((pair for pair in pending if pair not in report.outcomes), None)
    pair = report.running or first
    if pair is not None:
        report.outcomes[pair] = {"status": "failed", "reason": outcome.errors}


def _make_proof(
    component: RuntimeComponent,
    variant: RuntimeVariant,
    found: Reported,
    report: PageReport,
    package: OpenPackage,
    *,
    facts: Facts,
) -> VariantProof:
    pair, outcome = (component.name, variant.name), found.raw
    if found.passed is None:
        return make_unproven(*pair, f"{report.browser or 'the browser'} cannot run it: {found.reason}")
    if not found.raw:
        return make_unproven(*pair, found.reason, passed=False)
    try:
        return VariantProof(
            component=component.name,
            variant=variant.name,
            level=facts.level,
            passed=found.passed,
            comparison=found.comparison,
            reason=found.reason
            or _remark(outcome, report, package)
            + describe_comparison(found.brought, package.recorded[component.name].samples),
            figures=found.figures,
            nodes=found.nodes,
            place=_describe_place(outcome, report),
            ran_on=facts.record(_name_runtime(package)),
            host=facts.describe(),
            **_describe_means(pair, outcome, package),
        )
    except UNREADABLE as error:
        return make_unproven(*pair, f"the page's remarks cannot be read: {type(error).__name__}: {error}", passed=False)


def _remark(outcome: Mapping[str, Any], report: PageReport, package: OpenPackage) -> str:
    """`ran with onnxruntime-web 1.30.0 in Chromium 156.0.8078.79, on the software adapter`."""
    where = f"ran with {_name_runtime(package)} in {report.browser or 'the browser'}"
    extras = [f"{outcome['threads']} threads"] if outcome.get("threads", 0) > 1 else []
    extras += ["on the software adapter"] if outcome.get("software") else []
    extras += [f"and the page reported: {str(fault)[:200]}" for fault in outcome.get("faults", ())[:1]]
    return ", ".join((where, *extras))


def _name_runtime(package: OpenPackage) -> str:
    return f"onnxruntime-web {package.config.pairs[0][1].requires.runtime}"


def _describe_place(outcome: Mapping[str, Any], report: PageReport) -> str:
    adapter = " with a software adapter" if outcome.get("software") else ""
    return f"in {report.browser or 'a browser'}{adapter}"


def _describe_means(pair: Pair, outcome: Mapping[str, Any], package: OpenPackage) -> dict[str, Any]:
    """The build of the runtime that the page chose, and what else the variant is for: its other builds, and Node.js
    where it needs no browser's device.
    """
    variant = package.config.component(pair[0]).variant(pair[1])
    ran = str(outcome.get("build", ""))
    others = [f"the build {build}" for build in variant.builds if build != ran]
    others += [] if any(entry.device for entry in variant.providers) else ["Node.js"]
    return {"means": f"the build {ran}" if len(variant.builds) > 1 else "", "unrun": tuple(others)}
