"""Makes, writes and reads `bundle.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bundler import __version__
from bundler.model.artifacts import FileRecord, record_folder
from bundler.model.codec import encode
from bundler.model.digests import digest_json
from bundler.model.errors import VerificationError
from bundler.model.facts import ModelFacts
from bundler.model.manifest import (
    MANIFEST_NAME,
    MANIFEST_SCHEMA,
    ArtifactRecord,
    ComponentRecord,
    GateRecord,
    GoldenRecord,
    Manifest,
    ModelRecord,
    PipelineRecord,
    ProofRecord,
    RuntimeRecord,
    StageRecord,
    TargetRecord,
    VariantRecord,
    parse_manifest,
    read_manifest_bytes,
)
from bundler.model.plan import HOST, BuildPlan, ComponentPlan, Step
from bundler.model.proof import Emitted
from bundler.model.results import StepOutcome
from bundler.model.runtime import RuntimeComponent, RuntimeConfig, RuntimeVariant
from bundler.model.upgrading import upgrade_manifest
from bundler.profiles.places import describe_profile, name_command
from bundler.profiles.schema import TargetProfile
from bundler.reporting.checks import make_checks
from bundler.reporting.figures import word_figures
from bundler.stages.share_weights.spec import SPEC as SHARE_WEIGHTS
from bundler.support.files import FILE_MODE, replace_whole
from bundler.verification.archives import is_archive, list_entries

_RECORDED_ELSEWHERE = {"signature", "outputs", "samples", "comparison", "references", "weaknesses"}
"""Facts that `runtime.json` or the checks already contain."""

_MACHINE_INGREDIENTS = {"machine", "python"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedComponent:
    """What a manifest records of one component beside its plan. `outcomes` are those of all its steps, in any order;
    `shared` are models whose weights are stored with others', by variant: they ship in place of their steps' own.
    """

    facts: ModelFacts
    outcomes: Sequence[StepOutcome]
    gate: GateRecord
    golden: GoldenRecord
    synthetic_inputs: bool
    reservations: tuple[str, ...] = ()
    shortfalls: tuple[str, ...] = ()
    shared: Mapping[str, StepOutcome] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestRequest:
    """All that a manifest records beside the files. `components` are by name; `known` are digests, by path, of files
    that need not be hashed again; `budget_mb` holds limits in 1,000,000 bytes.
    """

    plan: BuildPlan
    profile: TargetProfile
    config: RuntimeConfig
    emitted: Emitted
    components: Mapping[str, RecordedComponent]
    proof: ProofRecord
    budget_mb: Mapping[str, float] = field(default_factory=dict)
    pipeline: tuple[PipelineRecord, ...] = ()
    known: Mapping[str, str] = field(default_factory=dict)


def make_manifest(bundle: Path, request: ManifestRequest) -> Manifest:
    """The manifest of the finished folder `bundle`. Hashes its files, except `bundle.json` and what is `known`."""
    plan, profile = request.plan, request.profile
    files = list_files(bundle, request.known)
    return Manifest(
        schema=MANIFEST_SCHEMA,
        bundler=__version__,
        name=request.config.name,
        runtime=RuntimeRecord(package=profile.runtime.package, version=profile.runtime.version),
        target=TargetRecord(id=profile.id, title=profile.title, profile_digest=digest_json(describe_profile(profile))),
        ecosystem=plan.emitter,
        format=plan.format,
        package=request.emitted.package,
        payload=request.emitted.payload,
        components=tuple(
            _record_component(part, request.config.component(part.name), request.components[part.name])
            for part in plan.components
        ),
        files=files,
        proof=request.proof,
        budget_mb=request.budget_mb,
        pipeline=request.pipeline,
        archives=_list_archives(bundle, files, request.emitted),
    )


def _list_archives(bundle: Path, files: Sequence[FileRecord], emitted: Emitted) -> dict[str, dict[str, int]]:
    """What is in the archives that were written for this bundle; those of others are only shipped."""
    shipped = {dependency.file for dependency in emitted.dependencies}
    own = (file.path for file in files if is_archive(file.path) and file.path not in shipped)
    return {path: list_entries(bundle / path) for path in own}


def _record_component(plan: ComponentPlan, component: RuntimeComponent, built: RecordedComponent) -> ComponentRecord:
    return ComponentRecord(
        name=component.name,
        model=ModelRecord(name=component.model, digest=component.model_digest, size=built.facts.total_bytes),
        synthetic_inputs=built.synthetic_inputs,
        unstable_outputs=component.unstable_outputs,
        variants=tuple(_variant(variant) for variant in component.variants),
        stages=tuple(_stage(outcome, plan) for outcome in order_outcomes(plan, built.outcomes)),
        decisions=plan.decisions,
        checks=make_checks(plan, built.outcomes),
        gate=built.gate,
        reservations=built.reservations,
        shortfalls=built.shortfalls,
        golden=built.golden,
        artifacts=tuple(_list_artifacts(plan, built)),
    )


def list_files(bundle: Path, known: Mapping[str, str] | None = None) -> tuple[FileRecord, ...]:
    """Every file of a bundle except its manifest, by path; `known` are digests that need not be computed again."""
    return tuple(record for record in record_folder(bundle, known).files if record.path != MANIFEST_NAME)


def render_manifest(manifest: Manifest) -> str:
    """The text of `bundle.json`: equal manifests give equal text."""
    return json.dumps(encode(manifest), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_manifest(bundle: Path, manifest: Manifest) -> int:
    """Write `bundle.json` atomically, with the mode of the bundle's other files. Returns the bytes of
    all files of the bundle, `bundle.json` itself included.
    """
    # A lone surrogate is not valid text, and strict JSON readers refuse even its escape, so it is written as `?`.
    content = render_manifest(manifest).encode("utf-8", "replace")
    replace_whole(bundle / MANIFEST_NAME, content, mode=FILE_MODE)
    return manifest.size + len(content)


def read_manifest(bundle: Path, content: bytes | None = None) -> Manifest:
    """The manifest of a bundle, every field checked; `content` is its text if that was already read and checked.

    Raises `VerificationError` when it is missing, malformed, or written by a newer bundler.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - heavy, and only readers need it

    data = upgrade_manifest(parse_manifest(bundle, read_manifest_bytes(bundle) if content is None else content))
    try:
        return TypeAdapter(Manifest).validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise VerificationError(
            f"{bundle / MANIFEST_NAME} is not a manifest of a bundle",
            details=tuple(f"{_place(issue['loc'])}: {issue['msg']}" for issue in error.errors()[:20]),
            hint="the bundle is damaged: copy it again, or build it again",
        ) from error


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location)


def _variant(variant: RuntimeVariant) -> VariantRecord:
    return VariantRecord(
        name=variant.name,
        model=variant.model,
        size=sum(record.size for record in variant.files),
        providers=variant.providers,
        session=variant.session,
        session_config=variant.session_config,
        disabled_optimizers=variant.disabled_optimizers,
    )


def _list_artifacts(plan: ComponentPlan, built: RecordedComponent) -> Iterator[ArtifactRecord]:
    found = {outcome.step: outcome for outcome in built.outcomes}
    for planned in plan.artifacts:
        shared = built.shared.get(planned.variant or "") if planned.kind == "model" else None
        outcome = shared or found.get(planned.step)
        if outcome is not None and outcome.artifact is not None:
            yield ArtifactRecord(
                kind=planned.kind,
                step=outcome.step,
                variant=planned.variant,
                digest=outcome.artifact.digest,
                size=outcome.artifact.size,
            )


def _stage(outcome: StepOutcome, plan: ComponentPlan) -> StageRecord:
    step = _find_step(plan, outcome.step)
    facts = {name: fact for name, fact in outcome.facts.items() if name not in _RECORDED_ELSEWHERE}
    return StageRecord(
        step=outcome.step,
        stage=outcome.stage,
        variant=step.variant if step else None,
        options=word_figures(_name_files(step.options)) if step else {},
        environment=step.environment if step else HOST,
        versions=_versions(outcome.ingredients),
        key=_recipe(outcome.ingredients),
        artifact=outcome.artifact.digest if outcome.artifact else None,
        size=outcome.artifact.size if outcome.artifact else None,
        facts={} if outcome.stage == "compare" else word_figures(facts),
        notes=tuple(note for note in outcome.notes if not note.names_samples),
    )


def order_outcomes(plan: ComponentPlan, outcomes: Sequence[StepOutcome]) -> list[StepOutcome]:
    """The outcomes in the order of the plan; those of steps before the plan come first, that of the bundle's last."""
    places = {SHARE_WEIGHTS.name: len(plan.steps), **{step.id: place for place, step in enumerate(plan.steps)}}
    return sorted(outcomes, key=lambda outcome: places.get(outcome.step, -1))


def _find_step(plan: ComponentPlan, step_id: str) -> Step | None:
    """The step with this id; None for the inspection, which comes before any plan, and for steps of the bundle."""
    return next((step for step in plan.steps if step.id == step_id), None)


def _recipe(ingredients: Mapping[str, Any]) -> str:
    """The cache key without the build machine, so that the same bundle has the same manifest everywhere."""
    kept = {name: value for name, value in ingredients.items() if name not in _MACHINE_INGREDIENTS}
    return digest_json({name: _name_files(value) if name == "options" else value for name, value in kept.items()})


def _name_files(options: Mapping[str, Any]) -> dict[str, Any]:
    """A step's options; a metric's command is reduced to names, because it contains paths of the user's machine."""
    command = options.get("command")
    return dict(options) | ({"command": name_command(command)} if command else {})


def _versions(ingredients: Mapping[str, Any]) -> dict[str, str]:
    """The versions of packages, and of the step's compiler."""
    compiler = ingredients.get("compiler") or {}
    return {**ingredients.get("packages", {}), **({compiler["name"]: compiler["version"]} if compiler else {})}
