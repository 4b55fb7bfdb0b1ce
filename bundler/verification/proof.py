"""Derives a bundle's level of proof from the proofs of its variants.

A bundle has the lowest level of its variants, because its users do not know which variant a device will run; the
manifest also lists each variant's own level. A variant that did not run, or failed, counts as `resolved`, whatever its
emitter claims. One that ran although some output could not have failed the comparison counts as `ran-unchecked`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from bundler.model.manifest import ComponentRecord, Manifest, ProofRecord, VariantProofRecord
from bundler.model.proof import PROOF_MEANINGS, Proof, VariantProof

LEVELS: Final[tuple[Proof, ...]] = ("resolved", "ran-unchecked", "stand-in", "emulated", "executed")
"""Levels of proof from the lowest to the highest."""


NOTHING: Final = {"": "the golden set has no values to compare with"}
"""The reason for a comparison without samples or outputs."""

MAX_LISTED_OUTPUTS = 3
"""Outputs that a reason names."""


Unjudged = Mapping[str, Mapping[str, str]]
"""By component and output, why no comparison with the golden set could fail."""


def combine_proofs(proofs: Sequence[VariantProof], unjudged: Unjudged | None = None) -> ProofRecord:
    """The level of the whole bundle and of each variant of each component."""
    records = tuple(_record(proof, (unjudged or {}).get(proof.component, {})) for proof in proofs)
    if not records:
        return ProofRecord(level="resolved", reason=PROOF_MEANINGS["resolved"])
    least = min(records, key=lambda record: LEVELS.index(record.level))
    return ProofRecord(level=least.level, reason=_explain(least, records), variants=records)


def unjudged_of(manifest: Manifest) -> dict[str, Mapping[str, str]]:
    """The outputs of a bundle that no comparison could fail, by component, each with the reason."""
    return {component.name: _unjudged_of(component) for component in manifest.components}


def _unjudged_of(component: ComponentRecord) -> dict[str, str]:
    if component.golden is not None:
        return component.golden.unjudged
    return dict.fromkeys(component.unstable_outputs, "it differs from run to run")


def reaches(level: Proof, wanted: Proof) -> bool:
    """Whether `level` is at least `wanted`."""
    return LEVELS.index(level) >= LEVELS.index(wanted)


def _record(proof: VariantProof, unjudged: Mapping[str, str]) -> VariantProofRecord:
    level: Proof = proof.level if proof.passed else "resolved"
    reason = proof.reason or _default_reason(proof)
    unjudged = {**unjudged, **{name: why for name, why in _find_unjudged(proof).items() if name not in unjudged}}
    if unjudged and reaches(level, "ran-unchecked"):
        level, reason = "ran-unchecked", f"{reason}; not checked: {name_unjudged(unjudged)}"
    record = VariantProofRecord(
        component=proof.component, variant=proof.variant, level=level, passed=proof.passed, reason=reason
    )
    if not proof.passed:
        return record
    stand_in = proof.level == "stand-in"
    return replace(
        record, place=proof.place, stand_in=stand_in, means=proof.means, unrun=proof.unrun, ran_on=proof.ran_on
    )


def _find_unjudged(proof: VariantProof) -> dict[str, str]:
    """The outputs that the comparison itself could not judge; a manifest may lack them."""
    found = proof.comparison
    if found is None:
        return {}
    if not (found.samples and found.outputs):
        return dict(NOTHING)
    references = (output.reference for output in found.outputs)
    return {known.name: known.unjudged for known in references if known is not None and known.unjudged}


def name_unjudged(unjudged: Mapping[str, str]) -> str:
    """`output 'y' (it is empty in every sample)`, and so on for the first few."""
    named = [f"output {name!r} ({why})" if name else why for name, why in list(unjudged.items())[:MAX_LISTED_OUTPUTS]]
    more = len(unjudged) - len(named)
    return ", ".join((*named, *((f"and {more} more",) if more else ())))


def _default_reason(proof: VariantProof) -> str:
    if proof.passed is None:
        return "it was not run"
    return PROOF_MEANINGS[proof.level] if proof.passed else "it ran and did not reproduce the golden set"


def _explain(least: VariantProofRecord, records: tuple[VariantProofRecord, ...]) -> str:
    if least.passed:
        alike = [label_record(record, records) for record in records if record.level == least.level]
        whole = f", by each of its {len(records)} variants" if len(records) > 1 else ""
        return PROOF_MEANINGS[least.level] + (whole if len(alike) == len(records) else f": {', '.join(alike)}")
    what = "failed its golden set" if least.passed is False else "was not run"
    return f"variant {label_record(least, records)} {what}: {least.reason}"


def label_record(record: VariantProofRecord, records: Iterable[VariantProofRecord]) -> str:
    """The variant as people read it: with its component where `records` are of several."""
    return f"{record.component}/{record.variant}" if len({known.component for known in records}) > 1 else record.variant
