"""`bench`: load time and latency of finished bundles on this machine, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bundler.emitters.contract import PipelineTimed, ProofRequest, TimedAsUsual, Untimed
from bundler.emitters.registry import find_emitter
from bundler.model.errors import UsageError, VerificationError
from bundler.model.events import Listener, Reporter
from bundler.model.manifest import Manifest
from bundler.model.measurement import USUAL, WHOLE, Measurement, Timing
from bundler.model.runtime import SOLE
from bundler.pipeline.verify import check_bundle
from bundler.pipeline.workspace import Workspace
from bundler.reporting.claims import doubt_measurement
from bundler.reporting.data import Spread, summarize_series
from bundler.reporting.manifest import read_manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantTimes:
    """One variant of one bundle, in milliseconds. `opening` is the load time with the first inference, `latency` one
    steady call; ratios are to the median of a plain session on the baseline, None without one. `throughput` is calls a
    second by how many callers at once. `measurement` holds each time; `doubts` say why the figures may be misleading.
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
    throughput: Mapping[int, Spread] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()


def bench(
    bundles: Iterable[Path],
    baseline: Mapping[str, Path],
    workspace: Workspace,
    listener: Listener,
    on: str | None = None,
    *,
    timing: Timing = USUAL,
    samples: Path | None = None,
) -> tuple[VariantTimes, ...]:
    """Time each variant that runs here in its bundle's own runtime; `baseline` has the ONNX file to time in turn with
    it, by component (`SOLE` is that of any bundle of one model). With `samples`, a folder, the bundle's own pipeline is
    timed over them, too.

    A bundle runs its own code, so its files are held to its manifest first. Raises `UsageError` when there is no such
    file or component, or a bundle cannot be timed as `timing` says, `StageError` for a pipeline that fails,
    `VerificationError` when a folder is no bundle, or an altered one, or none runs here.
    """
    bundles = tuple(bundles)
    for model in baseline.values():
        if not model.is_file():
            raise UsageError(f"there is no model {model}", hint="give the ONNX file that the bundles were built from")
    _check_timing(bundles, timing)
    if samples is not None:
        _check_pipelines(bundles, samples)
    requests = [
        workspace.request_proof(bundle, listener, on, _assign_baseline(bundle, baseline), timing) for bundle in bundles
    ]
    found = [times for request in requests for times in _time_bundle(request, samples)]
    if not found:
        raise _nothing_timed(bundles, timing)
    return tuple(found)


def _assign_baseline(bundle: Path, baseline: Mapping[str, Path]) -> Mapping[str, Path]:
    """The models to time beside this bundle's components, by their names."""
    if not baseline:
        return baseline
    manifest = read_manifest(bundle)
    if manifest.sole and set(baseline) == {SOLE}:
        return {manifest.sole.name: baseline[SOLE]}
    known = [component.name for component in manifest.components]
    if set(baseline) <= set(known):
        return baseline
    raise UsageError(
        f"--baseline must name a component of {bundle}",
        details=(f"its components are {', '.join(known)}",),
        hint=" ".join(f"--baseline {name}=MODEL" for name in known),
    )


def _check_timing(bundles: Sequence[Path], timing: Timing) -> None:
    """Raise `UsageError` before anything runs, for a bundle that has only the default timing."""
    for bundle in () if timing.is_usual else bundles:
        emitter = find_emitter(read_manifest(bundle).ecosystem)
        if isinstance(emitter, TimedAsUsual):
            raise UsageError(
                f"{bundle} cannot be timed with --batch, --threads, --spinning or --callers",
                details=(emitter.timed_as_usual,),
                hint="remove these options; they are for Python bundles",
            )


def _nothing_timed(bundles: Iterable[Path], timing: Timing = USUAL) -> VerificationError:
    emitters = {bundle: find_emitter(read_manifest(bundle).ecosystem) for bundle in bundles}
    reasons = [f"{bundle}: {emitter.untimed}" for bundle, emitter in emitters.items() if isinstance(emitter, Untimed)]
    hint = "`bundler verify` shows whether they run here"
    if reasons:
        hint = "time a Python or web bundle (--format dir) of the model, or measure in your application"
    elif not timing.is_usual:
        hint = f"remove --batch, --threads, --spinning and --callers; {hint}"
    return VerificationError("no bundle could be timed on this machine", details=tuple(reasons), hint=hint)


def _check_pipelines(bundles: Sequence[Path], samples: Path) -> None:
    """Raise `UsageError` before anything runs, for a bundle without a pipeline, or no samples."""
    if not samples.is_dir() or not any(samples.iterdir()):
        raise UsageError(f"there are no samples in {samples}", hint="--pipeline FOLDER: each file in it is a sample")
    for bundle in bundles:
        manifest = read_manifest(bundle)
        if not isinstance(find_emitter(manifest.ecosystem), PipelineTimed):
            raise UsageError(f"{bundle} is a {manifest.ecosystem} bundle", hint="pipelines are timed in Python bundles")
        if not manifest.pipeline:
            raise UsageError(
                f"{bundle} was built without a pipeline", hint="name it in the project file: pipeline = { python = … }"
            )


def _time_pipeline(request: ProofRequest, manifest: Manifest, samples: Path) -> Measurement:
    """Raises `StageError` for a pipeline that fails: it was asked for, and there is nothing in its place."""
    emitter, reporter = find_emitter(manifest.ecosystem), Reporter(request.listener, request.bundle.name)
    assert isinstance(emitter, PipelineTimed)  # noqa: S101 - checked before anything ran
    found = emitter.measure_pipeline(request, manifest.pipeline[0].function.rpartition(":")[2], samples)
    reporter.say(f"the pipeline ran with {found.name}")
    return found


def _time_bundle(request: ProofRequest, samples: Path | None) -> list[VariantTimes]:
    _, manifest = check_bundle(request.bundle)
    emitter = find_emitter(manifest.ecosystem)
    if isinstance(emitter, Untimed):
        Reporter(request.listener, request.bundle.name).say(f"not timed: {emitter.untimed}")
    whole = [_time_pipeline(request, manifest, samples)] if samples else []  # first, for it may fail
    measurements = [*emitter.measure(request), *whole]
    return [_summarise(request.bundle, manifest, measurement) for measurement in measurements]


def _summarise(bundle: Path, manifest: Manifest, measurement: Measurement) -> VariantTimes:
    opening, latency = summarize_series(measurement.opening_ms), summarize_series(measurement.latency_ms)
    plain_opening = summarize_series(measurement.baseline_opening_ms)
    plain_latency = summarize_series(measurement.baseline_latency_ms)
    return VariantTimes(
        bundle=bundle,
        target=manifest.target.id,
        variant=measurement.variant
        if measurement.component == WHOLE
        else manifest.label(measurement.component, measurement.variant),
        opening=opening,
        latency=latency,
        baseline_opening=plain_opening,
        baseline_latency=plain_latency,
        opening_ratio=_divide(opening, plain_opening),
        latency_ratio=_divide(latency, plain_latency),
        measurement=measurement,
        throughput=_summarise_throughput(measurement),
        doubts=doubt_measurement(measurement),
    )


def _summarise_throughput(measurement: Measurement) -> dict[int, Spread]:
    spreads = {found.callers: summarize_series(found.per_second) for found in measurement.throughput}
    return {callers: spread for callers, spread in spreads.items() if spread is not None}


def _divide(measured: Spread | None, plain: Spread | None) -> float | None:
    return measured.median / plain.median if measured and plain and plain.median else None
