"""`verify`: does a finished bundle still hold, on this machine and now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bundler.api.requests import VerifyResult
from bundler.api.workshop import Workshop
from bundler.emitters.contract import ProofRequest
from bundler.emitters.registry import find_emitter
from bundler.model.errors import VerificationError
from bundler.model.events import Listener
from bundler.reporting.manifest import read_manifest
from bundler.verification.integrity import require_integrity
from bundler.verification.proof import combine_proofs, unjudged_of


def verify(bundle: Path, workshop: Workshop, listener: Listener, browser: Path | None = None) -> VerifyResult:
    """Check the digests, then run the golden set in the bundle's own runtime.

    Raises `VerificationError` when a file differs or an output does; a variant that cannot run here is told in the
    result, and the proof then claims no more than `resolved`.
    """
    manifest = read_manifest(bundle)
    integrity = require_integrity(bundle)
    request = ProofRequest(bundle=bundle, cache_root=workshop.cache.root, listener=listener, browser=browser)
    proofs = find_emitter(manifest.ecosystem).prove(request)
    failed = [proof for proof in proofs if proof.passed is False]
    if failed:
        raise VerificationError(
            f"{bundle} does not reproduce its golden set",
            details=tuple(f"{proof.variant}: {proof.reason}" for proof in failed),
            hint="do not ship it: build it again, and compare both with `bundler diff`",
        )
    reached = combine_proofs(proofs, unjudged_of(manifest))
    return VerifyResult(
        bundle=bundle,
        files=integrity.checked,
        proof=reached.level,
        claimed=manifest.proof.level,
        variants=tuple(
            replace(proof, level=record.level) for proof, record in zip(proofs, reached.variants, strict=True)
        ),
        unstable_outputs=manifest.unstable_outputs,
        reservations=manifest.reservations,
        reached=reached,
        built=manifest.proof,
    )
