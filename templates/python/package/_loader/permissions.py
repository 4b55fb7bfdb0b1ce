"""Checks that `runtime.json` has only permitted options and refers only to files of its own folder.

The names are in `permitted.json` beside this file; none of them is an option that names or writes a file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from .errors import REBUILD, IntegrityError
from .integrity import leads_out


def require_permitted(data: dict[str, Any]) -> None:
    """Raise `IntegrityError` for the first entry of `data`, the whole of `runtime.json`, that is not permitted."""
    with open(os.path.join(os.path.dirname(__file__), "permitted.json"), "rb") as stream:
        permitted = json.load(stream)
    for fault in _find_all(data["components"], permitted):
        raise IntegrityError("runtime.json has an entry that is not permitted", why=fault, hint=REBUILD)


def _find_all(components: list[dict[str, Any]], permitted: dict[str, Any]) -> Iterator[str]:
    for component in components:
        owner = f"{component['name']}/" if len(components) > 1 else ""
        if leads_out(component["golden"]):
            yield f"{owner}golden: the folder {component['golden']} is outside"
        initial = [link["file"] for link in component.get("state", ()) if link["initial"] == "file"]
        yield from (f"{owner}state: the file {path} is outside" for path in initial if leads_out(path))
        for variant in component["variants"]:
            yield from (f"{owner}{variant['name']}: {fault}" for fault in _find_faults(variant, permitted))


def _find_faults(variant: dict[str, Any], permitted: dict[str, Any]) -> Iterator[str]:
    paths = [file["path"] for file in variant["files"]]
    yield from (f"the file {path} is outside" for path in paths if leads_out(path))
    if variant["model"] not in paths:
        yield f"the model {variant['model']} is not among its files"
    for part in ("session", "session_config"):
        yield from _find_unknown(part, variant[part], permitted[part])
    for provider in variant["providers"]:
        known = permitted["providers"].get(provider["name"])
        if known is None:
            yield f"{provider['name']} is not a provider of this bundle"
            return
        yield from _find_unknown(provider["name"], provider["options"], known["options"])
        library = provider.get("library")
        if library and library not in known["plugins"]:
            yield f"{library} is not a plugin of {provider['name']}"
    prepare = variant.get("prepare") or {}
    first = permitted["providers"][variant["providers"][0]["name"]]
    yield from _find_unknown("prepare", prepare.get("options") or {}, first["prepared"])


def _find_unknown(where: str, given: Iterable[str], known: Iterable[str]) -> Iterator[str]:
    return (f"{where}.{name} is not a known option" for name in given if name not in known)
