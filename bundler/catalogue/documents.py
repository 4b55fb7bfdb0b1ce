"""The JSON Schema and the docs tables, generated from the schema, the option tables and the targets.

`python -m bundler.catalogue.documents docs` writes them; a test holds the checked-in files equal to them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from bundler.catalogue.field_tables import describe_sections
from bundler.catalogue.matrix import describe_matrix
from bundler.catalogue.tables import code, table
from bundler.profiles.methods import METHODS
from bundler.profiles.sections import profile_model
from bundler.providers.java_session import JAVA_SESSION_OPTIONS
from bundler.providers.knowledge import OptionRule
from bundler.providers.registry import find_provider, provider_names
from bundler.providers.session import SESSION_OPTIONS
from bundler.providers.session_config import SESSION_CONFIG
from bundler.providers.values import expected
from bundler.providers.web_session import WEB_SESSION_OPTIONS

_COMMAND = "`python -m bundler.catalogue.documents docs`"


def describe_schema() -> str:
    """JSON Schema of a profile file: the resolved profile's, with `extends`; what can be inherited is not required."""
    schema = profile_model().model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "bundler target profile"
    schema["description"] = "Where a bundle runs. A file may omit values of the profile that it extends."
    schema["properties"] = {
        "extends": {
            "type": "string",
            "title": "Extends",
            "description": "A base, a target, or the relative path of a .toml file; this file's values override it.",
        },
        **schema["properties"],
    }
    # Inherited values count, and only the resolved profile has them all.
    for section in (schema, *schema["$defs"].values()):
        if section.get("title") not in ("Variant", "Provider"):
            section.pop("required", None)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def describe_targets() -> str:
    """docs/targets.md: how to choose, the whole matrix, and where values come from."""
    return describe_matrix(_heading("Targets"))


def describe_options() -> str:
    """docs/options.md: every key of a profile, every session option and every provider option."""
    lines = _heading("Options of a profile")
    lines += describe_sections(profile_model())
    lines += ["", "## Session options (`variants.session`)", "", *_rule_table(SESSION_OPTIONS)]
    lines += ["", "## Session options of web bundles (`variants.session`)", "", *_rule_table(WEB_SESSION_OPTIONS)]
    lines += ["", "## Session options of bundles for Java and Android (`variants.session`)", ""]
    lines += _rule_table(JAVA_SESSION_OPTIONS)
    lines += ["", "## Session configuration (`variants.session_config`)", "", *_rule_table(SESSION_CONFIG)]
    for name in provider_names():
        knowledge = find_provider(name)
        lines += ["", f"## Provider `{name}`: {knowledge.title}", ""]
        lines += _rule_table(knowledge.options.rules) if knowledge.options.rules else ["It has no options."]
        lines += [
            "",
            *table(("Old key", "Use instead"), ((code(k), v) for k, v in sorted(knowledge.options.replaced.items()))),
        ]
    return "\n".join(lines) + "\n"


def describe_precision() -> str:
    """docs/precision.md: every precision method, its keys, and the providers that run its models."""
    lines = _heading("Precision methods")
    lines += ["`precision.method` takes one of these, `none`, or `auto`, which tries what suits the provider.", ""]
    lines += table(("Method", "Result", "Data", "Gate", "Providers", "Tried by `auto` for"), _method_rows())
    lines += ["", "## Keys of `precision` for each method", ""]
    rows = ((code(row.name), ", ".join(map(code, sorted(row.takes)))) for row in METHODS.values())
    lines += table(("Method", "Keys"), rows)
    lines += ["", "## The order of `auto`", ""]
    tried = {name: find_provider(name).numerics.tries for name in provider_names()}
    orders = ((code(name), " → ".join(map(code, tries)) or "nothing") for name, tries in tried.items())
    lines += table(("Provider", "Order"), orders)
    return "\n".join(lines) + "\n"


def _method_rows() -> Iterator[tuple[str, ...]]:
    for row in METHODS.values():
        takers = [name for name in provider_names() if row.name in find_provider(name).numerics.precisions]
        tried = [name for name in provider_names() if row.name in find_provider(name).numerics.tries]
        data = "calibration" if row.needs_calibration else ""
        yield code(row.name), row.title, data, row.loss, ", ".join(takers) or "none", ", ".join(tried)


def all_documents() -> dict[str, str]:
    """Every generated file by its name in docs/."""
    return {
        "profile.schema.json": describe_schema(),
        "targets.md": describe_targets(),
        "options.md": describe_options(),
        "precision.md": describe_precision(),
    }


def _heading(title: str) -> list[str]:
    return [f"# {title}", "", f"Generated by {_COMMAND}; do not edit.", ""]


def _rule_table(rules: Iterable[OptionRule]) -> list[str]:
    return table(("Key", "Takes", "Default", "Meaning"), map(_rule_row, rules))


def _rule_row(rule: OptionRule) -> tuple[str, ...]:
    meaning = f"{rule.meaning} Not for a profile: {rule.decided}." if rule.decided else rule.meaning
    return code(rule.key), expected(rule), code(rule.default) if rule.default else "", meaning


def main(folder: str) -> None:
    """Write every document into `folder`."""
    for name, text in all_documents().items():
        (Path(folder) / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
