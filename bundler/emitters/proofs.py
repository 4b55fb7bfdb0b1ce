"""What the verifications of all ecosystems share: what a device is opened for, and variants that were not run."""

from __future__ import annotations

from bundler.devices.contract import Need, Opening
from bundler.emitters.contract import ProofRequest
from bundler.model.errors import VerificationError
from bundler.model.events import Reporter
from bundler.model.proof import VariantProof
from bundler.model.runtime import RuntimeConfig


def make_opening(request: ProofRequest, config: RuntimeConfig, need: Need) -> Opening:
    """What the device is opened for; messages bear the name that the build has in all others.

    Raises `VerificationError` where the bundle's components are not those that are to be verified.
    """
    found = {each.name: (each.model_digest, each.golden_digest) for each in config.components}
    other = [name for name, digests in request.digests.items() if found.get(name, digests) != digests]
    if other:
        raise VerificationError(
            f"{request.bundle}: bundle.json and runtime.json do not belong together",
            details=(f"component {other[0]} has another model or golden set in runtime.json than in bundle.json",),
            hint="build it again: bundle.json describes other models",
        )
    return Opening(
        need=need,
        cache_root=request.cache_root,
        say=Reporter(request.listener, f"{config.name} → {config.target}").say,
        sandbox=request.sandbox,
    )


def make_unproven(component: str, variant: str, reason: str, *, passed: bool | None = None) -> VariantProof:
    """A variant of which nothing was compared; `passed` is False where that is a failure."""
    return VariantProof(
        component=component,
        variant=variant,
        level="resolved",
        passed=passed,
        comparison=None,
        reason=reason,
        figures={},
    )


def leave_unproven(config: RuntimeConfig, reason: str) -> tuple[VariantProof, ...]:
    """All variants of a bundle that is not run."""
    return tuple(make_unproven(component.name, variant.name, reason) for component, variant in config.pairs)
