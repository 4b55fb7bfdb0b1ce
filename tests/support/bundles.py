"""Emit requests for tiny models, one or several: inspected and recorded by the real stages, shipped as they are."""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from bundler.emitters.contract import BuiltComponent, EmitRequest
from bundler.environments.registry import Environments
from bundler.model.artifacts import Artifact, FileRecord, record_folder
from bundler.model.codec import decode, encode
from bundler.model.digests import digest_file
from bundler.model.events import Reporter, ignore
from bundler.model.facts import ModelFacts
from bundler.model.results import StepOutcome
from bundler.model.runtime import (
    RUNTIME_SCHEMA,
    SOLE,
    Compatibility,
    Gate,
    ProviderEntry,
    RuntimeComponent,
    RuntimeConfig,
    RuntimeVariant,
    Tolerance,
)
from bundler.model.stage import StageRequest
from bundler.pipeline.assemble import ship_state
from bundler.profiles.resolve import resolve_target
from bundler.stages.inspect.run import run as inspect
from bundler.stages.record_golden.run import run as record_golden
from tests.support.models import save


def cache_root(fallback: Path) -> Path:
    """Where downloads are kept between test runs, when the environment says so; else `fallback`."""
    return Path(os.environ.get("BUNDLER_TEST_CACHE") or fallback)


def make_request(model: onnx.ModelProto, folder: Path, **changes: Any) -> EmitRequest:
    """A request to bundle `model` for linux-x64; `changes` replace its fields, those of its configuration, or of the
    component in that. A link of its state names the .npy file that it begins with.
    """
    source = save(model, folder / "source")
    state = changes.get("state", ())
    files = {link.file: Path(link.file) for link in state if link.file}
    facts = _inspect(source, changes.pop("name", "tiny"))
    recorded = folder / "golden"
    recorded.mkdir()
    options = {"state": encode(state), "count": 16} if state else {}
    asked = StageRequest(inputs={"model": source, **files}, options=options, output=recorded)
    golden = record_golden(asked, _ignore_progress)
    if state:
        made = dataclasses.replace(_outcome("record_golden", recorded, "index.json"), facts=golden.facts)
        changes["state"] = ship_state(state, "golden", made)
    outcome = _outcome("model", source.parent, source.name)
    component = _make_component(facts, outcome, record_folder(recorded), golden.facts)
    component = dataclasses.replace(component, **_take_fields(component, changes))
    config = RuntimeConfig(
        schema=RUNTIME_SCHEMA, name=facts.name, target="linux-x64", components=(component,), fallback="report"
    )
    built = BuiltComponent(
        facts=facts, artifacts={variant.name: (outcome,) for variant in component.variants}, golden=recorded
    )
    request = EmitRequest(
        config=dataclasses.replace(config, **_take_fields(config, changes)),
        components={component.name: dataclasses.replace(built, **_take_fields(built, changes))},
        profile=resolve_target("linux-x64", changes.pop("overrides", ())),
        format="dir",
        version="1.2.3",
        environments=Environments(cache_root(folder / "cache")),
        reporter=Reporter(ignore, "tiny → linux-x64"),
    )
    return dataclasses.replace(request, **changes)


def _take_fields(value: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """Those of `changes` that are fields of `value`, taken out."""
    return {field.name: changes.pop(field.name) for field in dataclasses.fields(value) if field.name in changes}


def combine_requests(requests: Mapping[str, EmitRequest], *, name: str = "several", **changes: Any) -> EmitRequest:
    """One request for the models of several, by the names that they get; `changes` replace fields of its
    configuration.
    """
    first = next(iter(requests.values()))
    config = dataclasses.replace(
        first.config,
        name=name,
        components=tuple(_rename_component(sole_component(request), key) for key, request in requests.items()),
        **changes,
    )
    built = {key: sole_built(request) for key, request in requests.items()}
    return dataclasses.replace(first, config=config, components=built)


def _rename_component(component: RuntimeComponent, name: str) -> RuntimeComponent:
    """With the paths that a component of several has."""
    return dataclasses.replace(
        component,
        name=name,
        golden=f"golden/{name}",
        state=tuple(
            dataclasses.replace(link, file=_put_below(link.file, name)) if link.file else link
            for link in component.state
        ),
        variants=tuple(
            dataclasses.replace(
                variant,
                model=_put_below(variant.model, name),
                files=tuple(dataclasses.replace(file, path=_put_below(file.path, name)) for file in variant.files),
            )
            for variant in component.variants
        ),
    )


def _put_below(path: str, name: str) -> str:
    first, _, rest = path.partition("/")
    return f"{first}/{name}/{rest}"


def sole_component(request: EmitRequest) -> RuntimeComponent:
    """The component of a request of one model."""
    (component,) = request.config.components
    return component


def sole_built(request: EmitRequest) -> BuiltComponent:
    """What was built for it."""
    (built,) = request.components.values()
    return built


def with_component(request: EmitRequest, **changes: Any) -> EmitRequest:
    """`request` of one model, with `changes` of its component."""
    component = dataclasses.replace(sole_component(request), **changes)
    return dataclasses.replace(request, config=dataclasses.replace(request.config, components=(component,)))


def make_variant(name: str, artifact: Artifact, **changes: Any) -> RuntimeVariant:
    """A variant on the CPU of this machine, with `changes`."""
    variant = RuntimeVariant(
        name=name,
        model=f"models/{name}/model.onnx",
        files=tuple(dataclasses.replace(record, path=f"models/{name}/{record.path}") for record in artifact.files),
        providers=(ProviderEntry(name="CPUExecutionProvider", options={}),),
        session={"graph_optimization_level": "ORT_ENABLE_EXTENDED", "intra_op_num_threads": 1},
        session_config={"session.intra_op.allow_spinning": "0"},
        disabled_optimizers=(),
        requires=Compatibility(systems=(platform.system(),), machines=(platform.machine(),), runtime="1.31.1"),
        gate=Gate(default=Tolerance(absolute=1e-5, relative=1e-4, sqnr_db=40.0)),
    )
    return dataclasses.replace(variant, **changes)


def model_outcome(request: EmitRequest) -> StepOutcome:
    """The step that made the model that `request` ships."""
    return next(iter(sole_built(request).artifacts.values()))[0]


def model_artifact(request: EmitRequest) -> Artifact:
    """The files of the model that `request` ships."""
    artifact = model_outcome(request).artifact
    assert artifact is not None
    return artifact


def with_variants(request: EmitRequest, *variants: RuntimeVariant, **changes: Any) -> EmitRequest:
    """`request` with these variants, all of the same model; `changes` are those of its configuration."""
    outcome = model_outcome(request)
    built = dataclasses.replace(sole_built(request), artifacts={variant.name: (outcome,) for variant in variants})
    changed = with_component(request, variants=variants)
    return dataclasses.replace(
        changed,
        config=dataclasses.replace(changed.config, **changes),
        components={sole_component(request).name: built},
    )


def _inspect(source: Path, name: str) -> ModelFacts:
    found = inspect(
        StageRequest(inputs={"model": source}, options={"name": name}, output=source.parent), _ignore_progress
    )
    return decode(ModelFacts, found.facts)


def _outcome(step: str, folder: Path, entry: str) -> StepOutcome:
    return StepOutcome(
        step=step,
        stage=step,
        key="",
        artifact=record_folder(folder),
        folder=folder,
        entry=entry,
        facts={},
        notes=(),
        ingredients={},
        seconds=0.0,
        cached=False,
    )


def _make_component(facts: ModelFacts, model: StepOutcome, golden: Artifact, recorded: Any) -> RuntimeComponent:
    assert model.artifact is not None
    return RuntimeComponent(
        name=SOLE,
        model=facts.name,
        model_digest=digest_file(model.path),
        signature=facts.signature,
        variants=(make_variant("cpu", model.artifact),),
        golden="golden",
        golden_digest=golden.digest,
        unstable_outputs=tuple(recorded.get("unstable_outputs", ())),
        metadata=facts.metadata,
    )


def _ignore_progress(fraction: float, text: str) -> None:
    del fraction, text


__all__ = [
    "FileRecord",
    "cache_root",
    "combine_requests",
    "make_request",
    "make_variant",
    "model_artifact",
    "model_outcome",
    "sole_built",
    "sole_component",
    "with_component",
    "with_variants",
]
