"""The contracts of the imports name all that they are about, so that nothing new stands outside of them."""

from __future__ import annotations

import ast
import graphlib
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from importlib.util import resolve_name
from pathlib import Path

import pytest
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


@pytest.mark.parametrize("package", ["bundler", "templates/python/package/_loader"])
def test_no_modules_import_each_other(package: str) -> None:
    """Inside a room neither, nor inside the loader of Python bundles; an import for types alone counts."""
    imports = read_imports(ROOT / package)
    assert len(imports) > 20
    graphlib.TopologicalSorter(imports).prepare()  # its error names the circle


def test_links_are_followed_by_functions_that_never_raise() -> None:
    """`Path.resolve` and `Path.expanduser` end with `RuntimeError` for links in a circle and for users that are not."""
    raising = re.compile(r"\.(resolve\(\)|expanduser\(\))")
    files = [path for path in (ROOT / "bundler").rglob("*.py") if raising.search(path.read_text("utf-8"))]
    assert files == [], "use real_path and user_path of bundler.model.paths"


def test_processes_are_started_through_one_door() -> None:
    """Else one outlives a build that is killed. A copy of a worker is in its session, and ends with that."""
    starting = re.compile(r"subprocess\.(run|Popen|call|check_\w+)\(|os\.(system|spawn\w*|posix_spawn\w*|fork)\(")
    files = {path for path in (ROOT / "bundler").rglob("*.py") if starting.search(path.read_text("utf-8"))}
    assert files == {ROOT / "bundler" / "support" / "processes.py", ROOT / "bundler" / "onnxkit" / "inference.py"}


def read_imports(root: Path) -> dict[str, set[str]]:
    """The modules of the package in `root` that each of them imports."""
    files = {".".join(path.relative_to(root.parent).with_suffix("").parts): path for path in root.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in files.items()}
    return {name: set(name_imports(name, path)) & modules.keys() - {name} for name, path in modules.items()}


def name_imports(name: str, path: Path) -> Iterator[str]:
    """What may be modules among what a file imports, at its top or inside a function."""
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package)
            yield from (source, *(f"{source}.{alias.name}" for alias in node.names))
