"""What a build can begin before all that it needs is loaded."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable

from bundler.execution.sources import digest_source, is_known
from bundler.model.plan import MODEL
from bundler.pipeline.model_file import check_model_path
from bundler.pipeline.requests import BuildRequest, bundle_name, list_parts
from bundler.pipeline.workspace import Workspace
from bundler.planning.inspection import inspect_step

TOOLS = ("bundler.stages.inspect.run", "bundler.stages.record_golden.run")
"""What the first steps of every build import; the rest of the stages need little more."""


def start_early(workspace: Workspace, requests: Iterable[BuildRequest]) -> None:
    """Start a worker for the first model that this cache has not seen, and inspect it there, while we load the rest."""
    parts = (part for request in requests for part in list_parts(request).values())
    unknown = next((part for part in parts if not is_known(part.model, workspace.cache)), None)
    if unknown is not None:
        workspace.executor.warm(unknown.model, imports=TOOLS)
        threading.Thread(target=_inspect, args=(workspace, unknown), daemon=True).start()


def _inspect(workspace: Workspace, request: BuildRequest) -> None:
    """What is wrong is found and reported where the build inspects its model."""
    with contextlib.suppress(Exception):
        check_model_path(request.model)
        alone = digest_source(request.model, (), workspace.cache)
        workspace.executor.begin(inspect_step(bundle_name(request)), {MODEL: alone})
