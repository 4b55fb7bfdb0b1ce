"""`serve`: the demo of a bundle that a browser opens, from this machine, with the headers that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bundler.emitters.contract import Servable, Served, ServeRequest
from bundler.emitters.registry import find_emitter
from bundler.model.errors import UsageError
from bundler.reporting.manifest import read_manifest
from bundler.verification.integrity import require_integrity


@contextmanager
def serve(request: ServeRequest, report: Callable[[str], None] = lambda _: None) -> Iterator[Served]:
    """Serve the bundle and its demo for as long as the block runs; `report` gets a line for each refused request.

    Raises `VerificationError` when a file does not match its checksum, `UsageError` for a bundle that no browser opens
    and for an address that is not available.
    """
    manifest = read_manifest(request.bundle, require_integrity(request.bundle).content)
    emitter = find_emitter(manifest.ecosystem)
    if not isinstance(emitter, Servable):
        raise UsageError(
            f"{request.bundle} is a {manifest.ecosystem} bundle, and only web bundles can be served",
            hint="build one with --target web-wasm, web-webgpu or web-webnn; `bundler verify` runs this one",
        )
    with emitter.serve(request, report) as served:
        yield served
