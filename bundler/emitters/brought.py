"""Outputs that a bundle's program gave, brought back and compared by us.

A loader compares as well, for its users. What it says of itself is not enough: its comparison may be broken.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from bundler.devices.contract import Device, Fetching
from bundler.emitters.contract import Compare
from bundler.emitters.reports import Recorded, Reported
from bundler.model.artifacts import record_folder
from bundler.model.confinement import find_inside
from bundler.model.errors import BundlerError
from bundler.model.gates import check_gate, describe_failures
from bundler.model.results import Comparison, OutputComparison
from bundler.model.runtime import Gate, RuntimeComponent, RuntimeConfig, RuntimeVariant, Tolerance
from bundler.verification.streams import INDEX

MAX_BYTES: Final = 4 << 20
"""Bytes of outputs, of each component and variant, that are brought back; the first sample is, whatever its size."""

_STEPS: Final = {"float16": 2e-3, "bfloat16": 2e-2}
"""By how much two calls may differ in an output that is rounded to few bits, as a share of the largest value."""

SHARE: Final = 1e-3
"""By how much an error that a loader reports may be smaller than ours: loaders add and round in another order."""


Wanted = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""What a program is asked for, by component and variant, as `list_wanted` gives it."""


def count_brought(recorded: Recorded) -> int:
    """How many samples have their outputs brought back. It depends on the golden set alone, not on the machine."""
    total, count = 0, 0
    for size in recorded.output_bytes:
        total += size
        if count and total > MAX_BYTES:
            break
        count += 1
    return count


def list_wanted(
    config: RuntimeConfig, recorded: Mapping[str, Recorded], count: Callable[[Recorded], int] = count_brought
) -> dict[str, dict[str, dict[str, Any]]]:
    """What a program is asked for, by component and variant: the `folder` for the outputs, and that for those of the
    device's own `copy` of the model, each with an index in the form of the golden set's, and of how many `samples`. No
    name of a model names a file.
    """
    wanted: dict[str, dict[str, dict[str, Any]]] = {}
    for place, (component, variant) in enumerate(config.pairs):
        task = {"folder": str(place), "copy": f"{place}-copy", "samples": count(recorded[component.name])}
        wanted.setdefault(component.name, {})[variant.name] = task
    return wanted


def fetch_outputs(device: Device, place: str, folder: Path) -> bool:
    """Whether what the device wrote to `place` is in `folder` now: programs of this machine have it there at once."""
    if place == str(folder):
        return True
    if isinstance(device, Fetching):
        with contextlib.suppress(OSError):  # what is missing then fails the variant, with its name
            device.fetch(place, folder)
        return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """The outputs below `folder`, of which `wanted` were asked for. `find_golden` gives the index of a component's
    golden set. Where they are of other calls than those that the loader compared, both may differ by the `rounding` of
    the variant, a share of the largest recorded value.
    """

    folder: Path
    wanted: Wanted
    compare: Compare
    find_golden: Callable[[RuntimeComponent], Path]
    rounding: Callable[[RuntimeVariant], float] = lambda _: 0.0

    def judge(
        self, found: Reported, component: RuntimeComponent, variant: RuntimeVariant, recorded: Recorded
    ) -> Reported:
        """What is believed of a report that calls a variant good. Our figures replace those of the loader where all
        samples were brought back. Never raises.
        """
        task = self.wanted[component.name][variant.name]
        if found.passed is not True or found.comparison is None or not task["samples"]:
            return found
        try:
            ours = self._compare(component, task, copied=_ran_from_copy(found))
        except BundlerError as error:
            return _refuse(found, "; ".join((error.message, *error.details[:1])))
        except (OSError, ValueError) as error:
            return _refuse(found, f"{type(error).__name__}: {error}")
        if ours.samples != task["samples"]:
            return _refuse(found, f"it gave those of {ours.samples} samples, and {task['samples']} were asked for")
        whole = ours.samples == recorded.samples
        gate = variant.gate if whole else _for_part(variant.gate)
        failures = describe_failures(ours, check_gate(ours, gate, component.unstable_outputs))
        slack = self.rounding(variant)
        faults = [*failures, *_list_lies(found.comparison, ours, component, whole=whole, rounding=slack)]
        if faults:
            return replace(found, passed=False, comparison=ours, reason="; ".join(faults))
        comparison = _take_ours(found.comparison, ours) if whole else found.comparison
        return replace(found, comparison=comparison, brought=ours.samples)

    def _compare(self, component: RuntimeComponent, task: Mapping[str, Any], *, copied: bool) -> Comparison:
        """The figures of the shipped model, or of the device's copy of it where those are worse."""
        golden = self.find_golden(component)
        if record_folder(golden.parent).digest != component.golden_digest:
            raise ValueError("the golden set is not the one that runtime.json names")
        folders = (task["folder"], task["copy"]) if copied else (task["folder"],)
        found = [self.compare(golden, find_inside(self.folder, f"{folder}/{INDEX}")) for folder in folders]
        fewest = min(comparison.samples for comparison in found)
        return Comparison(samples=fewest, outputs=tuple(map(_take_worse, *(each.outputs for each in found))))


def _list_lies(
    reported: Comparison, ours: Comparison, component: RuntimeComponent, *, whole: bool, rounding: float
) -> Iterator[str]:
    """Outputs that have larger errors than the loader reports."""
    said = {output.name: output for output in reported.outputs if not _is_unjudged(output)}
    kinds = {port.name: port.type.element_type or "" for port in component.signature.outputs}
    for output in ours.outputs:
        one = said.get(output.name)
        if one is None or output.name in component.unstable_outputs:
            continue
        peak = output.reference.peak if output.reference else 0.0
        kind = kinds.get(output.name, "")
        slack = max(1e-12, rounding, _STEPS.get(kind, 0.0) if rounding else 0.0) * peak
        # Of complex numbers a loader measures both parts, and we the distance.
        share = math.sqrt(0.5) if kind.startswith("complex") else 1.0
        if one.max_absolute < share * output.max_absolute * (1 - SHARE) - slack:
            yield (
                f"output {output.name!r} has an error of {output.max_absolute:.3g}, and its loader reports "
                f"{one.max_absolute:.3g}"
            )
        elif whole and (one.agreement or 0.0) > (1.0 if output.agreement is None else output.agreement) + SHARE:
            yield f"output {output.name!r} has {output.difference}, and its loader reports fewer"


def _ran_from_copy(found: Reported) -> bool:
    """Whether the device's own copy of the model was run as well."""
    copy = found.raw.get("device_copy")
    return isinstance(copy, dict) and copy.get("status") == "passed"


def _take_worse(*outputs: OutputComparison) -> OutputComparison:
    """That which could not be compared, else that with fewer equal values, else that with the larger error."""

    def rank(output: OutputComparison) -> tuple[bool, float, float]:
        return output.mismatch is not None, -1.0 if output.agreement is None else -output.agreement, output.max_absolute

    return max(outputs, key=rank)


BY_LOADER: Final = ", compared by the bundle's own loader"
"""What is said of a success where no outputs are brought back."""


def describe_comparison(count: int, samples: int) -> str:
    """What is said of a success where the outputs of `count` samples were brought back."""
    if count == samples:
        return ""
    return f"{BY_LOADER}; bundler compared {count} of {samples} samples itself" if count else BY_LOADER


def _refuse(found: Reported, why: str) -> Reported:
    return replace(found, passed=False, comparison=None, reason=f"its outputs could not be compared: {why}"[:300])


def _for_part(gate: Gate) -> Gate:
    """The limits that each element and each sample must meet; those on a whole set may be missed by a part of it. A
    gate without a share of equal values asks for all of them, of any part.
    """

    def part(tolerance: Tolerance) -> Tolerance:
        return replace(
            tolerance, sqnr_db=None, low_sqnr_db=None, typical_sqnr_db=None, cosine=None, top1_agreement=None,
            agreement=None if tolerance.agreement is None else 0.0,
        )  # fmt: skip

    return replace(gate, default=part(gate.default), outputs={name: part(one) for name, one in gate.outputs.items()})


def _is_unjudged(output: OutputComparison) -> bool:
    return bool(output.reference and output.reference.unjudged)


def _take_ours(reported: Comparison, ours: Comparison) -> Comparison:
    """Our figures, except of outputs that nothing could be judged of."""
    unjudged = {output.name: output for output in reported.outputs if _is_unjudged(output)}
    return replace(ours, outputs=tuple(unjudged.get(output.name, output) for output in ours.outputs))
