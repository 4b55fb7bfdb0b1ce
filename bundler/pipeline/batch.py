"""Several builds or plans in one call: each in the order given, and one that fails does not stop the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bundler.model.errors import BundlerError
from bundler.model.events import BuildFinished, BuildsStarted, Event, Listener, Reporter
from bundler.pipeline.build import build
from bundler.pipeline.package_names import warn_of_same_packages
from bundler.pipeline.parallel import run_each
from bundler.pipeline.plan import plan
from bundler.pipeline.requests import BuildRequest, bundle_name
from bundler.pipeline.results import BuildResult, BuildsInterruptedError, Failure, PlanResult
from bundler.pipeline.workspace import Workspace
from bundler.support.interruption import postponable


class _Followed:
    """A listener of one build, which remembers the names that the build reports; the caller sets `failed`."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.names: dict[str, None] = {}
        self.failed = False

    def __call__(self, event: Event) -> None:
        """Pass one event on."""
        if not isinstance(event, BuildsStarted):
            self.names[event.build] = None
        self._listener(event)


class _Count:
    """Reports each build that ends; several may run at once."""

    def __init__(self, *, total: int, listener: Listener) -> None:
        self._total, self._listener = total, listener
        self._done = 0
        self._lock = threading.Lock()

    @contextmanager
    def follow(self, build: str) -> Iterator[_Followed]:
        """One build, which ends with the block."""
        followed = _Followed(self._listener)
        began = time.perf_counter()
        yield followed
        with self._lock:
            self._done += 1
            self._listener(
                BuildFinished(
                    build=build,
                    names=tuple(followed.names),
                    failed=followed.failed,
                    seconds=time.perf_counter() - began,
                    done=self._done,
                    total=self._total,
                )
            )


def build_all(
    requests: Sequence[BuildRequest], workspace: Workspace, listener: Listener, jobs: int
) -> list[BuildResult | Failure]:
    """Build every request. An interruption raises `BuildsInterruptedError`."""
    done: list[BuildResult] = []
    count = _Count(total=len(requests), listener=listener)

    def attempt(request: BuildRequest) -> BuildResult | Failure:
        with postponable() as postpone, count.follow(f"{bundle_name(request)} → {request.target}") as followed:
            try:
                result = build(request, workspace, followed, postpone)
            except BundlerError as error:
                if workspace.executor.interrupted:
                    raise
                followed.failed = True
                return Failure(request=request, error=error)
            done.append(result)
            return result

    listener(BuildsStarted(total=len(requests)))
    for note in warn_of_same_packages(requests):
        Reporter(listener).pass_on(note)
    try:
        return run_each(attempt, requests, workspace.executor, jobs)
    except KeyboardInterrupt as error:
        raise BuildsInterruptedError(done, len(requests)) from error


def plan_all(requests: Sequence[BuildRequest], workspace: Workspace, listener: Listener) -> list[PlanResult | Failure]:
    """Plan every request."""

    def attempt(request: BuildRequest) -> PlanResult | Failure:
        try:
            return plan(request, workspace, listener)
        except BundlerError as error:
            return Failure(request=request, error=error)

    return [attempt(request) for request in requests]
