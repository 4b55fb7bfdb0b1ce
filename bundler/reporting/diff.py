"""The differences between two bundles, from their manifests; only the summary reads the reports beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bundler.model.codec import encode
from bundler.model.digests import canonical_json
from bundler.model.manifest import ComponentRecord, GoldenRecord, Manifest, OutputCheck, StageRecord, VariantRecord
from bundler.reporting.diff_summary import summarize_difference
from bundler.reporting.figures import show_percent
from bundler.reporting.manifest import read_manifest
from bundler.reporting.pairing import Pair, list_unpaired, pair_components
from bundler.reporting.timings import Timings, read_timings
from bundler.support.text import format_bytes, visible

_ABSENT = "absent"

SAME = "The manifests are the same. Use `bundler verify` to check that the files match their manifests."
"""For two bundles with equal manifests: their files were not opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value that differs; None on the side that lacks it."""

    subject: str
    before: str | int | float | bool | None
    after: str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file that differs: sizes in bytes, None on the side that lacks it. Equal sizes mean other content."""

    path: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleDiff:
    """Two bundles, section by section; a section without changes is empty. `size` is that of all files in bytes;
    `summary` is what a person reads first. `others` are the keys of `bundle.json` that differ where no section does.
    """

    summary: tuple[str, ...]
    names: Change
    size: Change
    identity: tuple[Change, ...]
    files: tuple[FileChange, ...]
    operators: tuple[Change, ...]
    providers: tuple[Change, ...]
    session: tuple[Change, ...]
    stages: tuple[Change, ...]
    accuracy: tuple[Change, ...]
    proof: tuple[Change, ...]
    golden: tuple[Change, ...]
    remarks: tuple[Change, ...]
    decisions: tuple[Change, ...]
    others: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the two manifests record the same content."""
        return not any(getattr(self, name) for name in (*_SECTIONS, "files", "others"))


_SECTIONS = {
    "identity": "Made from",
    "operators": "Operators",
    "providers": "Provider options",
    "session": "Session options",
    "stages": "Stages",
    "accuracy": "Accuracy",
    "proof": "Proof",
    "golden": "Golden set",
    "remarks": "Remarks",
    "decisions": "Decisions",
}


def diff_bundles(first: Path, second: Path) -> BundleDiff:
    """Compare two bundle folders. Raises `VerificationError` when one has no readable manifest."""
    manifests, names = (read_manifest(first), read_manifest(second)), (str(first), str(second))
    return diff_manifests(*manifests, names=names, timed=(read_timings(first), read_timings(second)))


def diff_manifests(
    a: Manifest, b: Manifest, *, names: tuple[str, str], timed: tuple[Timings, Timings] = ({}, {})
) -> BundleDiff:
    """Compare two manifests, and in the summary what was `timed` when they were built."""
    pairs = pair_components(a, b)
    diff = BundleDiff(
        summary=summarize_difference(a, b, timed),
        names=Change(subject="bundle", before=names[0], after=names[1]),
        size=Change(subject="size", before=a.size, after=b.size),
        identity=(*_changes(_identity(a), _identity(b)), *_list_lone(a, b, pairs), *_compare(pairs, _origin)),
        files=_file_changes(a, b),
        operators=_compare(pairs, _operators),
        providers=_compare(pairs, _providers),
        session=_compare(pairs, _session),
        stages=_compare(pairs, _stages),
        accuracy=(*_compare(pairs, _accuracy), *_changes(_pipeline(a), _pipeline(b))),
        proof=tuple(_compare_proofs(a, b, pairs)),
        golden=_compare(pairs, _golden),
        remarks=_compare(pairs, _remarks),
        decisions=tuple(
            change
            for pair in pairs
            for change in _changes(_decisions(pair.before, pair.after), _decisions(pair.after, pair.before), pair)
        ),
    )
    return replace(diff, others=tuple(_find_others(a, b, pairs))) if diff.same else diff


def _find_others(a: Manifest, b: Manifest, pairs: Sequence[Pair]) -> Iterator[str]:
    """The keys of `bundle.json` that differ, those of its components among them."""
    yield from (key for key in Manifest.__annotations__ if key != "components" and getattr(a, key) != getattr(b, key))
    for pair in pairs:
        keys = (key for key in ComponentRecord.__annotations__ if getattr(pair.before, key) != getattr(pair.after, key))
        yield from map(pair.prefix, keys)


def render_diff(diff: BundleDiff) -> str:
    """The differences as plain text, one line each; what is equal is not mentioned."""
    lines = [f"A  {_show(diff.names.before)}", f"B  {_show(diff.names.after)}", ""]
    if diff.same:
        return "\n".join([*lines, SAME]) + "\n"
    lines += [*map(_show, diff.summary), ""]
    if diff.others:
        equal = "Files, versions, options, accuracy, proof, golden set and decisions are equal"
        return "\n".join([*lines, f"{equal}; bundle.json differs in: {', '.join(diff.others)}."]) + "\n"
    before, after = _number(diff.size.before), _number(diff.size.after)
    lines.append(f"Size  {format_bytes(before)} → {format_bytes(after)}  ({show_percent(after, before) or 'new'})")
    for name, title in _SECTIONS.items():
        lines += _section(title, [_change_line(change) for change in getattr(diff, name)])
    lines += _section("Files", [_file_line(change) for change in diff.files])
    return "\n".join(lines) + "\n"


def _compare(pairs: Sequence[Pair], read: Callable[[ComponentRecord], Mapping[str, Any]]) -> tuple[Change, ...]:
    """What differs between the components of each pair."""
    return tuple(change for pair in pairs for change in _changes(read(pair.before), read(pair.after), pair))


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], pair: Pair | None = None) -> tuple[Change, ...]:
    """What differs, in the order of `before`, then what is new."""
    subjects = dict.fromkeys([*before, *after])
    return tuple(
        Change(subject=pair.prefix(subject) if pair else subject, before=before.get(subject), after=after.get(subject))
        for subject in subjects
        if before.get(subject) != after.get(subject)
    )


def _identity(manifest: Manifest) -> dict[str, Any]:
    return {
        "target": manifest.target.id,
        "profile": manifest.target.profile_digest,
        "runtime": f"{manifest.runtime.package} {manifest.runtime.version}",
        "bundler": manifest.bundler,
        "ecosystem": manifest.ecosystem,
        "format": manifest.format,
        "package": manifest.package,
        "components": None if manifest.sole else ", ".join(component.name for component in manifest.components),
    }


def _list_lone(a: Manifest, b: Manifest, pairs: tuple[Pair, ...]) -> Iterator[Change]:
    """A component that only one bundle has is one line, with its model's name."""
    for name, before, after in list_unpaired(a, b, pairs):
        yield Change(subject=f"component {name}", before=before, after=after)


def _origin(component: ComponentRecord) -> dict[str, Any]:
    return {
        "model": component.model.name,
        "model digest": component.model.digest,
        "model size": component.model.size,
        "inputs": "synthetic" if component.synthetic_inputs else "samples",
        "variants": ", ".join(variant.name for variant in component.variants),
    }


def _file_changes(a: Manifest, b: Manifest) -> tuple[FileChange, ...]:
    before = {record.path: record for record in a.files}
    after = {record.path: record for record in b.files}
    return tuple(
        FileChange(
            path=path,
            before=before[path].size if path in before else None,
            after=after[path].size if path in after else None,
        )
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    )


def _operators(component: ComponentRecord) -> dict[str, Any]:
    """Operator counts of the models that ship: of the last stage that counted them, for each variant."""
    counted: dict[str | None, Mapping[str, Any]] = {}
    for stage in component.stages:
        counts = stage.facts.get("operators")
        if isinstance(counts, Mapping):
            counted[stage.variant] = counts
    own = {variant: counts for variant, counts in counted.items() if variant is not None} or counted
    return {
        f"{variant} {name}" if variant else str(name): _scalar(count)
        for variant, counts in own.items()
        for name, count in sorted(counts.items())
    }


def _providers(component: ComponentRecord) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variant in component.variants:
        found[f"{variant.name} chain"] = " → ".join(entry.name for entry in variant.providers)
        for entry in variant.providers:
            found |= {f"{variant.name} {entry.name} {key}": value for key, value in entry.options.items()}
    return found


def _session(component: ComponentRecord) -> dict[str, Any]:
    return {key: value for variant in component.variants for key, value in _session_entries(variant)}


def _session_entries(variant: VariantRecord) -> list[tuple[str, Any]]:
    entries = [*variant.session.items(), *variant.session_config.items()]
    named = [(f"{variant.name} {key}", _scalar(value)) for key, value in entries]
    return [*named, (f"{variant.name} disabled optimizers", ", ".join(variant.disabled_optimizers) or None)]


def _stages(component: ComponentRecord) -> dict[str, Any]:
    """The options and tools of each step; not its key, which differs whenever an earlier step does."""
    found: dict[str, Any] = {}
    for stage in component.stages:
        found[stage.step] = _tools(stage)
        found |= {f"{stage.step} {key}": _scalar(value) for key, value in stage.options.items()}
    return found


def _tools(stage: StageRecord) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(stage.versions.items()))
    return f"{stage.environment} ({versions})" if versions else stage.environment


def _accuracy(component: ComponentRecord) -> dict[str, Any]:
    found: dict[str, Any] = {"gate": component.gate.passed}
    for step, gate in component.gate.gates.items():
        for name, tolerance in (("", gate.default), *gate.outputs.items()):
            subject = " ".join(part for part in ("gate", step, name) if part)
            found |= {f"{subject} {key}": value for key, value in encode(tolerance).items()}
    for check in component.checks:
        for output in check.outputs:
            found |= _figures(f"{check.after} {output.name}", output)
    return found


def _pipeline(manifest: Manifest) -> dict[str, Any]:
    """How the user's own pipeline answered, for each variant."""
    return {
        f"pipeline {record.variant} {name}": value
        for record in manifest.pipeline
        for name, value in encode(record).items()
        if name != "variant"
    }


def _figures(subject: str, output: OutputCheck) -> dict[str, Any]:
    if output.unjudged:
        return {subject: f"not judged: {output.unjudged}"}
    if output.equal:
        return {f"{subject}": "bit-identical"}
    return {
        f"{subject} max absolute": output.max_absolute,
        f"{subject} SQNR dB": output.sqnr_db,
        f"{subject} top-1": output.top1_agreement,
        f"{subject} remark": output.remark,
    }


def _compare_proofs(a: Manifest, b: Manifest, pairs: Sequence[Pair]) -> Iterator[Change]:
    """The levels, why no higher ones, and on what they were reached: two bundles that were run elsewhere are not the
    same.
    """
    before, after = ({"bundle": one.proof.level, "reason": one.proof.reason or None} for one in (a, b))
    yield from _changes(before, after)
    for pair in pairs:
        yield from _changes(_proof(a, pair.before), _proof(b, pair.after), pair)


def _proof(manifest: Manifest, component: ComponentRecord) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for record in manifest.proof.variants:
        if record.component != component.name:
            continue
        subject = f"variant {record.variant}"
        found |= {subject: record.level, f"{subject} passed": record.passed}
        found |= {f"{subject} {name}": getattr(record, name) or None for name in ("reason", "place", "means")}
        found[f"{subject} on another host"] = record.stand_in or None
        found[f"{subject} not run"] = ", ".join(record.unrun) or None
        if (on := record.ran_on) is not None:
            found[f"variant {record.variant} ran"] = f"{on.device}, {on.system} on {on.processor}, {on.runtime}"
    return found


def _golden(component: ComponentRecord) -> dict[str, Any]:
    """What every runtime is held to."""
    golden = component.golden or GoldenRecord(samples=0)
    return {
        "samples": golden.samples or None,
        "inputs": golden.inputs or None,
        "samples that judge": golden.judging or None,
        **{f"{output.name} values": output.elements for output in golden.outputs},
        **{f"{name} not judged": why for name, why in golden.unjudged.items()},
        "weaknesses": "; ".join(weakness.text for weakness in golden.weaknesses) or None,
    }


def _remarks(component: ComponentRecord) -> dict[str, Any]:
    found = {
        "not for shipping": component.reservations,
        "shortfalls": component.shortfalls,
        "findings of the gate": component.gate.findings,
        "random outputs": component.unstable_outputs,
    }
    return {subject: "; ".join(texts) or None for subject, texts in found.items()}


def _decisions(component: ComponentRecord, other: ComponentRecord) -> dict[str, Any]:
    """Choices, and the reasons of those that `other` has too: another choice has another reason."""
    choices = {decision.subject: decision.choice for decision in other.decisions}
    found = {decision.subject: decision.choice for decision in component.decisions}
    kept = (decision for decision in component.decisions if choices.get(decision.subject) == decision.choice)
    return found | {f"{decision.subject}, reason": decision.reason for decision in kept}


def _scalar(value: Any) -> str | int | float | bool | None:
    return value if value is None or isinstance(value, (str, int, float, bool)) else canonical_json(value)


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def _change_line(change: Change) -> str:
    return f"{_show(change.subject)}: {_show(change.before)} → {_show(change.after)}"


def _file_line(change: FileChange) -> str:
    path = _show(change.path)
    if change.before is None or change.after is None:
        sign, size = ("+", change.after) if change.before is None else ("-", change.before)
        return f"{sign} {path}  {format_bytes(size or 0)}"
    sizes = "other content" if change.before == change.after else show_percent(change.after, change.before)
    return f"~ {path}  {format_bytes(change.before)} → {format_bytes(change.after)}  ({sizes})"


def _show(value: str | float | None) -> str:
    """One value on one line of a terminal; names from a model may contain escape sequences."""
    if value is None:
        return _ABSENT
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return visible(text)


def _number(value: str | float | None) -> int:
    return int(value or 0)
