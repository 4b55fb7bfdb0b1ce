import json
from pathlib import Path

import pytest

from bundler.catalogue.documents import all_documents, describe_schema
from bundler.providers.session_config import SESSION_CONFIG

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", sorted(all_documents()))
def test_the_checked_in_file_is_what_the_code_generates(name):
    assert (DOCS / name).read_text(encoding="utf-8") == all_documents()[name], (
        "run python -m bundler.catalogue.documents docs"
    )


def test_every_key_of_the_schema_has_a_description():
    schema = json.loads(describe_schema())
    for section in (schema, *schema["$defs"].values()):
        for name, key in section["properties"].items():
            inner = key.get("$ref") or key.get("items", {}).get("$ref")
            described = schema["$defs"][inner.rsplit("/", 1)[1]] if inner else key
            assert described.get("description"), name


def test_an_editor_may_leave_out_what_is_inherited():
    schema = json.loads(describe_schema())
    assert "required" not in schema
    assert schema["additionalProperties"] is False
    assert schema["properties"]["extends"]["type"] == "string"


def test_the_options_page_has_every_entry():
    page = all_documents()["options.md"]
    assert all(f"| `{rule.key}` |" in page for rule in SESSION_CONFIG)
