"""Documents of earlier versions are read as bundles of one component."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bundler.model.codec import decode, encode
from bundler.model.runtime import RuntimeConfig
from bundler.model.upgrading import upgrade_manifest, upgrade_runtime
from bundler.reporting.manifest import make_manifest
from tests.unit.reporting.builds import make_config, make_facts, make_request


def test_runtime_json_of_one_model_is_a_bundle_of_one_component() -> None:
    config = make_config(make_facts())
    (component,) = config.components
    assert component.name == "model"
    document = encode(component) | {"schema": 3, "target": config.target, "fallback": "report", "telemetry": False}
    old = {key: value for key, value in document.items() if key not in ("name", "golden", "state")}
    assert encode(decode(RuntimeConfig, upgrade_runtime(old))) == encode(replace(config, name=component.model))


def test_bundle_json_of_one_model_is_a_bundle_of_one_component(tmp_path: Path) -> None:
    manifest = make_manifest(tmp_path, replace(make_request(), budget_mb={"bundle": 9.0}))
    document = encode(manifest)
    component = document["components"][0]
    old = {key: value for key, value in document.items() if key not in ("components", "name", "budget_mb")}
    old |= {key: value for key, value in component.items() if key != "name"} | {"schema": 3}
    old["gate"] = {**old["gate"], "budget_mb": {"bundle": 9.0}}
    assert upgrade_manifest(old) == {**document, "schema": 3}


def test_what_is_no_older_document_stays_as_it_is() -> None:
    for strange in (None, 3, [], {}, {"schema": 3, "components": []}, {"schema": 5}, {"schema": "3"}):
        assert upgrade_runtime(strange) == strange
