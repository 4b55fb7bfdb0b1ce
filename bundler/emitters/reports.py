"""Reads what a loader reports of its self-test, whatever its language, and holds it to the bundle.

A report is one JSON document (tests/vectors/README.md has its form). A loader is the bundle's own code: nothing that it
reports is believed where the bundle says otherwise, and a comparison that is missing is a failure.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from bundler.devices.contract import Outcome
from bundler.model.codec import conforms, decode, parse_json
from bundler.model.confinement import find_inside
from bundler.model.errors import VerificationError
from bundler.model.gates import check_gate, describe_failures
from bundler.model.reference import ReferenceFigures
from bundler.model.results import Comparison, OutputComparison, restore_output
from bundler.model.runtime import SOLE, RuntimeComponent, RuntimeConfig, RuntimeVariant
from bundler.providers.cpu import PROVIDER as CPU
from bundler.providers.wasm import PROVIDER as WASM
from bundler.support.processes import name_signal
from bundler.support.remembered import read_bounded
from bundler.verification.archives import read_entry
from bundler.verification.streams import INDEX, MAX_INDEX_BYTES

UNREADABLE: Final = (LookupError, TypeError, ValueError, AttributeError)
"""What reading the output of an untrusted program may raise."""

MAX_LISTED: Final = 5

MAX_RANK: Final = 64
MAX_SIZE: Final = 1 << 48
"""Dimensions of a recorded value, and the size of each: no runtime has more."""

Key = tuple[str, str]
"""The names of a component and of its variant."""

_REPORTED: Final = (0, 1, 3)
"""Exit codes of a program that reports: all passed, some failed, none could run."""

_SURE: Final = frozenset({CPU.runtime_name, WASM.runtime_name})
"""Providers that every machine has which the bundle is for."""

_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""Numbers that JSON lacks, as loaders write them."""

_FIGURES: Final = tuple(field.name for field in fields(OutputComparison) if field.name not in ("name", "mismatch"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What a bundle's program reported. `failure` says why there is no report, None when there is one."""

    report: Mapping[str, Any]
    failure: str | None
    seconds: float
    code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a golden set holds: its number of samples, what the recorded values of each output are like, and how many
    bytes the outputs of each sample have.
    """

    samples: int
    references: Mapping[str, ReferenceFigures] = field(default_factory=dict)
    output_bytes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What is believed of one variant's report; `raw` is that report. `passed` is None where it could not run. The
    outputs of so many samples were `brought` back and compared by us.
    """

    passed: bool | None
    reason: str
    raw: Mapping[str, Any] = field(default_factory=dict)
    comparison: Comparison | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    nodes: Mapping[str, int] = field(default_factory=dict)
    brought: int = 0


def read_ending(outcome: Outcome) -> Ending:
    """What the program wrote on its standard output, if that is one JSON document without an error."""
    if outcome.code is None:
        late = f"it did not finish within {outcome.seconds:.0f} s"
        return Ending(report={}, failure=late, seconds=outcome.seconds)
    report = _parse(outcome.output)
    is_report = outcome.code in _REPORTED and report and "error" not in report
    failure = None if is_report else _explain(outcome, outcome.code, report)
    return Ending(report={} if failure else report, failure=failure, seconds=outcome.seconds, code=outcome.code)


def _parse(text: str) -> dict[str, Any]:
    try:
        report = parse_json(text)
    except ValueError:
        return {}
    return report if isinstance(report, dict) else {}


def _explain(outcome: Outcome, code: int, report: Mapping[str, Any]) -> str:
    error = report.get("error")
    if isinstance(error, dict) and error.get("message"):
        return f"{error['message']} ({error['why']})" if error.get("why") else str(error["message"])
    last = (outcome.errors.strip().splitlines() or ["no output"])[-1]
    if code < 0:
        return f"it was terminated by {name_signal(-code)}: {last}"
    return f"it exited with code {code}: {last}"


def list_outcomes(ending: Ending) -> dict[Key, Mapping[str, Any]]:
    """What is reported of each variant. Raises one of `UNREADABLE` for a report of another form, one that names a
    variant twice, and one that its exit code denies.
    """
    found: dict[Key, Mapping[str, Any]] = {}
    for outcome in ending.report["variants"] if ending.failure is None else ():
        key = (str(outcome.get("component", SOLE)), str(outcome["variant"]))
        if key in found:
            raise ValueError(f"it reports variant {key[1]!r} twice")
        found[key] = outcome
    statuses = {outcome["status"] for outcome in found.values()}
    if found and ending.code not in ((1,) if "failed" in statuses else (0,) if "passed" in statuses else (0, 3)):
        raise ValueError(f"it reports {', '.join(sorted(statuses))}, and exited with code {ending.code}")
    return found


def read_recorded(index: bytes) -> Recorded:
    """The golden set whose `index.json` this is. Raises one of `UNREADABLE`."""
    read = parse_json(index)
    outputs = read.get("outputs", [])
    if not conforms(tuple[ReferenceFigures, ...], outputs):
        raise ValueError("the index of the golden set has outputs of another form")
    references = (decode(ReferenceFigures, output) for output in outputs)
    return Recorded(
        samples=len(read["samples"]),
        references={known.name: known for known in references},
        output_bytes=tuple(sum(map(_weigh, sample["outputs"].values())) for sample in read["samples"]),
    )


def _weigh(value: Mapping[str, Any]) -> int:
    """About the bytes of a recorded value; the name of an element type has its bits."""
    if value["kind"] == "sequence":
        return sum(map(_weigh, value["items"]))
    if value["kind"] == "map":
        return 16 * len(value["keys"])
    if value["kind"] != "tensor":
        return 0
    if value["type"] == "str":
        return sum(map(len, value["values"]))
    shape = value["shape"]
    if len(shape) > MAX_RANK or not all(type(size) is int and 0 <= size < MAX_SIZE for size in shape):
        raise ValueError("the golden set has a shape of another form")
    bits = re.search(r"\d{1,3}", value["type"])
    elements: int = math.prod(shape)
    return elements * int(bits.group() if bits else 8) // 8


def read_recorded_sets(payload: Path, config: RuntimeConfig) -> dict[str, Recorded]:
    """The golden set of each component in the folder `payload`. Raises `VerificationError`."""
    try:
        return {
            each.name: read_recorded(read_bounded(find_inside(payload, f"{each.golden}/{INDEX}"), MAX_INDEX_BYTES))
            for each in config.components
        }
    except (OSError, *UNREADABLE) as error:
        why = f"{type(error).__name__}: {error}"
        raise VerificationError("the golden set cannot be read", details=(why,), hint="build it again") from error


def read_packed_sets(archive: zipfile.ZipFile, payload: str, config: RuntimeConfig) -> dict[str, Recorded]:
    """The same in an archive. Raises one of `UNREADABLE`, and what a damaged archive raises."""
    return {
        each.name: read_recorded(read_entry(archive, f"{payload}/{each.golden}/{INDEX}", MAX_INDEX_BYTES))
        for each in config.components
    }


def read_report(ending: Ending, component: RuntimeComponent, variant: RuntimeVariant, recorded: Recorded) -> Reported:
    """What is believed of a program's report on one variant. Never raises."""
    try:
        outcome = list_outcomes(ending).get((component.name, variant.name))
    except UNREADABLE as error:
        return _refuse(error)
    if outcome is None:
        return Reported(passed=False, reason=ending.failure or "the bundle did not report it")
    return read_outcome(outcome, component, variant, recorded)


def read_outcome(
    outcome: Mapping[str, Any], component: RuntimeComponent, variant: RuntimeVariant, recorded: Recorded
) -> Reported:
    """What is believed of the report on one variant. Never raises."""
    try:
        return replace(_read_outcome(outcome, component, variant, recorded), raw=outcome)
    except UNREADABLE as error:
        return _refuse(error)


def _refuse(error: Exception) -> Reported:
    return Reported(passed=False, reason=f"its report cannot be read ({type(error).__name__}: {error})"[:300])


def _read_outcome(
    outcome: Mapping[str, Any], component: RuntimeComponent, variant: RuntimeVariant, recorded: Recorded
) -> Reported:
    status, reason = outcome["status"], str(outcome.get("reason") or "")
    if status == "unavailable":
        if {entry.name for entry in variant.providers} <= _SURE:
            return Reported(passed=False, reason=f"it reports that it cannot run here, where it must: {reason}")
        return Reported(passed=None, reason=reason)
    if status not in ("passed", "failed"):
        raise ValueError(f"its status is {status!r}"[:100])
    comparison = _read_comparison(outcome)
    fault = reason or "it failed, without a reason" if status == "failed" else ""
    fault = fault or _find_gap(outcome, comparison, component, variant, recorded)
    fault = fault or "; ".join(_find_failures(comparison, component, variant, recorded))
    return Reported(
        passed=not fault,
        reason=fault or reason,
        comparison=comparison if comparison.outputs else None,
        figures={str(name): float(value) for name, value in outcome.get("figures", {}).items()},
        nodes={str(name): int(count) for name, count in outcome.get("nodes", {}).items()},
    )


def _read_comparison(outcome: Mapping[str, Any]) -> Comparison:
    unjudged = outcome.get("unjudged", {})
    outputs = (_read_output(output, unjudged) for output in outcome.get("outputs", ()))
    return Comparison(samples=int(outcome.get("samples", 0)), outputs=tuple(outputs))


def _read_output(output: Mapping[str, Any], unjudged: Mapping[str, Any]) -> OutputComparison:
    """Its figures, without those that a loader has no name for. A number that JSON lacks is a word, and so may be the
    name of an output.
    """
    name, mismatch = output["name"], output.get("mismatch")
    figures = {key: _NUMBERS.get(value, value) if isinstance(value, str) else value for key, value in output.items()}
    return restore_output({**figures, "name": name, "mismatch": mismatch}, str(unjudged.get(name, "")))


def _find_gap(
    outcome: Mapping[str, Any],
    comparison: Comparison,
    component: RuntimeComponent,
    variant: RuntimeVariant,
    recorded: Recorded,
) -> str:
    """What a report lacks that calls a variant good; empty where it lacks nothing."""
    promised = [port.name for port in component.signature.outputs]
    compared = [output.name for output in comparison.outputs]
    if sorted(compared) != sorted(promised):
        return f"it compared the outputs {_list(compared)}, and the model has {_list(promised)}"
    if comparison.samples != recorded.samples:
        return f"it compared {comparison.samples} of {recorded.samples} recorded samples"
    excused = {name for name in promised if _explain_unjudged(name, variant, recorded)}
    left_out = [name for name in outcome.get("unjudged", {}) if name not in excused]
    if left_out:
        return f"it did not judge {_list(left_out)}"
    broken = [output for output in comparison.outputs if output.name not in excused and not _is_measured(output)]
    return f"output {broken[0].name!r} has figures that no comparison gives" if broken else ""


def _explain_unjudged(name: str, variant: RuntimeVariant, recorded: Recorded) -> str:
    if not variant.gate.of(name).judged:
        return "it has no limits"
    known = recorded.references.get(name)
    return known.unjudged if known else ""


def _is_measured(output: OutputComparison) -> bool:
    """Whether its figures are numbers and agree with each other."""
    numbers = [value for name in _FIGURES if isinstance(value := getattr(output, name), (int, float))]
    errors = (output.max_absolute, output.mean_absolute, output.max_relative)
    if any(map(math.isnan, numbers)) or min(errors) < 0:
        return False
    return output.equal is not True or (output.max_absolute == 0 and output.agreement in (None, 1))


def _find_failures(
    comparison: Comparison, component: RuntimeComponent, variant: RuntimeVariant, recorded: Recorded
) -> Sequence[str]:
    """The limits of `runtime.json` that the reported figures miss.

    A loader judges each element. Its figures have the largest error alone, which is held to what the largest recorded
    value allows: nothing that meets the gate is refused here.
    """
    outputs = tuple(_refer(output, recorded.references.get(output.name)) for output in comparison.outputs)
    judged = Comparison(samples=comparison.samples, outputs=outputs)
    return describe_failures(judged, check_gate(judged, variant.gate, component.unstable_outputs))


def _refer(output: OutputComparison, known: ReferenceFigures | None) -> OutputComparison:
    if known is None:
        return output
    return replace(output, reference=known, envelope=((known.peak, output.max_absolute),))


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:80]) for name in names[:MAX_LISTED])
    return f"{shown} and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else shown or "(none)"
