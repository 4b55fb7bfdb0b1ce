"""One step: computes its key, then reuses the cached result, or runs, checks and stores it."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bundler.environments.registry import Environment, Environments
from bundler.environments.sandbox import Sandbox
from bundler.execution.cache import Cache
from bundler.execution.calls import StageCall, call_stage
from bundler.execution.journal import Journal
from bundler.execution.keys import ingredients_of, key_of
from bundler.execution.limits import limit_seconds
from bundler.execution.locks import hold
from bundler.execution.pool import PATIENCE, Worker, WorkerPool
from bundler.execution.records import ActionRecord, is_safe_path, parse_record, render_record
from bundler.execution.sources import Source, check_unchanged
from bundler.execution.stage_sources import stage_packages
from bundler.execution.turn import Turn
from bundler.model.artifacts import Artifact
from bundler.model.codec import conforms
from bundler.model.errors import BundlerError, DefectError, StageError
from bundler.model.events import SILENT, Reporter, StepProgress
from bundler.model.paths import real_path
from bundler.model.plan import Step
from bundler.model.results import StepOutcome
from bundler.model.stage import Note, StageResult, StageSpec
from bundler.stages.inspect.spec import SPEC as INSPECTION
from bundler.stages.registry import find_stage
from bundler.support.disk import storage_error
from bundler.toolchains.registry import FoundToolchain, find_toolchain

LARGE_BYTES = 1_000_000_000
"""From this size of the model on, steps run one by one, each in its own process: that keeps the peak of memory low."""

INSPECT = INSPECTION.name

SLOW_BYTES = 20_000_000
"""From this size of an input on, a step takes longer than it takes to start another worker beside it."""


class Cancelled(Exception):  # noqa: N818 - not an error: another step failed, or the user interrupted
    """The build was cancelled while this step waited or ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInput:
    """The input of one role: the entry file (or a user's folder), and its artifact."""

    folder: Path
    entry: str
    artifact: Artifact

    @property
    def path(self) -> Path:
        """The file to open."""
        return self.folder / self.entry if self.entry else self.folder

    @property
    def digest(self) -> str:
        """Its part of the key: the contents, and which of the files is opened."""
        return f"{self.artifact.digest}:{self.entry}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyStep:
    """A step whose inputs are all available."""

    step: Step
    spec: StageSpec
    inputs: Mapping[str, StepInput]
    ingredients: Mapping[str, Any]
    key: str
    toolchain: FoundToolchain | None = None

    @property
    def passed_on(self) -> StepInput:
        """The input that is used as the result when the stage writes nothing."""
        return self.inputs["model"] if "model" in self.inputs else next(iter(self.inputs.values()))

    @property
    def volatile(self) -> bool:
        """Whether its result depends on something that is not in the key."""
        return self.spec.volatile or self.step.volatile

    @property
    def runs_users_code(self) -> bool:
        """Whether it calls a function or a program of the user, which may access anything."""
        return self.volatile and self.spec.name != INSPECT

    @property
    def is_large(self) -> bool:
        """Whether an input is so large that the step runs alone, in a process of its own."""
        return self._largest > LARGE_BYTES

    @property
    def patience(self) -> float:
        """Seconds to wait for a busy worker before another is started."""
        return PATIENCE if self._largest < SLOW_BYTES else 0.0

    @property
    def size(self) -> int:
        """Bytes of all inputs together."""
        return sum(item.artifact.size for item in self.inputs.values())

    @property
    def _largest(self) -> int:
        return max((item.artifact.size for item in self.inputs.values()), default=0)


@dataclass(slots=True, kw_only=True, eq=False)
class Run:
    """One call of `Executor.execute`: its reporter, sources and active workers, and whether it was cancelled."""

    reporter: Reporter
    journal: Journal
    sandbox: Sandbox | None = None
    sources: tuple[Source, ...] = ()
    cancelled: threading.Event = field(default_factory=threading.Event)
    active: set[Worker] = field(default_factory=set)

    def check(self) -> None:
        """Raise `Cancelled` if the build was cancelled."""
        if self.cancelled.is_set():
            raise Cancelled

    def cancel(self) -> None:
        """Cancel the build, and end its workers."""
        self.cancelled.set()
        for worker in tuple(self.active):
            worker.kill()


def make_ready(
    step: Step,
    sources: Mapping[str, Source],
    outcomes: Mapping[str, StepOutcome],
    environments: Environments,
    run: Run | None = None,
) -> ReadyStep:
    """The step with its inputs and key. Raises `DefectError` when the plan gives a role no input."""
    spec = find_stage(step.stage)
    inputs = {role: _find_input(step, name, sources, outcomes) for role, name in step.inputs.items()}
    missing = [role for role in spec.inputs if not role.endswith("?") and role not in inputs]
    if missing:
        raise DefectError(f"step {step.id} has no input {' and no '.join(missing)} for stage {spec.name}")
    environment = environments.describe(step.environment, spec.packages, run.reporter if run else SILENT)
    digests = {role: item.digest for role, item in inputs.items()}
    toolchain = find_toolchain(step.toolchain) if step.toolchain else None
    ingredients = ingredients_of(step, spec, environment, digests, toolchain)
    return ReadyStep(
        step=step, spec=spec, inputs=inputs, ingredients=ingredients, key=key_of(ingredients), toolchain=toolchain
    )


def _find_input(step: Step, name: str, sources: Mapping[str, Source], outcomes: Mapping[str, StepOutcome]) -> StepInput:
    if name in sources:
        source = sources[name]
        if source.path.is_dir():
            return StepInput(folder=source.path, entry="", artifact=source.artifact)
        return StepInput(folder=source.path.parent, entry=source.path.name, artifact=source.artifact)
    outcome = outcomes[name]
    if outcome.folder is None or outcome.entry is None or outcome.artifact is None:
        raise DefectError(f"step {step.id} reads the artifact of step {name}, which made none")
    return StepInput(folder=outcome.folder, entry=outcome.entry, artifact=outcome.artifact)


def recall(ready: ReadyStep, cache: Cache) -> StepOutcome | None:
    """The result from the local store; None if any part is missing or altered, or if the step is volatile."""
    if ready.volatile:
        return None
    started = time.perf_counter()
    record = cache.records.find(ready.key)
    if record is None or not fits_stage(record, ready.spec):
        return None
    if record.artifact is not None and cache.artifacts.find(record.artifact.digest, cache.scratch) is None:
        return None
    return make_outcome(ready, record, cache, time.perf_counter() - started, cached=True)


def fits_stage(record: ActionRecord, spec: StageSpec) -> bool:
    """Whether a record fits this stage: its name, the type of its facts, and whether it has files."""
    if record.stage != spec.name or not conforms(spec.facts, dict(record.facts)):
        return False
    if record.artifact is None:
        return spec.produces is None or spec.changes_model
    return spec.produces is not None


def make_outcome(ready: ReadyStep, record: ActionRecord, cache: Cache, seconds: float, *, cached: bool) -> StepOutcome:
    """The outcome from a record. If a stage that changes models wrote nothing, its input is the result."""
    artifact, entry = record.artifact, record.entry
    folder = cache.artifacts.folder(artifact.digest) if artifact else None
    if artifact is None and ready.spec.changes_model:
        passed = ready.passed_on
        artifact, folder, entry = passed.artifact, passed.folder, passed.entry
    return StepOutcome(
        step=ready.step.id,
        stage=ready.spec.name,
        key=ready.key,
        artifact=artifact,
        folder=folder,
        entry=entry,
        facts=record.facts,
        notes=record.notes,
        ingredients=ready.ingredients,
        seconds=seconds,
        cached=cached,
    )


class StepRunner:
    """Runs steps whose results are not in the local store."""

    def __init__(self, cache: Cache, environments: Environments, pool: WorkerPool) -> None:
        self._cache = cache
        self._environments = environments
        self._pool = pool

    def complete(self, ready: ReadyStep, run: Run, turn: Turn) -> StepOutcome:
        """The step's outcome. Waits for other processes with the same key. Raises `BundlerError`, `Cancelled`."""
        lock = self._cache.root / "locks" / f"{ready.key}.lock"
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            with hold(lock, remove=True, while_waiting=run.check):
                run.check()
                return recall(ready, self._cache) or self._recall_shared(ready, run) or self._run(ready, run, turn)
        except OSError as error:
            raise self._storage_error(ready, error) from error
        except BundlerError as error:
            if run.cancelled.is_set():
                raise Cancelled from error
            if not (ready.spec.optional or ready.step.optional):
                raise
            return self._pass_through(ready, error)

    def share(self, ready: ReadyStep, run: Run) -> None:
        """Send a result of the local store to the shared one, if that lacks it: whoever made it may have had no key."""
        cache, warn = self._cache, run.reporter.warn
        if cache.remote is None or ready.volatile or not cache.remote.lacks(ready.key, warn):
            return
        record = cache.records.find(ready.key)
        if record is not None:
            cache.remote.push(ready.key, render_record(record), record.artifact, cache.artifacts, warn)

    def _recall_shared(self, ready: ReadyStep, run: Run) -> StepOutcome | None:
        remote, cache = self._cache.remote, self._cache
        record = remote.fetch_record(ready.key, run.reporter) if remote and not ready.volatile else None
        if remote is None or record is None or not fits_stage(record, ready.spec):
            return None
        artifact = record.artifact
        if (
            artifact is not None
            and cache.artifacts.find(artifact.digest, cache.scratch) is None
            and not remote.fetch_artifact(artifact, cache.artifacts, cache.scratch, run.reporter.warn)
        ):
            return None
        cache.records.put(ready.key, record, cache.scratch)
        return recall(ready, cache)

    def _run(self, ready: ReadyStep, run: Run, turn: Turn) -> StepOutcome:
        environment = self._environments.resolve(ready.step.environment, ready.spec.packages, run.reporter)
        output, scratch = self._cache.scratch.new_folder(), self._cache.scratch.new_folder()
        try:
            result = self._call(ready, environment, run, turn, output=output, scratch=scratch)
            _check_result(ready.spec, result, output)
            return self._remember(ready, result, output, turn.seconds or 0.0, run)
        finally:
            shutil.rmtree(output, ignore_errors=True)
            shutil.rmtree(scratch, ignore_errors=True)

    def _call(
        self, ready: ReadyStep, environment: Environment, run: Run, turn: Turn, *, output: Path, scratch: Path
    ) -> StageResult:
        sandbox = _find_sandbox(ready, run)
        with self._pool.lease(environment, keep=not ready.is_large, patience=ready.patience, sandbox=sandbox) as worker:
            run.active.add(worker)
            try:
                run.check()
                turn.begin()
                made = output if sandbox is None else worker.folder / "output"
                made.mkdir(exist_ok=True)
                call = _describe_call(ready, made, scratch if sandbox is None else worker.folder)
                result = call_stage(worker, call, _progress(ready, run))
            finally:
                run.active.discard(worker)
            if sandbox is not None:
                worker.end()  # no process alters the result from here on
                _take_over(made, output, ready.spec.name)
        return result

    def _remember(self, ready: ReadyStep, result: StageResult, output: Path, seconds: float, run: Run) -> StepOutcome:
        cache = self._cache
        record = ActionRecord(
            stage=ready.spec.name,
            ingredients=ready.ingredients,
            artifact=cache.artifacts.put(output, cache.scratch) if result.entry is not None else None,
            entry=result.entry,
            facts=result.facts,
            notes=result.notes,
            seconds=seconds,
        )
        check_unchanged(run.sources)
        data = cache.records.put(ready.key, record, cache.scratch)
        if cache.remote is not None and not ready.volatile:
            cache.remote.push(ready.key, data, record.artifact, cache.artifacts, run.reporter.warn)
        stored = parse_record(ready.key, data)
        if stored is None:
            raise DefectError(f"the record of step {ready.step.id} cannot be read back")
        return make_outcome(ready, stored, cache, seconds, cached=False)  # exactly as a recall will return it

    def _pass_through(self, ready: ReadyStep, error: BundlerError) -> StepOutcome:
        """The outcome of an optional stage that failed: its input and a warning. It is not cached."""
        text = f"{ready.spec.name} failed and was skipped; its input is used unchanged: {error.message}"
        passed = ready.passed_on
        return StepOutcome(
            step=ready.step.id,
            stage=ready.spec.name,
            key=ready.key,
            artifact=passed.artifact,
            folder=passed.folder,
            entry=passed.entry,
            facts={},
            notes=(Note(text=text, level="warning"),),
            ingredients=ready.ingredients,
            seconds=0.0,
            cached=False,
        )

    def _storage_error(self, ready: ReadyStep, error: OSError) -> StageError:
        doing = f"storing the result of stage {ready.spec.name}"
        return storage_error(error, doing, self._cache.root) or StageError(
            f"{doing} failed: {error}",
            hint="check the permissions of the cache, or name another with BUNDLER_CACHE",
        )


def _describe_call(ready: ReadyStep, output: Path, scratch: Path) -> StageCall:
    return StageCall(
        stage=ready.spec.name,
        inputs={role: item.path for role, item in ready.inputs.items()},
        options=ready.step.options,
        output=output,
        # Some tools leave files in the current folder; the user's own code has its files there.
        folder=Path.cwd() if ready.runs_users_code else scratch,
        seconds=limit_seconds(ready.spec, ready.size),
        compiler=ready.toolchain.program if ready.toolchain else None,
    )


def _take_over(made: Path, output: Path, stage: str) -> None:
    """Move the result from a sandbox to the empty folder `output`. Raises `StageError` unless it is a real folder."""
    if made.is_symlink() or not made.is_dir():
        raise StageError(f"stage {stage} replaced the folder of its result with something else")
    output.rmdir()
    shutil.move(made, output)


def _find_sandbox(ready: ReadyStep, run: Run) -> Sandbox | None:
    """The sandbox of the step; None for the user's own code, which may access anything."""
    if run.sandbox is None:
        return None
    if ready.runs_users_code:
        run.reporter.alert(
            f"{ready.spec.name} calls your code, which runs outside the sandbox, together with the models that it opens"
        )
        return None
    shown = show_packages(run.sandbox, ready.spec.name)
    return shown.showing((real_path(ready.toolchain.program).parent.parent,)) if shown and ready.toolchain else shown


def show_packages(sandbox: Sandbox | None, stage: str) -> Sandbox | None:
    """The sandbox with access to the packages of the stage."""
    return sandbox.showing(map(Path, stage_packages(stage).values())) if sandbox else None


def _progress(ready: ReadyStep, run: Run) -> Callable[[float, str], None]:
    def report(fraction: float, text: str) -> None:
        run.reporter.listener(StepProgress(build=run.reporter.build, step=ready.step.id, fraction=fraction, text=text))

    return report


def _check_result(spec: StageSpec, result: StageResult, output: Path) -> None:
    """Check the result against the stage's spec. Raises `StageError`."""
    if result.entry is None:
        if spec.produces is not None and not spec.changes_model:
            raise StageError(
                f"stage {spec.name} made no {spec.produces}", hint="report this to the author of the stage"
            )
        return
    if spec.produces is None:
        raise StageError(f"stage {spec.name} wrote files, although its spec declares only facts")
    if not is_safe_path(result.entry) or not (output / result.entry).is_file():
        raise StageError(f"stage {spec.name} names {result.entry!r} as its result, but wrote no such file")
