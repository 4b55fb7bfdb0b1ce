"""Bundler for programs in Python. What stands here is the whole of it; the command line calls the same.

    from pathlib import Path

    from bundler.api import BuildRequest, build, verify

    result = build(BuildRequest(model=Path("model.onnx"), target="linux-x64", output=Path("dist")))
    print(result.bundle, result.proof, result.digest)
    print(verify(result.bundle, digest=result.digest).proof)

Every function raises a `BundlerError`, which says what, where, why and what to do next, and reports its progress to a
`Listener`. Importing this costs next to nothing: a function loads what it needs when it is called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bundler.model.errors import BundlerError
from bundler.model.events import Event, Listener, ignore
from bundler.model.measurement import USUAL, Timing
from bundler.model.runtime import SOLE
from bundler.pipeline.requests import BuildRequest, combine_requests
from bundler.pipeline.settings import Settings

if TYPE_CHECKING:
    from bundler.emitters.contract import Served, ServeRequest
    from bundler.environments.survey import ToolStatus
    from bundler.pipeline.bench import VariantTimes
    from bundler.pipeline.inspect import Inspection
    from bundler.pipeline.recommend import Recommendations
    from bundler.pipeline.results import (
        BuildResult,
        BuildsInterruptedError,
        DigestResult,
        Failure,
        PlanResult,
        VerifyResult,
    )
    from bundler.reporting.diff import BundleDiff

__all__ = [
    "BuildRequest",
    "BuildResult",
    "BuildsInterruptedError",
    "BundleDiff",
    "BundlerError",
    "DigestResult",
    "Event",
    "Failure",
    "Inspection",
    "Listener",
    "PlanResult",
    "Recommendations",
    "ServeRequest",
    "Served",
    "Settings",
    "Timing",
    "ToolStatus",
    "VariantTimes",
    "VerifyResult",
    "bench",
    "build",
    "build_all",
    "build_project",
    "check_digests",
    "combine_requests",
    "compare",
    "examine",
    "find_project_bundles",
    "find_project_pins",
    "inspect",
    "list_target_names",
    "plan",
    "plan_all",
    "plan_project",
    "recommend",
    "serve",
    "verify",
]

_LATE = {
    "bundler.emitters.contract": ("Served", "ServeRequest"),
    "bundler.environments.survey": ("ToolStatus",),
    "bundler.pipeline.bench": ("VariantTimes",),
    "bundler.pipeline.inspect": ("Inspection",),
    "bundler.pipeline.recommend": ("Recommendations",),
    "bundler.pipeline.results": (
        "BuildResult",
        "BuildsInterruptedError",
        "DigestResult",
        "Failure",
        "PlanResult",
        "VerifyResult",
    ),
    "bundler.reporting.diff": ("BundleDiff",),
}
"""Types that take long to load and that most callers do not need: loaded on first use."""

_DEFAULTS = Settings()
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def __getattr__(name: str) -> Any:
    home = next((module for module, names in _LATE.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def build(request: BuildRequest, settings: Settings = _DEFAULTS, listener: Listener = ignore) -> BuildResult:
    """Build one bundle, verify it and put it into its place, where what stood before stays if anything fails."""
    from bundler.pipeline.results import Failure

    (result,) = build_all((request,), settings, listener)
    if isinstance(result, Failure):
        raise result.error
    return result


def build_all(
    requests: Sequence[BuildRequest], settings: Settings = _DEFAULTS, listener: Listener = ignore
) -> list[BuildResult | Failure]:
    """Build each, some at once, and give what came of it in the same order: one that fails does not stop the others.

    Shapes that all were given go to the models that have such inputs. Raises `UsageError` for two of one bundle.
    """
    from bundler.pipeline.early import start_early
    from bundler.pipeline.requests import check_clashes
    from bundler.pipeline.workspace import open_workspace

    check_clashes(requests)
    with open_workspace(settings.cache_choice, settings.jobs, sandbox=settings.sandbox) as workspace:
        start_early(workspace, requests)  # a worker begins while we load our tools
        from bundler.pipeline import batch
        from bundler.pipeline.shapes import assign_shapes

        return batch.build_all(assign_shapes(requests, workspace, listener), workspace, listener, settings.jobs)


def build_project(
    *,
    folder: Path | None = None,
    targets: Sequence[str] = (),
    only: Sequence[str] = (),
    given: Mapping[str, Any] = _NOTHING,
    locked: bool = False,
    settings: Settings = _DEFAULTS,
    listener: Listener = ignore,
) -> list[BuildResult | Failure]:
    """Build what the project file in `folder` (None: the current one) or the nearest above it names.

    `only` picks bundles, models or targets by name or glob; `targets` and fields of `BuildRequest` in `given` come over
    what the file says. `bundler.lock` is brought up to date first, or with `locked` refused where it is not.
    """
    from bundler.project.builds import build_picked, pick_requests

    instead = "bundler build MODEL --target TARGET"
    found = pick_requests(folder or Path.cwd(), targets=targets, only=only, given=given, instead=instead)
    return build_picked(found, settings, listener, locked=locked)


def plan(request: BuildRequest, settings: Settings = _DEFAULTS, listener: Listener = ignore) -> PlanResult:
    """What a build would run, and which of it is in the cache. Nothing but the inspection of the model is run."""
    from bundler.pipeline.results import Failure

    (result,) = plan_all((request,), settings, listener)
    if isinstance(result, Failure):
        raise result.error
    return result


def plan_all(
    requests: Sequence[BuildRequest], settings: Settings = _DEFAULTS, listener: Listener = ignore
) -> list[PlanResult | Failure]:
    """Plan each, as `build_all` builds each."""
    from bundler.pipeline import batch
    from bundler.pipeline.requests import check_clashes
    from bundler.pipeline.shapes import assign_shapes
    from bundler.pipeline.workspace import open_workspace

    check_clashes(requests)
    with open_workspace(settings.cache_choice, 1, sandbox=settings.sandbox) as workspace:
        return batch.plan_all(assign_shapes(requests, workspace, listener), workspace, listener)


def plan_project(
    *,
    folder: Path | None = None,
    targets: Sequence[str] = (),
    only: Sequence[str] = (),
    given: Mapping[str, Any] = _NOTHING,
    settings: Settings = _DEFAULTS,
    listener: Listener = ignore,
) -> list[PlanResult | Failure]:
    """Plan what `build_project` would build, with what the lock pins and decided."""
    from bundler.project.builds import pick_requests, plan_picked

    instead = "bundler plan MODEL --target TARGET"
    found = pick_requests(folder or Path.cwd(), targets=targets, only=only, given=given, instead=instead)
    return plan_picked(found, settings, listener)


def inspect(model: Path, settings: Settings = _DEFAULTS, listener: Listener = ignore) -> Inspection:
    """The facts of the model, the targets that it fits, and the obstacles; it is not run."""
    from bundler.pipeline.inspect import inspect_model
    from bundler.pipeline.workspace import open_workspace

    with open_workspace(settings.cache_choice, 1, sandbox=settings.sandbox) as workspace:
        return inspect_model(model, workspace, listener)


def recommend(
    model: Path, device: str | None = None, settings: Settings = _DEFAULTS, listener: Listener = ignore
) -> Recommendations:
    """Targets for the model, and why: for what `device` calls (a product, a board, a part number), else for this
    machine and one of each kind.
    """
    from bundler.pipeline.recommend import recommend_targets
    from bundler.pipeline.workspace import open_workspace

    with open_workspace(settings.cache_choice, 1, sandbox=settings.sandbox) as workspace:
        return recommend_targets(model, device, workspace, listener)


def list_target_names() -> tuple[str, ...]:
    """The targets that are known by name: bundler's own and those of installed packages."""
    from bundler.profiles.resolve import target_ids

    return tuple(target_ids())


def verify(
    bundle: Path,
    *,
    digest: str | None = None,
    on: str | None = None,
    pinned: Mapping[str, str] = _NOTHING,
    settings: Settings = _DEFAULTS,
    listener: Listener = ignore,
) -> VerifyResult:
    """Check the bundle's digests, then run its golden set in its own runtime: it runs code that came with the bundle.

    `digest` is the SHA-256 that its `bundle.json` must have (None: any), and `on` the device, as `NAME` or
    `NAME:SETTING` (None: the first that suits). `pinned` are the environments of a project's lock by name, which a
    bundle without a runtime of its own is run in.
    """
    from bundler.pipeline import verify as verifying
    from bundler.pipeline.workspace import open_workspace

    with open_workspace(settings.cache_choice, 1, pinned, sandbox=settings.sandbox) as workspace:
        return verifying.verify(bundle, workspace, listener, on, digest)


def check_digests(bundle: Path, digest: str | None = None) -> DigestResult:
    """Check the bundle's digests as `verify` does, and run nothing of it."""
    from bundler.pipeline import verify as verifying

    return verifying.check_digests(bundle, digest)


def find_project_bundles(only: Sequence[str] = (), folder: Path | None = None) -> tuple[Path, ...]:
    """The folders of the project's bundles that `only` picks, built or not."""
    from bundler.project.builds import find_bundles, pick_requests

    instead = "bundler verify BUNDLE"
    return find_bundles(pick_requests(folder or Path.cwd(), targets=(), only=only, given={}, instead=instead))


def find_project_pins(folder: Path | None = None) -> Mapping[str, str]:
    """The environments that the project's lock pins, by name; none where it has no lock."""
    from bundler.project.load import find_project
    from bundler.project.lock import read_lock

    lock = read_lock(find_project(folder or Path.cwd(), instead="bundler verify BUNDLE").lock_path)
    return lock.environments if lock else {}


def bench(
    bundles: Sequence[Path],
    *,
    baseline: Path | Mapping[str, Path] | None = None,
    timing: Timing = USUAL,
    samples: Path | None = None,
    on: str | None = None,
    settings: Settings = _DEFAULTS,
    listener: Listener = ignore,
) -> tuple[VariantTimes, ...]:
    """Load time and latency of bundles in their own runtime, and of the ONNX file `baseline` in turn with them: one,
    or by component. With the folder `samples`, the bundles' own pipelines are timed over its files, too.
    """
    from bundler.pipeline import bench as benching
    from bundler.pipeline.workspace import open_workspace

    with open_workspace(settings.cache_choice, 1, sandbox=settings.sandbox) as workspace:
        models = {SOLE: baseline} if isinstance(baseline, Path) else baseline or {}
        return benching.bench(bundles, models, workspace, listener, on, timing=timing, samples=samples)


def compare(first: Path, second: Path) -> BundleDiff:
    """All that differs between two bundles: versions, files, operators, options, accuracy, proof."""
    from bundler.reporting.diff import diff_bundles

    return diff_bundles(first, second)


@contextmanager
def serve(request: ServeRequest, report: Callable[[str], None] = lambda _: None) -> Iterator[Served]:
    """Serve a web bundle's demo for as long as the block runs; `report` gets a line for each refused request."""
    from bundler.pipeline import serve as serving

    with serving.serve(request, report) as served:
        yield served


def examine(settings: Settings = _DEFAULTS) -> tuple[ToolStatus, ...]:
    """The tools, environments, toolchains and devices of this machine, and how to get those that are missing."""
    from bundler.devices.registry import device_names, find_kind
    from bundler.environments.survey import survey
    from bundler.execution.cache import open_cache
    from bundler.toolchains.registry import survey_toolchains

    root = open_cache(settings.cache_choice).root
    return (*survey(root), *survey_toolchains(), *(find_kind(name).examine(root) for name in device_names()))
