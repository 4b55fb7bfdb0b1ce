"""Describes the result of a verification for people; the levels' identifiers (`executed`) are for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from bundler.model.manifest import GoldenRecord, Manifest, PipelineRecord, ProofRecord, VariantProofRecord
from bundler.support.text import count_things, visible
from bundler.verification.proof import label_record

THIS_HOST: Final = "on this host"
BUILDING_HOST: Final = "on the host that built it"

NOTHING_RUN: Final = "Not run: the bundle was built without verification (--no-prove)"


def describe_verification(record: ProofRecord, host: str = THIS_HOST) -> tuple[str, ...]:
    """A line for each result, with its heading: `Verified: cpu: executed on this host`, `Not run: gpu: no driver`.
    Variants of which the same is said share a line. `host` is the phrase for the machine itself.
    """
    if not record.variants:
        return (NOTHING_RUN,)
    labels: dict[tuple[str, str], list[str]] = {}
    for variant in record.variants:
        for result in _list_results(variant, host):
            labels.setdefault(result, []).append(label_record(variant, record.variants))
    ordered = sorted(labels.items(), key=lambda item: _HEADS.index(item[0][0]))
    return tuple(f"{head}: {', '.join(names)}: {text}" for (head, text), names in ordered)


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
            whose = "" if manifest.sole else f"{component.name}: "
            yield f"Samples: {whose}{_describe_samples(component.golden)}"


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


_UNCHECKED: Final = "Unchecked"
_HEADS: Final = ("Verified", "Stand-in", _UNCHECKED, "Failed", "Not run")
"""Headings, in the order of the lines."""


def _head(record: VariantProofRecord) -> str:
    if record.passed is False:
        return "Failed"
    if record.level == "ran-unchecked":
        return _UNCHECKED
    if record.passed:
        return "Stand-in" if _stands_in(record) else "Verified"
    return "Not run"


def _stands_in(record: VariantProofRecord) -> bool:
    return record.stand_in or record.level == "stand-in"  # Bundles of earlier versions have the level alone.


def _list_results(record: VariantProofRecord, host: str) -> Iterator[tuple[str, str]]:
    """Heading and text: what ran where, by the name of its level; and what it was not run with."""
    head = _head(record)
    if not record.passed:
        yield head, record.reason
        return
    level = "ran" if head == "Stand-in" else record.level
    reason = "" if is_verified(record) else f" ({record.reason})"
    yield head, f"{level}{_describe_place(record, host)}{_describe_means(record, host)}{reason}"
    if record.unrun:
        yield "Not run", f"with {', '.join(record.unrun)}"


def _describe_place(record: VariantProofRecord, host: str) -> str:
    if not record.passed:
        return ""
    instead = " in place of the device" if _stands_in(record) else ""
    place = record.place.replace("under emulation of", "as", 1) if record.level == "emulated" else record.place
    return f" {place or host}{instead}"


def _describe_means(record: VariantProofRecord, host: str) -> str:
    """`, Python 3.12 (Linux on x86_64)`: what it was run with, if the bundle supports more, and the system, unless it
    is the reader's own.
    """
    ran_on = record.ran_on if host == BUILDING_HOST else None
    means = f", {record.means}" if record.unrun and record.means else ""
    return f"{means} ({ran_on.system} on {ran_on.processor})" if ran_on else means


def _describe_reason(record: VariantProofRecord) -> str:
    return f" ({record.reason})" if record.reason else ""


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def same_levels(first: Sequence[VariantProofRecord], second: Sequence[VariantProofRecord]) -> bool:
    """Whether two verifications of a bundle reached the same levels."""
    levels = [{(record.component, record.variant): record.level for record in records} for records in (first, second)]
    return levels[0] == levels[1]
