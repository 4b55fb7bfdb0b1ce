"""What the loader takes from `runtime.json` is what a profile may say."""

from __future__ import annotations

import json

from bundler.profiles.options import CONFIG, WEB_SESSION
from bundler.providers.registry import find_by_runtime_name
from bundler.support.data import data_root
from tests.unit.emitters.web.conftest import evaluate

TABLES = """
import { ENTRIES, PROVIDERS, SESSION } from %s;
const given = %s;
const accepts = (rules, name, value) => Object.hasOwn(rules, name) && rules[name](value);
console.log(JSON.stringify({
  session: Object.keys(SESSION),
  entries: [...ENTRIES],
  providers: Object.fromEntries(Object.entries(PROVIDERS).map(([name, rules]) => [name, Object.keys(rules)])),
  refused: given.filter(([table, name, value]) => !accepts({ session: SESSION, ...PROVIDERS }[table], name, value)),
}));
"""


def test_the_loaders_tables_are_those_of_a_profile(node: str) -> None:
    providers = {name: find_by_runtime_name(name) for name in ("wasm", "webgpu", "webnn")}
    rules = {name: known.options for name, known in providers.items() if known is not None}
    values = [("session", rule.key, value) for rule in WEB_SESSION.values() for value in rule.values or ()]
    values += [
        (name, rule.key, value) for name, table in rules.items() for rule in table.rules for value in rule.values or ()
    ]
    path = data_root("templates") / "web" / "package" / "loader" / "config.js"
    found = evaluate(node, TABLES % (json.dumps(str(path)), json.dumps(values)))
    assert sorted(found["session"]) == sorted(WEB_SESSION)
    assert sorted(found["entries"]) == sorted(key for key, rule in CONFIG.items() if not rule.decided)
    assert {name: sorted(keys) for name, keys in found["providers"].items()} == {
        name: sorted(rule.key for rule in table.rules) for name, table in rules.items()
    }
    assert found["refused"] == []
