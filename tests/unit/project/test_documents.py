"""What is generated from the schema of the project file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from bundler.project.documents import EXAMPLE, all_documents
from bundler.project.load import find_project, overrides_for

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", sorted(all_documents()))
def test_the_checked_in_file_is_what_the_code_generates(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == all_documents()[name], (
        "run python -m bundler.project.documents docs"
    )


def test_every_key_has_a_description() -> None:
    schema = json.loads(all_documents()["project.schema.json"])
    for section in (schema, schema["$defs"]["ProjectModel"]):
        for name, key in section["properties"].items():
            inner = key.get("$ref") or key.get("items", {}).get("$ref")
            described = schema["$defs"][inner.rsplit("/", 1)[1]] if inner else key
            assert key.get("description") or described.get("description"), name


def test_the_example_is_a_project_file(tmp_path: Path) -> None:
    (tmp_path / "bundler.toml").write_text(EXAMPLE)
    project = find_project(tmp_path).project
    assert "variants.cpu.session.intra_op_num_threads=2" in overrides_for(project, "linux-x64", tmp_path)


def test_an_editor_takes_the_example_and_refuses_mistakes() -> None:
    schema = json.loads(all_documents()["project.schema.json"])
    check = jsonschema.Draft202012Validator(schema)
    check.check_schema(schema)
    assert not list(check.iter_errors(tomllib.loads(EXAMPLE)))
    for mistake in ("modles = 1", '[overrides."*".optimization]\nlevl = "basic"', "[accuracy]\nabsolut = 1.0"):
        assert list(check.iter_errors(tomllib.loads(f'models = [{{ path = "m.onnx" }}]\n{mistake}\n')))
