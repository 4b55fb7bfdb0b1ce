"""What the demo page names of the bundle's other files, each with the digest that the browser holds it to."""

from __future__ import annotations

import base64
import hashlib
import posixpath
from dataclasses import dataclass
from pathlib import Path

from bundler.devices.browser.headers import render_policy
from bundler.emitters.web.modules import find_modules

DEMO = "demo"
_ENTRY = f"{DEMO}/demo.js"
_DEFERRED = f"{DEMO}/page.js"
"""Imported by the entry when it has checked the digests of all modules, so that it can say what is wrong with them."""
_STYLESHEET = f"{DEMO}/demo.css"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One file that the page loads. `path` is relative to the page."""

    path: str
    sha256_base64: str

    @property
    def integrity(self) -> str:
        """The digest in the form of the `integrity` attribute."""
        return f"sha256-{self.sha256_base64}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoContext:
    """The page's stylesheet, its first module, all modules that it comes to import, and its own policy, for hosts that
    send none.
    """

    page_policy: str
    stylesheet: Resource
    entry: Resource
    preloads: tuple[Resource, ...]


def describe_demo(folder: Path) -> DemoContext:
    """The context of the demo page in the bundle `folder`, whose modules are all written."""
    modules = dict.fromkeys((*find_modules(folder, _ENTRY), *find_modules(folder, _DEFERRED)))
    return DemoContext(
        page_policy=render_policy({"frame-ancestors": None}),  # Browsers take that one from a header only.
        stylesheet=_describe(folder, _STYLESHEET),
        entry=_describe(folder, _ENTRY),
        preloads=tuple(_describe(folder, path) for path in modules if path != _ENTRY),
    )


def _describe(folder: Path, path: str) -> Resource:
    digest = hashlib.sha256((folder / path).read_bytes()).digest()
    return Resource(path=posixpath.relpath(path, DEMO), sha256_base64=base64.b64encode(digest).decode("ascii"))
