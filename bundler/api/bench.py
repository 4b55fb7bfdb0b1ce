"""`bench`: opening and latency of finished bundles on this machine, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bundler.api.verify import check_digests
from bundler.api.workshop import Workshop
from bundler.emitters.contract import ProofRequest, Untimed
from bundler.emitters.registry import find_emitter
from bundler.model.errors import UsageError, VerificationError
from bundler.model.events import Listener
from bundler.model.manifest import Manifest
from bundler.model.measurement import Measurement
from bundler.reporting.data import Spread, summarize_series
from bundler.reporting.manifest import read_manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantTimes:
    """One variant of one bundle, in milliseconds. `opening` is from opening to the first answer, `latency` one steady
    call; ratios are to the median of a plain session on the baseline, None without one. `measurement` holds each time.
    """

    bundle: Path
    target: str
    variant: str
    opening: Spread | None
    latency: Spread | None
    baseline_opening: Spread | None
    baseline_latency: Spread | None
    opening_ratio: float | None
    latency_ratio: float | None
    measurement: Measurement


def bench(
    bundles: Iterable[Path],
    baseline: Path | None,
    workshop: Workshop,
    listener: Listener,
    browser: Path | None = None,
) -> tuple[VariantTimes, ...]:
    """Time each variant that runs here in its bundle's own runtime; `baseline` is an ONNX file to time in turn with it.

    A bundle runs its own code, so its files are held to its manifest first. Raises `UsageError` when there is no such
    file, `VerificationError` when a folder is no bundle, or an altered one, or none runs here.
    """
    if baseline is not None and not baseline.is_file():
        raise UsageError(f"there is no model {baseline}", hint="give the ONNX file that the bundles were built from")
    root = workshop.cache.root
    requests = [
        ProofRequest(bundle=bundle, cache_root=root, listener=listener, model=baseline, browser=browser)
        for bundle in bundles
    ]
    found = [times for request in requests for times in _time_bundle(request)]
    if not found:
        raise _nothing_timed([request.bundle for request in requests])
    return tuple(found)


def _nothing_timed(bundles: Iterable[Path]) -> VerificationError:
    emitters = {bundle: find_emitter(read_manifest(bundle).ecosystem) for bundle in bundles}
    told = [f"{bundle}: {emitter.untimed}" for bundle, emitter in emitters.items() if isinstance(emitter, Untimed)]
    hint = "build it in the target's own format, without --format" if told else "see `bundler verify`"
    return VerificationError("no bundle could be timed on this machine", details=tuple(told), hint=hint)


def _time_bundle(request: ProofRequest) -> list[VariantTimes]:
    check_digests(request.bundle)
    manifest = read_manifest(request.bundle)
    measurements = find_emitter(manifest.ecosystem).measure(request)
    return [_summarise(request.bundle, manifest, measurement) for measurement in measurements]


def _summarise(bundle: Path, manifest: Manifest, measurement: Measurement) -> VariantTimes:
    opening, latency = summarize_series(measurement.opening_ms), summarize_series(measurement.latency_ms)
    plain_opening = summarize_series(measurement.baseline_opening_ms)
    plain_latency = summarize_series(measurement.baseline_latency_ms)
    return VariantTimes(
        bundle=bundle,
        target=manifest.target.id,
        variant=measurement.variant,
        opening=opening,
        latency=latency,
        baseline_opening=plain_opening,
        baseline_latency=plain_latency,
        opening_ratio=_divide(opening, plain_opening),
        latency_ratio=_divide(latency, plain_latency),
        measurement=measurement,
    )


def _divide(measured: Spread | None, plain: Spread | None) -> float | None:
    return measured.median / plain.median if measured and plain and plain.median else None
