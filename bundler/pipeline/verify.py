"""`verify`: checks a finished bundle on this machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from bundler.emitters.registry import find_emitter
from bundler.model.errors import UsageError, VerificationError
from bundler.model.events import Listener
from bundler.model.manifest import Manifest
from bundler.model.paths import check_path_text
from bundler.model.proof import VariantProof
from bundler.pipeline.results import DigestResult, VerifyResult
from bundler.pipeline.workspace import Workspace
from bundler.planning.settle import LEFT_OUT
from bundler.reporting.manifest import read_manifest
from bundler.verification.integrity import IntegrityResult, check_integrity, remove_byte_code, require_sound
from bundler.verification.proof import combine_proofs, unjudged_of
from bundler.verification.words import describe_samples

_DIGEST: Final = re.compile(r"[0-9A-Fa-f]{64}")


def check_digests(bundle: Path, expected: str | None = None) -> DigestResult:
    """Hold the bundle's `bundle.json` to the SHA-256 `expected` (None: to none), and its files to `bundle.json`.

    Nothing of the bundle is run. Raises `VerificationError` where one differs, and `UsageError` where `expected` is no
    digest: an empty text is none, for a variable that nobody set must not make the check go away.
    """
    integrity = _check_files(bundle, expected)
    return DigestResult(bundle=bundle, files=integrity.checked, digest=integrity.digest, removed=integrity.removed)


def check_bundle(bundle: Path, expected: str | None = None) -> tuple[IntegrityResult, Manifest]:
    """As `check_digests`, with the manifest that was checked: it may have been exchanged since."""
    integrity = _check_files(bundle, expected)
    return integrity, read_manifest(bundle, integrity.content)


def _check_files(bundle: Path, expected: str | None) -> IntegrityResult:
    if expected is not None and not _DIGEST.fullmatch(expected):
        raise UsageError(
            "--digest takes a SHA-256: 64 hexadecimal digits",
            hint="a build prints the digest of its bundle.json; `sha256sum bundle.json` computes it",
        )
    check_path_text(bundle, "the bundle")
    integrity = remove_byte_code(bundle, check_integrity(bundle))
    if expected is not None and integrity.digest != expected.lower():
        raise VerificationError(
            f"{bundle} does not match --digest",
            details=(f"found {integrity.digest}", f"expected {expected.lower()}"),
            hint="do not use it: it was rebuilt or modified",
        )
    return require_sound(bundle, integrity)


def verify(
    bundle: Path, workspace: Workspace, listener: Listener, on: str | None = None, digest: str | None = None
) -> VerifyResult:
    """Check the digests, then run the golden set in the bundle's own runtime; `digest` is what its `bundle.json` must
    have (None: any).

    Raises `VerificationError` when a file differs or an output does; a variant that cannot run here is reported in the
    result, and the proof then claims no more than `resolved`.
    """
    integrity, manifest = check_bundle(bundle, digest)
    request = replace(workspace.request_proof(bundle, listener, on), digests=_list_digests(manifest))
    proofs = find_emitter(manifest.ecosystem).prove(request)
    _check_named(bundle, manifest, proofs)
    failed = [proof for proof in proofs if proof.passed is False]
    if failed:
        raise VerificationError(
            f"{bundle} does not reproduce its golden set",
            details=tuple(f"{manifest.label(proof.component, proof.variant)}: {proof.reason}" for proof in failed),
            hint="do not ship it: build it again, and compare both with `bundler diff`",
        )
    reached = combine_proofs(proofs, unjudged_of(manifest))
    return VerifyResult(
        bundle=bundle,
        files=integrity.checked,
        digest=integrity.digest,
        proof=reached.level,
        claimed=manifest.proof.level,
        variants=tuple(
            replace(proof, level=record.level) for proof, record in zip(proofs, reached.variants, strict=True)
        ),
        unstable_outputs=tuple(
            name if manifest.sole else f"{component.name}.{name}"
            for component in manifest.components
            for name in component.unstable_outputs
        ),
        reservations=manifest.reservations,
        reached=reached,
        samples=tuple(describe_samples(manifest)),
        built=manifest.proof,
        left_out=find_left_out(manifest),
        shortfalls=manifest.shortfalls,
        removed=integrity.removed,
    )


def _list_digests(manifest: Manifest) -> dict[str, tuple[str, str]]:
    """The digests of each component's original model and golden set; older bundles tell none of golden sets."""
    golden = {
        component.name: next((item.digest for item in component.artifacts if item.kind == "golden"), "")
        for component in manifest.components
    }
    return {each.name: (each.model.digest, golden[each.name]) for each in manifest.components if golden[each.name]}


def _check_named(bundle: Path, manifest: Manifest, proofs: Sequence[VariantProof]) -> None:
    """Raise `VerificationError` where `bundle.json` tells of other variants than the bundle has."""
    own = {(proof.component, proof.variant) for proof in proofs}
    named = {(component.name, variant.name) for component in manifest.components for variant in component.variants}
    if own != named:
        lines = [f"only runtime.json has {'/'.join(pair)}" for pair in sorted(own - named)]
        lines += [f"only bundle.json has {'/'.join(pair)}" for pair in sorted(named - own)]
        raise VerificationError(
            f"{bundle}: bundle.json and runtime.json do not belong together",
            details=tuple(lines[:_MAX_NAMED]),
            hint="build it again: bundle.json describes other models",
        )


_MAX_NAMED: Final = 5
"""Variants that a message names."""


def find_left_out(manifest: Manifest) -> tuple[str, ...]:
    """The variants of the target that the bundle lacks, each with the reason."""
    return tuple(
        f"{'' if manifest.sole else f'{component.name}: '}{row.subject}: {row.reason}"
        for component in manifest.components
        for row in component.decisions
        if row.choice == LEFT_OUT
    )
