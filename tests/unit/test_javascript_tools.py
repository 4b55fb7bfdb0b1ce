"""The pinned JavaScript tools: every file by its digest, and no host that it would have to come from."""

from __future__ import annotations

import json
import re

from tests.support.command_line import ROOT

FOLDER = ROOT / "tests" / "javascript"


def test_every_tool_is_pinned_by_digest_and_from_nowhere_in_particular() -> None:
    lock = json.loads((FOLDER / "package-lock.json").read_text("utf-8"))
    packages = {name: record for name, record in lock["packages"].items() if name}
    assert packages
    assert [name for name, record in packages.items() if not record["integrity"].startswith("sha512-")] == []
    assert [name for name, record in packages.items() if "resolved" in record] == []


def test_direct_tools_have_one_version() -> None:
    manifest = json.loads((FOLDER / "package.json").read_text("utf-8"))
    assert "dependencies" not in manifest
    versions = manifest["devDependencies"].values()
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)
