"""From the proofs of its variants to what a bundle may claim.

A bundle claims the least level that any of its variants reached. A user who reads one word of the manifest cannot
know which variant a device will take, so the word must hold for each of them; the manifest tells each variant's own
level beside it. A variant that did not run, or ran and failed, counts as `resolved`, whatever its emitter claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bundler.model.manifest import ProofRecord, VariantProofRecord
from bundler.model.proof import PROOF_MEANINGS, Proof, VariantProof

LEVELS: Final[tuple[Proof, ...]] = ("resolved", "stand-in", "emulated", "executed")
"""Levels of proof from the least to the greatest."""


def combine_proofs(proofs: Sequence[VariantProof]) -> ProofRecord:
    """What the bundle as a whole may claim, and each variant's own level."""
    records = tuple(_record(proof) for proof in proofs)
    if not records:
        return ProofRecord(level="resolved", reason=PROOF_MEANINGS["resolved"])
    least = min(records, key=lambda record: LEVELS.index(record.level))
    return ProofRecord(level=least.level, reason=_explain(least, records), variants=records)


def reaches(level: Proof, wanted: Proof) -> bool:
    """Whether `level` is at least `wanted`."""
    return LEVELS.index(level) >= LEVELS.index(wanted)


def describe_proof(record: ProofRecord) -> tuple[str, ...]:
    """The proof as lines of text: the bundle's level first, then one line a variant."""
    lines = [f"{record.level}: {record.reason}"]
    lines += [f"  {variant.variant}: {variant.level} - {variant.reason}" for variant in record.variants]
    return tuple(lines)


def _record(proof: VariantProof) -> VariantProofRecord:
    level: Proof = proof.level if proof.passed else "resolved"
    return VariantProofRecord(
        variant=proof.variant, level=level, passed=proof.passed, reason=proof.reason or _default_reason(proof)
    )


def _default_reason(proof: VariantProof) -> str:
    if proof.passed is None:
        return "it was not run"
    return PROOF_MEANINGS[proof.level] if proof.passed else "it ran and did not reproduce the golden set"


def _explain(least: VariantProofRecord, records: tuple[VariantProofRecord, ...]) -> str:
    if least.passed:
        return PROOF_MEANINGS[least.level] + (f", by each of its {len(records)} variants" if len(records) > 1 else "")
    what = "failed its golden set" if least.passed is False else "was not run"
    return f"variant {least.variant} {what}: {least.reason}"
