"""Emit requests for tiny models: inspected and recorded by the real stages, shipped as they are."""

from __future__ import annotations

import dataclasses
import os
import platform
from pathlib import Path
from typing import Any

import onnx

from bundler.emitters.contract import EmitRequest
from bundler.environments.registry import Environments
from bundler.model.artifacts import Artifact, FileRecord, record_folder
from bundler.model.codec import decode
from bundler.model.digests import digest_file
from bundler.model.events import Reporter, ignore
from bundler.model.facts import ModelFacts
from bundler.model.results import StepOutcome
from bundler.model.runtime import (
    RUNTIME_SCHEMA,
    Compatibility,
    Gate,
    ProviderEntry,
    RuntimeConfig,
    RuntimeVariant,
    Tolerance,
)
from bundler.model.stage import StageRequest
from bundler.profiles.resolve import resolve_target
from bundler.stages.inspect.run import run as inspect
from bundler.stages.record_golden.run import run as record_golden
from tests.support.models import save


def cache_root(fallback: Path) -> Path:
    """Where downloads are kept between test runs, when the environment says so; else `fallback`."""
    return Path(os.environ.get("BUNDLER_TEST_CACHE") or fallback)


def make_request(model: onnx.ModelProto, folder: Path, **changes: Any) -> EmitRequest:
    """A request to bundle `model` for linux-x64; `changes` replace its fields, or those of its configuration."""
    source = save(model, folder / "source")
    facts = _inspect(source, changes.pop("name", "tiny"))
    recorded = folder / "golden"
    recorded.mkdir()
    golden = record_golden(StageRequest(inputs={"model": source}, options={}, output=recorded), _ignore_progress)
    outcome = _outcome("model", source.parent, source.name)
    config = _make_config(facts, outcome, record_folder(recorded), golden.facts)
    config_changes = {name: changes.pop(name) for name in tuple(changes) if hasattr(config, name)}
    config = dataclasses.replace(config, **config_changes)
    request = EmitRequest(
        config=config,
        facts=facts,
        profile=resolve_target("linux-x64", changes.pop("overrides", ())),
        format="dir",
        version="1.2.3",
        artifacts={variant.name: (outcome,) for variant in config.variants},
        golden=recorded,
        environments=Environments(cache_root(folder / "cache")),
        reporter=Reporter(ignore, "tiny → linux-x64"),
    )
    return dataclasses.replace(request, **changes)


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


def model_artifact(request: EmitRequest) -> Artifact:
    """The files of the model that `request` ships."""
    artifact = next(iter(request.artifacts.values()))[0].artifact
    assert artifact is not None
    return artifact


def with_variants(request: EmitRequest, *variants: RuntimeVariant, **changes: Any) -> EmitRequest:
    """`request` with these variants, all of the same model."""
    outcome = next(iter(request.artifacts.values()))[0]
    return dataclasses.replace(
        request,
        config=dataclasses.replace(request.config, variants=variants, **changes),
        artifacts={variant.name: (outcome,) for variant in variants},
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


def _make_config(facts: ModelFacts, model: StepOutcome, golden: Artifact, recorded: Any) -> RuntimeConfig:
    assert model.artifact is not None
    return RuntimeConfig(
        schema=RUNTIME_SCHEMA,
        model=facts.name,
        model_digest=digest_file(model.path),
        target="linux-x64",
        signature=facts.signature,
        variants=(make_variant("cpu", model.artifact),),
        fallback="report",
        golden_digest=golden.digest,
        unstable_outputs=tuple(recorded.get("unstable_outputs", ())),
    )


def _ignore_progress(fraction: float, text: str) -> None:
    del fraction, text


__all__ = ["FileRecord", "cache_root", "make_request", "make_variant", "model_artifact", "with_variants"]
