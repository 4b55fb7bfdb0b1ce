"""The demo page names the files that it loads by their digests."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from tests.unit.emitters.web.test_injection import Outline


def test_every_digest_is_that_of_the_file(bundle: Path) -> None:
    page = bundle / "demo" / "index.html"
    named = [
        (str(values.get("href") or values.get("src")), str(values["integrity"]))
        for element in Outline(page.read_text("utf-8")).found
        if isinstance(element, tuple) and isinstance(element[1], list)
        for values in [dict(element[1])]
        if "integrity" in values
    ]
    paths = {path for path, _ in named}
    assert {"demo.css", "demo.js", "../index.js", "../runtime.js", "../loader/index.js"} <= paths
    for path, integrity in named:
        digest = hashlib.sha256((page.parent / path).read_bytes()).digest()
        assert integrity == f"sha256-{base64.b64encode(digest).decode()}", path
