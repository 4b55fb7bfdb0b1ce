"""Executes a plan: cached results are reused, the other steps run in workers, independent ones in parallel."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal, Self

from bundler.environments.registry import Environments
from bundler.environments.sandbox import Sandbox
from bundler.execution.cache import Cache
from bundler.execution.calls import StageCall, call_stage
from bundler.execution.history import recall_history, remember_history
from bundler.execution.journal import Journal
from bundler.execution.keys import describe_changes
from bundler.execution.limits import limit_seconds
from bundler.execution.pool import WorkerPool
from bundler.execution.sources import Source
from bundler.execution.steps import (
    INSPECT,
    LARGE_BYTES,
    Cancelled,
    ReadyStep,
    Run,
    StepRunner,
    make_ready,
    recall,
    show_packages,
)
from bundler.execution.temporary import offer_scratch
from bundler.execution.turn import Turn
from bundler.model.errors import BundlerError, DefectError, EnvironmentMissingError
from bundler.model.events import SILENT, Event, Listener, Reporter, StepFinished, StepsEnded, StepStarted
from bundler.model.paths import real_path
from bundler.model.plan import HOST, MODEL, Step
from bundler.model.results import StepOutcome
from bundler.model.stage import StageResult
from bundler.stages.registry import find_stage
from bundler.support.processes import end_all
from bundler.support.remembered import BEHIND

__all__ = ["Executor", "Source", "StepStatus"]

State = Literal["cached", "stale", "new", "unknown"]

EARLIER_SECONDS = 5.0
"""How long after a failure to wait for earlier steps of the plan, which may fail too: a bad model fails soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Early:
    """A step that was begun before the plan that it belongs to was known."""

    future: futures.Future[StepOutcome]
    run: Run
    turn: Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStatus:
    """Whether a step would run, and why. `unknown` is a step that depends on one that must run first."""

    step: str
    stage: str
    state: State
    reason: str


class Executor:
    """Executes plans; several threads may use one at once. A context manager: its end ends the workers.

    `jobs` is how many steps run at once, over all plans; `pool` is any `concurrent.futures.Executor` whose tasks run in
    this process (by default threads).
    """

    def __init__(
        self,
        cache: Cache,
        *,
        environments: Environments | None = None,
        jobs: int | None = None,
        pool: futures.Executor | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._cache = cache
        self._sandbox = sandbox.showing((cache.root, real_path(cache.root / BEHIND))) if sandbox else None
        self._jobs = jobs or min(4, os.cpu_count() or 1)
        self._own_pool = None if pool else futures.ThreadPoolExecutor(self._jobs, thread_name_prefix="bundler-step")
        self._pool: futures.Executor = pool or self._own_pool  # type: ignore[assignment]
        self.environments = environments or Environments(cache.root)
        self._workers = WorkerPool(cache.root / "logs")
        self._runner = StepRunner(cache, self.environments, self._workers)
        self._resources = contextlib.ExitStack()
        self._runs: set[Run] = set()
        self._early: dict[str, _Early] = {}
        self._interrupted = threading.Event()

    def __enter__(self) -> Self:
        self._resources.enter_context(_terminate_as_exit())
        self._resources.enter_context(offer_scratch(lambda: self._cache.scratch))
        return self

    def __exit__(self, *_: object) -> None:
        with self._resources:
            self.interrupt()
            if self._own_pool is not None:
                self._own_pool.shutdown(wait=True, cancel_futures=True)
            self._workers.close()
            self._cache.close()

    def interrupt(self) -> None:
        """Cancel all runs, in every thread, and all later ones."""
        self._interrupted.set()
        for run in tuple(self._runs):
            run.cancel()

    @property
    def interrupted(self) -> bool:
        """Whether it was cancelled: later failures are consequences of that."""
        return self._interrupted.is_set()

    def warm(self, model: Path, environment: str = HOST, imports: Sequence[str] = ()) -> None:
        """Start a worker for `model` that imports in the background. Does nothing for an environment that is not
        installed yet.
        """
        found = self.environments.describe(environment, ())
        if found.python.exists():
            alone = {MODEL: Source(path=model.absolute(), digest="")}
            sandbox = self._sandbox.showing(_list_visible(alone)) if self._sandbox else None
            self._workers.warm(found, imports, show_packages(sandbox, INSPECT))

    def begin(self, step: Step, sources: Mapping[str, Source]) -> None:
        """Begin a step before its plan is known; a plan that has it takes it up, and else nobody hears of it.

        Does nothing in a sandbox, which a plan decides, and with a shared cache, which may have something to report.
        """
        if self._sandbox is not None or self._cache.remote is not None:
            return
        journal = Journal(self._cache.root, "", self._cache.scratch.id)
        run = Run(reporter=SILENT, journal=journal, sources=tuple(sources.values()))
        ready, turn = make_ready(step, sources, {}, self.environments, run), Turn()
        self._runs.add(run)
        if self.interrupted:
            return
        early = _Early(future=self.submit(ready, run, turn), run=run, turn=turn)
        early.future.add_done_callback(lambda _: turn.end())
        self._early[ready.key] = early

    def take_early(self, key: str) -> _Early | None:
        """The step with this key, if it was begun already; to whoever asks first."""
        return self._early.pop(key, None)

    def execute(
        self, plan_steps: Sequence[Step], sources: Mapping[str, Source], reporter: Reporter
    ) -> dict[str, StepOutcome]:
        """Outcomes by step id. Raises the `BundlerError` of the earliest step in the plan's order that fails, whichever
        failed first; then, and when interrupted, its workers are ended.
        """
        build = reporter.build
        journal = Journal(self._cache.root, build, self._cache.scratch.id)
        sandbox = self._sandbox.showing(_list_visible(sources)) if self._sandbox else None
        in_turn = Reporter(_one_at_a_time(reporter.listener), build)
        run = Run(reporter=in_turn, journal=journal, sandbox=sandbox, sources=tuple(sources.values()))
        large = sum(source.size for source in sources.values()) > LARGE_BYTES
        self._cache.say_notes(run.reporter.pass_on)
        walk = _Walk(plan_steps, sources, run, self, 1 if large else self._jobs)
        self._runs.add(run)
        if self.interrupted:
            run.cancel()
        try:
            outcomes = walk.finish()
        except BaseException as error:
            journal.write("ended", error=type(error).__name__, message=str(error)[:500])
            if not isinstance(error, Exception):
                end_all()  # also what makes an environment in another thread: no Ctrl-C reaches it
            walk.cancel()
            if isinstance(error, BundlerError):
                run.reporter.listener(StepsEnded(build=build))
            raise
        finally:
            self._runs.discard(run)
        journal.write("ended", error=None)
        run.reporter.listener(StepsEnded(build=build))
        made_of = {step: dict(outcome.ingredients) for step, outcome in outcomes.items()}
        remember_history(self._cache, _model_path(sources), build, made_of)
        return outcomes

    def call(self, stage: str, inputs: Mapping[str, Path]) -> StageResult:
        """Run a stage on files beside the cache, which keeps nothing of it. Raises `StageError`."""
        spec = find_stage(stage)
        environment = self.environments.resolve(HOST, spec.packages)
        folders = tuple(real_path(path.parent) for path in inputs.values())
        sandbox = self._sandbox.showing(folders) if self._sandbox else None
        with self._workers.lease(environment, sandbox=sandbox) as worker:
            call = StageCall(
                stage=stage,
                inputs=inputs,
                options={},
                output=worker.folder,
                folder=worker.folder,
                seconds=limit_seconds(spec, 0),  # the files may be a stranger's, and are not looked at here
            )
            return call_stage(worker, call, lambda *_: None)

    def explain(self, steps: Sequence[Step], sources: Mapping[str, Source], build: str = "") -> tuple[StepStatus, ...]:
        """For each step whether it would run, and why, compared with the last build of this name. Runs nothing."""
        history = recall_history(self._cache, _model_path(sources), build)
        outcomes: dict[str, StepOutcome] = {}
        statuses = []
        for step in steps:
            missing = [name for name in step.inputs.values() if name not in sources and name not in outcomes]
            if missing:
                statuses.append(_status(step, "unknown", f"depends on {missing[0]}, which must run first"))
                continue
            try:
                ready = make_ready(step, sources, outcomes, self.environments)
            except EnvironmentMissingError as error:  # a plan can be shown without a network
                statuses.append(_status(step, "unknown", error.message))
                continue
            outcome = recall(ready, self._cache)
            if outcome is not None:
                outcomes[step.id] = outcome
            statuses.append(_explain_step(ready, outcome, history.get(step.id)))
        return tuple(statuses)

    def submit(self, ready: ReadyStep, run: Run, turn: Turn) -> futures.Future[StepOutcome]:
        """Complete a step in the pool."""
        return self._pool.submit(self._runner.complete, ready, run, turn)

    def share(self, ready: ReadyStep, run: Run) -> tuple[futures.Future[None], ...]:
        """Send what was recalled to the shared cache, where there is one that lacks it, in the pool."""
        return (self._pool.submit(self._runner.share, ready, run),) if self._cache.remote else ()

    def recall(self, ready: ReadyStep) -> StepOutcome | None:
        """A step's outcome from the local store."""
        return recall(ready, self._cache)


class _Walk:
    """One execution of one plan."""

    def __init__(
        self, steps: Sequence[Step], sources: Mapping[str, Source], run: Run, executor: Executor, width: int
    ) -> None:
        self._waiting = list(steps)
        self._position = {step.id: number for number, step in enumerate(steps, 1)}
        self._sources, self._run, self._executor, self._width = sources, run, executor, width
        self._running: dict[futures.Future[StepOutcome], tuple[Step, Turn]] = {}
        self._shared: list[futures.Future[None]] = []
        self._taken: list[Run] = []
        self._outcomes: dict[str, StepOutcome] = {}
        self._failed: tuple[Step, BundlerError] | None = None
        self._failed_at = 0.0

    def finish(self) -> dict[str, StepOutcome]:
        while self._waiting or self._running:
            self._advance()
            if self._running:
                self._collect()
            elif self._waiting and self._failed is None:
                raise DefectError(f"step {self._waiting[0].id} requires a step that does not precede it in the plan")
            self._raise_failure()
        futures.wait(self._shared)
        return {step: self._outcomes[step] for step in self._position}

    def _raise_failure(self) -> None:
        """Raise the failure once no earlier step can fail: when two steps fail, the earlier one is reported."""
        if self._failed is None:
            return
        step, error = self._failed
        if time.monotonic() - self._failed_at > EARLIER_SECONDS:
            raise error
        earlier = [running for running, _ in self._running.values() if self._is_before(running, step)]
        if not earlier and not any(self._is_ready(waiting) for waiting in self._waiting):
            raise error

    def _is_before(self, step: Step, other: Step) -> bool:
        return self._position[step.id] < self._position[other.id]

    def cancel(self) -> None:
        """End the workers of this plan, and wait until its tasks have ended."""
        self._cancel_runs()
        for future in self._running:
            future.cancel()
        while futures.wait(self._running, timeout=0.2).not_done:
            self._cancel_runs()  # a task may have leased a worker meanwhile

    def _cancel_runs(self) -> None:
        for run in (self._run, *self._taken):
            run.cancel()

    def _advance(self) -> None:
        """Recall or start every step whose inputs are available. In the order of the plan one pass is enough."""
        for step in tuple(self._waiting):
            if len(self._running) >= self._width:
                return
            if self._is_ready(step):
                self._waiting.remove(step)
                self._begin(step)

    def _is_ready(self, step: Step) -> bool:
        """Whether its inputs are available, and no earlier step has failed."""
        if self._failed is not None and not self._is_before(step, self._failed[0]):
            return False
        return all(name in self._sources or name in self._outcomes for name in step.inputs.values())

    def _begin(self, step: Step) -> None:
        self._run.check()
        started = time.perf_counter()
        ready = make_ready(step, self._sources, self._outcomes, self._executor.environments, self._run)
        early = None if ready.volatile else self._executor.take_early(ready.key)
        if early is not None:
            self._taken.append(early.run)
            self._running[early.future] = (step, early.turn)
            early.turn.claim(lambda: self._announce(step, ready))
            return
        outcome = self._executor.recall(ready)
        if outcome is not None:
            self._shared += self._executor.share(ready, self._run)
            self._done(step, outcome, time.perf_counter() - started)
            return
        turn = Turn(announce=lambda: self._announce(step, ready))
        self._running[self._executor.submit(ready, self._run, turn)] = (step, turn)

    def _announce(self, step: Step, ready: ReadyStep) -> None:
        """Report that a step starts, in the thread that runs it."""
        title, position, total = step.title or ready.spec.title, self._position[step.id], len(self._position)
        self._run.journal.write("started", step=step.id, stage=step.stage, key=ready.key)
        self._run.reporter.listener(
            StepStarted(build=self._run.reporter.build, step=step.id, title=title, position=position, total=total)
        )

    def _collect(self) -> None:
        done, _ = futures.wait(self._running, timeout=1.0, return_when=futures.FIRST_COMPLETED)
        for future in done:
            step, turn = self._running.pop(future)
            try:
                outcome = future.result()
            except Cancelled:
                self._run.journal.write("failed", step=step.id, message="cancelled")
                raise
            except BundlerError as error:
                self._run.journal.write("failed", step=step.id, message=str(error)[:500])
                if self._failed is None or self._is_before(step, self._failed[0]):
                    self._failed, self._failed_at = (step, error), time.monotonic()
                continue
            self._done(step, outcome, outcome.seconds if turn.seconds is None else turn.seconds)

    def _done(self, step: Step, outcome: StepOutcome, seconds: float) -> None:
        self._outcomes[step.id] = outcome
        self._run.journal.write("finished", step=step.id, cached=outcome.cached, seconds=round(seconds, 4))
        self._run.reporter.listener(
            StepFinished(
                build=self._run.reporter.build,
                step=step.id,
                title=step.title or find_stage(step.stage).title,
                cached=outcome.cached,
                seconds=seconds,
                notes=outcome.notes,
            )
        )


def _explain_step(ready: ReadyStep, outcome: StepOutcome | None, last: Mapping[str, Any] | None) -> StepStatus:
    if ready.volatile:
        return _status(ready.step, "stale", "it always runs, because the code that it calls may read anything")
    if outcome is not None:
        return _status(ready.step, "cached", "no input, option, tool or code changed")
    if last is None:
        return _status(ready.step, "new", "this step has not run before for this model and target")
    changes = describe_changes(last, ready.ingredients)
    return _status(ready.step, "stale", "; ".join(changes) or "its result is no longer in the cache")


def _status(step: Step, state: State, reason: str) -> StepStatus:
    return StepStatus(step=step.id, stage=step.stage, state=state, reason=reason)


def _list_visible(sources: Mapping[str, Source]) -> Iterator[Path]:
    """The folders of the user's files: a model's data, which an inspection looks for, lies beside it. And what links
    among them lead to, as in the cache of a hub.
    """
    for source in sources.values():
        folder = source.path if source.path.is_dir() else source.path.parent
        yield folder
        real = (real_path(path) for path in (source.path, *(folder / record.path for record in source.files)))
        yield from (path for path in real if not path.is_relative_to(folder))


def _model_path(sources: Mapping[str, Source]) -> Any:
    return sources[MODEL].path if MODEL in sources else None


def _one_at_a_time(listener: Listener) -> Callable[[Event], None]:
    lock = threading.Lock()

    def listen(event: Event) -> None:
        with lock:
            listener(event)

    return listen


@contextlib.contextmanager
def _terminate_as_exit() -> Iterator[None]:
    """Turn SIGTERM into `SystemExit`, so that workers and temporary folders are removed.

    Only in the main thread, and only if SIGTERM has no other handler.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        del frame
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
