"""Response headers: isolation, content security, types of files. What `bundler serve` sends, and verification uses.

The same headers are what a site of one's own should send; the README of a web bundle repeats them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final

POLICY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "default-src": "'none'",
        "script-src": "'self' blob: 'wasm-unsafe-eval'",
        "style-src": "'self'",
        "img-src": "'self' blob: data:",
        "media-src": "'self' blob:",
        "connect-src": "'self'",
        "worker-src": "blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
)
"""The content security policy, by directive: the one that `bundler serve` sends, that the demo's page names and that
the README of a bundle gives. WebAssembly needs `'wasm-unsafe-eval'`, the runtime's module and its threads `blob:`, for
they are made of the bytes that were checked, and the demo's previews images and sound from one. Nothing needs inline
code, `eval` or another origin; and there is no service worker, which would have to come from `'self'`.
"""

ISOLATION: Final[Mapping[str, str]] = MappingProxyType(
    {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
)
"""What makes a page cross-origin isolated: without them there is no shared memory, so no threads."""

_PRUDENCE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }
)

_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".css": "text/css; charset=utf-8",
        ".gz": "application/gzip",
        ".html": "text/html; charset=utf-8",
        ".ico": "image/x-icon",
        ".jpg": "image/jpeg",
        ".js": "text/javascript; charset=utf-8",
        ".json": "application/json",
        ".map": "application/json",
        ".md": "text/markdown; charset=utf-8",
        ".mjs": "text/javascript; charset=utf-8",
        ".png": "image/png",
        ".svg": "image/svg+xml",
        ".ts": "text/plain; charset=utf-8",
        ".txt": "text/plain; charset=utf-8",
        ".wasm": "application/wasm",
        ".wav": "audio/wav",
        ".webmanifest": "application/manifest+json",
    }
)
"""By suffix; our own table, for the machine's may call JavaScript `text/plain`, which no browser runs."""


def render_policy(changes: Mapping[str, str | None] = MappingProxyType({})) -> str:
    """The policy as a header's value, with `changes` to its directives; None leaves one out."""
    return "; ".join(f"{name} {value}" for name, value in {**POLICY, **changes}.items() if value is not None)


def site_headers(*, isolated: bool = True, policy: str | None = None) -> dict[str, str]:
    """The headers of every response."""
    return {
        **(ISOLATION if isolated else {}),
        **_PRUDENCE,
        "Content-Security-Policy": render_policy() if policy is None else policy,
    }


def content_type(path: str) -> str:
    """The media type of the file called `path`; `LICENSE` and the like are text, anything unknown is bytes."""
    suffix = PurePosixPath(path).suffix.lower()
    if not suffix:
        return "text/plain; charset=utf-8"
    return _TYPES.get(suffix, "application/octet-stream")
