"""From a plan and its outcomes to `runtime.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path, PurePosixPath
from typing import Any

from bundler.model.artifacts import FileRecord
from bundler.model.codec import conforms, decode
from bundler.model.errors import StageError
from bundler.model.facts import ModelFacts
from bundler.model.fixing import adopt_outputs, correct_shapes, fix_signature
from bundler.model.gates import resolve_gate
from bundler.model.plan import MODEL, ORIGINAL, ComponentPlan, VariantPlan
from bundler.model.reference import ReferenceFigures
from bundler.model.results import Comparison, StepOutcome
from bundler.model.runtime import (
    RUNTIME_SCHEMA,
    Compatibility,
    Compiled,
    Gate,
    RuntimeComponent,
    RuntimeConfig,
    RuntimeVariant,
)
from bundler.model.signature import Signature
from bundler.model.state import StateLink
from bundler.pipeline.built import BuiltPart
from bundler.pipeline.prepare import PreparedBundle
from bundler.planning.rules import DISABLE_ALL
from bundler.providers.registry import find_by_runtime_name
from bundler.stages.fix_dimensions.spec import SPEC as FIX_DIMENSIONS
from bundler.stages.fix_dimensions.spec import Facts as FixedFacts
from bundler.stages.optimize.spec import SPEC as OPTIMIZE
from bundler.stages.prepare_data.spec import SPEC as PREPARE_DATA
from bundler.stages.prepare_data.spec import Facts as DataFacts
from bundler.stages.record_golden.spec import Facts as GoldenFacts
from bundler.support.platforms import SYSTEMS, python_machines
from bundler.verification.reproduction import fit_gate

MIN_COMPILED_SHARE = 1e-6
"""Required share of a graph that was compiled in part: at least one node must be assigned to the provider. The device
counts again, and there a compiled part of many nodes is one node."""


def make_runtime_config(prepared: PreparedBundle, parts: Sequence[BuiltPart]) -> RuntimeConfig:
    """The runtime configuration of the bundle.

    A variant's model lies under `models/<variant>/`, its companions under `artifacts/<variant>/<stage>/`, and the
    golden set under `golden/`; with several components each below a folder of the component's name. Variants of equal
    files, and of models that share weights, share the folder of the first.
    """
    folders = _name_folders(parts)
    profile = prepared.profile
    return RuntimeConfig(
        schema=RUNTIME_SCHEMA,
        name=prepared.name,
        target=profile.id,
        components=tuple(_component(part, folders) for part in parts),
        fallback=profile.bundle.fallback,
        together=prepared.request.together,
    )


def _component(part: BuiltPart, folders: Mapping[Path, str]) -> RuntimeComponent:
    prepared, outcomes = part.prepared, part.outcomes
    plan, facts = prepared.plan, prepared.facts
    golden = outcomes[plan.golden]
    return RuntimeComponent(
        name=plan.name,
        model=facts.name,
        model_digest=prepared.sources.get(ORIGINAL, prepared.sources[MODEL]).digest,
        signature=_fix_ports(facts, plan, outcomes),
        variants=tuple(_variant(entry, part, folders, _gate(plan, entry, outcomes)) for entry in plan.variants),
        golden=f"golden/{prepared.prefix}".rstrip("/"),
        golden_digest=golden.artifact.digest if golden.artifact else "",
        unstable_outputs=golden.read_facts(GoldenFacts).unstable_outputs,
        preprocessing=_preprocessing(outcomes),
        fixed_sizes=plan.fixed_sizes,
        state=ship_state(plan.state, f"golden/{prepared.prefix}".rstrip("/"), golden),
        metadata=facts.metadata,
    )


def ship_state(links: Sequence[StateLink], folder: str, golden: StepOutcome) -> tuple[StateLink, ...]:
    """The links as the bundle has them: initial values are those of the golden set, which lies in `folder`."""
    recorded = golden.read_facts(GoldenFacts).initial
    records = {record.path: record for record in golden.artifact.files} if golden.artifact else {}
    return tuple(
        replace(
            link,
            file=f"{folder}/{recorded[link.input].file}",
            shape=recorded[link.input].shape,
            sha256=records[recorded[link.input].file].sha256,
        )
        if link.initial == "file"
        else link
        for link in links
    )


def _preprocessing(outcomes: Mapping[str, StepOutcome]) -> Mapping[str, Any] | None:
    """The record of how the data were prepared that judged the model, or calibrated it."""
    prepared = (outcome.read_facts(DataFacts) for outcome in outcomes.values() if outcome.stage == PREPARE_DATA.name)
    return next((facts.preprocessing for facts in prepared if facts.preprocessing), None)


def _fix_ports(facts: ModelFacts, plan: ComponentPlan, outcomes: Mapping[str, StepOutcome]) -> Signature:
    """The model's signature with the plan's sizes, and with those of its outputs that follow from them, or that the
    golden set shows where the model declares others, of inputs too.
    """
    fixed = fix_signature(facts.signature, plan.fixed_sizes)
    made = next((outcome for outcome in outcomes.values() if outcome.stage == FIX_DIMENSIONS.name), None)
    if made is not None:
        fixed = adopt_outputs(fixed, made.read_facts(FixedFacts).signature)
    return correct_shapes(fixed, outcomes[plan.golden].read_facts(GoldenFacts).contradicted)


def _name_folders(parts: Sequence[BuiltPart]) -> dict[Path, str]:
    """The folder below `models/` of each artifact that has a variant's model, by where it is kept."""
    folders: dict[Path, str] = {}
    for part in parts:
        for variant in part.prepared.plan.variants:
            folder = part.model(variant).folder
            if folder is not None:
                folders.setdefault(folder, part.prepared.label(variant.name))
    return folders


def _gate(plan: ComponentPlan, variant: VariantPlan, outcomes: Mapping[str, StepOutcome]) -> Gate:
    """The gate of the model that ships, resolved for the golden set's outputs; fitted to the golden set where a larger
    one has judged the model.
    """
    asked = variant.gate or next(plan.gates[step] for step in reversed(variant.comparisons) if step in plan.gates)
    gate = resolve_gate(asked, read_references(outcomes[plan.golden]))
    if not variant.reproduction:
        return gate
    return fit_gate(gate, outcomes[variant.reproduction].read_facts(Comparison))


def read_references(golden: StepOutcome) -> dict[str, ReferenceFigures]:
    """The figures of the golden set's outputs, by output."""
    return {known.name: known for known in golden.read_facts(GoldenFacts).references}


def _variant(plan: VariantPlan, part: BuiltPart, folders: Mapping[Path, str], gate: Gate) -> RuntimeVariant:
    profile, outcomes = part.prepared.profile, part.outcomes
    outcome, label = part.model(plan), part.prepared.label
    folder = folders[outcome.folder] if outcome.folder else label(plan.name)
    root = PurePosixPath("models") / folder
    placed = outcomes[plan.compiled].facts if plan.compiled else None
    compiled = _compiled(plan.compiled, placed, part.partners.get(plan.name, ())) if placed is not None else None
    return RuntimeVariant(
        name=plan.name,
        model=str(root / outcome.path.name),
        files=(
            *_list_files(outcome, root),
            *(
                record
                for companion in plan.companions
                for record in _list_files(outcomes[companion.step], PurePosixPath("artifacts") / label(companion.step))
            ),
        ),
        providers=plan.providers,
        session=plan.session,
        session_config={
            **plan.session_config,
            **(_compiled_config(placed) if placed else {}),
            **(_shared_config(compiled) if compiled and compiled.partners else {}),
        },
        disabled_optimizers=(*plan.disabled_optimizers, *_breaking_optimizers(plan, outcomes)),
        gate=gate,
        device_cache=plan.device_cache,
        builds=plan.builds,
        least_share=plan.least_share if placed is None else 0.0 if placed.get("whole") else MIN_COMPILED_SHARE,
        prepare=plan.prepare,
        requires=Compatibility(
            systems=SYSTEMS[profile.platform.system].systems,
            machines=python_machines(profile.platform.architecture),
            runtime=profile.runtime.version,
            features=plan.features,
            plugins=plan.plugins,
            compiled=compiled,
            needs=plan.needs,
        ),
    )


def _breaking_optimizers(plan: VariantPlan, outcomes: Mapping[str, StepOutcome]) -> tuple[str, ...]:
    """The runtime's optimisers that break this model: they did so ahead of time, and would on the device."""
    optimized = outcomes.get(f"{plan.name}/{OPTIMIZE.name}")
    if optimized is None or plan.session.get("graph_optimization_level") == DISABLE_ALL:
        return ()
    found = optimized.facts.get("disabled_optimizers", ())
    return tuple(name for name in found if name not in plan.disabled_optimizers)


def _list_files(outcome: StepOutcome, root: PurePosixPath) -> tuple[FileRecord, ...]:
    """The files of a step's artifact, in the bundle's folder `root`."""
    files = outcome.artifact.files if outcome.artifact else ()
    return tuple(replace(record, path=str(root / record.path)) for record in files)


def _compiled_config(placed: Mapping[str, Any]) -> dict[str, str]:
    """The setting that keeps nodes off the device's CPU where the whole graph was compiled."""
    return {"session.disable_cpu_ep_fallback": "1"} if placed.get("whole") else {}


def _shared_config(compiled: Compiled) -> Mapping[str, str]:
    """The setting with which sessions take one compiled file from each other."""
    known = find_by_runtime_name(compiled.provider)
    return known.compiler.shared_config if known and known.compiler else {}


def _name_devices(compiled: Compiled) -> tuple[str, ...]:
    known = find_by_runtime_name(compiled.provider)
    return known.compiler.name_devices(compiled.devices) if known and known.compiler else ()


def _compiled(step: str, placed: Mapping[str, Any], partners: tuple[str, ...] = ()) -> Compiled:
    """The devices that it was compiled for. Raises `StageError` where the stage, which may be another package's, names
    none.
    """
    known = {item.name: placed[item.name] for item in fields(Compiled) if item.name in placed}
    if conforms(Compiled, known):
        compiled = decode(Compiled, known)
        return replace(compiled, names=_name_devices(compiled) or compiled.names, partners=partners)
    missing = [key for key in ("provider", "devices", "sdk") if key not in placed]
    wrong = f"lack {', '.join(missing)}" if missing else "have a provider, devices, sdk or statement of the wrong type"
    raise StageError(
        f"{step} compiled a model and did not record its target: its facts {wrong}",
        hint="report this to the author of the package that provides the stage",
    )
