"""Describes the result of a verification for people; the levels' identifiers (`executed`) are for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from bundler.model.manifest import GoldenRecord, Manifest, PipelineRecord, ProofRecord, VariantProofRecord
from bundler.support.text import count_things, visible
from bundler.verification.proof import label_record

THIS_HOST: Final = "on this host"
BUILDING_HOST: Final = "on the host that built it"

NOTHING_RUN: Final = "Not run: the bundle was built without verification (--no-prove)."


def describe_verification(record: ProofRecord, host: str = THIS_HOST) -> tuple[str, ...]:
    """A line for each kind of result, such as `Verified: htp in Qualcomm QNN's emulator, cpu on this host.`.

    `host` is the phrase for the machine itself.
    """
    if not record.variants:
        return (NOTHING_RUN,)
    groups: dict[str, list[VariantProofRecord]] = {"Verified": [], _UNCHECKED: [], "Failed": [], "Not run": []}
    for variant in record.variants:
        groups[_head(variant)].append(variant)
    return tuple(f"{head}: {_describe(found, host, record.variants)}." for head, found in groups.items() if found)


def name_verification(record: ProofRecord) -> str:
    """The result in one or two words."""
    reached = [_head(variant) for variant in record.variants]
    if not reached or set(reached) == {"Not run"}:
        return "Not run"
    return reached[0] if len(set(reached)) == 1 else "Verified in part"


def describe_samples(manifest: Manifest) -> Iterator[str]:
    """`Samples: 8 synthetic, no real data; sizes batch 1, 2`: what the figures of each component are of."""
    for component in manifest.components:
        if component.golden is not None:
            whose = "" if manifest.sole else f" of {component.name}"
            yield f"Samples{whose}: {_describe_samples(component.golden)}"


def _describe_samples(golden: GoldenRecord) -> str:
    count = f"{count_things(golden.samples, 'step')} of a stream," if golden.stream else str(golden.samples)
    if not golden.inputs:  # an older bundle does not say
        return count.rstrip(",")
    if golden.inputs == "samples":
        return f"{count.rstrip(',')}, given with --samples"
    if golden.inputs == "like-samples":
        return f"{count} synthetic, similar to the {golden.judging} given with --samples"
    sizes = [f"{visible(name)[:MAX_NAME]} {', '.join(map(str, tried))}" for name, tried in golden.sizes.items()]
    more = f" and {len(sizes) - MAX_SIZES} more" if len(sizes) > MAX_SIZES else ""
    shown = f"; sizes {'; '.join(sizes[:MAX_SIZES])}{more}" if sizes else ""
    return f"{count} synthetic, no real data: use --samples{shown}"


MAX_SIZES: Final = 6
"""Open dimensions whose sizes the line shows."""
MAX_NAME: Final = 40
"""Characters of a dimension's name."""


def describe_variants(
    records: Iterable[VariantProofRecord], host: str, among: Sequence[VariantProofRecord]
) -> tuple[str, ...]:
    """A sentence for each variant, with the reason; `among` are all variants of the bundle."""
    return tuple(
        f"Variant {label_record(record, among)}: {_lower(_head(record))}{_describe_place(record, host)}"
        f"{_describe_reason(record)}."
        for record in records
    )


def describe_pipeline(records: Sequence[PipelineRecord]) -> Iterator[str]:
    """`pipeline.py:run matches the original models on 12 of 12 samples; max difference 2e-06`."""
    for record in records:
        which = f" with variant {record.variant}" if len(records) > 1 else ""
        difference = f"; max difference {record.max_absolute:.2g}" if record.max_absolute else ""
        samples = f"{record.equal} of {record.samples} samples"
        doubts = "".join(f"; no sample runs {name}" for name in record.uncalled)
        doubts += "".join(f"; other outputs of {name} changed no answer" for name in record.unnoticed)
        if record.metric is not None:
            own = f"{record.metric.value:.6g} (original models {record.metric.reference:.6g})"
            yield f"metric {record.metric.function} of {record.function}{which} {own}"
        yield f"{record.function}{which} matches the original models on {samples}{difference}{doubts}"


def is_verified(record: VariantProofRecord) -> bool:
    """Whether it ran, and every output was compared and met its gate."""
    return record.passed is True and record.level != "ran-unchecked"


_UNCHECKED: Final = "Ran; not every output was checked"


def _head(record: VariantProofRecord) -> str:
    if record.passed is False:
        return "Failed"
    if record.level == "ran-unchecked":
        return _UNCHECKED
    return "Verified" if record.passed else "Not run"


def _describe(records: Sequence[VariantProofRecord], host: str, among: Sequence[VariantProofRecord]) -> str:
    """The variants with the place where each ran; variants that are not verified are grouped by their reason, and
    those of several components by all that is said of them: `detect/cpu, recognise/cpu on this host`.
    """
    owners: dict[tuple[str, str], list[str]] = {}
    several = len({record.component for record in among}) > 1
    for record in records:
        name, run = label_record(record, among), _describe_run(record, host)
        reason = "" if is_verified(record) else f" ({record.reason})"
        if several:
            owners.setdefault((run, reason), []).append(name)
        else:
            owners.setdefault(("", reason), []).append(f"{name}{run}")
    return "; ".join(f"{', '.join(names)}{run}{reason}" for (run, reason), names in owners.items())


def _describe_place(record: VariantProofRecord, host: str) -> str:
    if not record.passed:
        return ""
    # Bundles of earlier versions have the level alone.
    instead = " in place of the device" if record.stand_in or record.level == "stand-in" else ""
    return f" {record.place or host}{instead}"


def _describe_run(record: VariantProofRecord, host: str) -> str:
    return f"{_describe_place(record, host)}{_describe_means(record, host)}"


def _describe_means(record: VariantProofRecord, host: str) -> str:
    """` (Linux on x86_64; Python 3.12; not run with Python 3.11)`: the system, unless it is the reader's own, and what
    it was run with, if the bundle supports more.
    """
    ran_on = record.ran_on if host == BUILDING_HOST else None
    details = [f"{ran_on.system} on {ran_on.processor}"] if ran_on else []
    if record.unrun:
        details += [*filter(None, (record.means,)), f"not run with {', '.join(record.unrun)}"]
    return f" ({'; '.join(details)})" if details else ""


def _describe_reason(record: VariantProofRecord) -> str:
    return f" ({record.reason})" if record.reason else ""


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def same_levels(first: Sequence[VariantProofRecord], second: Sequence[VariantProofRecord]) -> bool:
    """Whether two verifications of a bundle reached the same levels."""
    levels = [{(record.component, record.variant): record.level for record in records} for records in (first, second)]
    return levels[0] == levels[1]
