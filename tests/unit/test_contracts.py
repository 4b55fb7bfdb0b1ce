"""The contracts of the imports name all that they are about, so that nothing new stands outside of them."""

from __future__ import annotations

import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LAYERS, PARENT, VALUES = PROJECT["tool"]["importlinter"]["contracts"]

IN_AN_ENVIRONMENT = {"stages", "onnxkit"}
"""Rooms whose code runs in a stage's own environment, where the ML tool is."""

NOT_IMPORTED = {"uv", "isympy"}
"""Programs that dependencies bring as modules."""


def test_the_order_of_the_rooms_is_exhaustive() -> None:
    assert LAYERS["exhaustive"] is True
    assert LAYERS["exhaustive_ignores"] == ["__main__"]
    assert LAYERS["containers"] == ["bundler"]


def test_every_room_of_the_parent_process_is_kept_from_ml_tools() -> None:
    rooms = {path.parent.name for path in (ROOT / "bundler").glob("*/__init__.py")}
    named = {name.split(".")[1] for name in PARENT["source_modules"] if name.count(".") == 1}
    assert rooms - IN_AN_ENVIRONMENT == named


def test_the_shared_values_are_kept_from_every_dependency() -> None:
    required = {canonicalize_name(Requirement(text).name) for text in PROJECT["project"]["dependencies"]}
    modules = {
        module
        for module, owners in packages_distributions().items()
        if not module.startswith("_") and required & {canonicalize_name(owner) for owner in owners}
    }
    assert modules - NOT_IMPORTED <= set(VALUES["forbidden_modules"])
