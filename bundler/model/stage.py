"""The contract between a plan, the executor and a stage.

A stage is one pure step. `bundler/stages/<name>/spec.py` describes it with a `StageSpec` and imports no ML tool;
`run.py` beside it has `run(request: StageRequest, report: Report) -> StageResult` and is imported in a worker only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

_LARGE_BYTES: Final = 1_000_000_000

NoteLevel = Literal["info", "warning", "safety"]
"""A note on `safety` is a warning that is shown whatever progress the user asked to see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpec:
    """What the rest of bundler knows of a stage.

    `packages` are the distributions whose versions decide the result (they enter the cache key). `inputs` are the roles
    it takes; an entry ending in `?` may be absent. `produces` is the kind of its artifact (`model`, `golden`, `config`,
    `library`), or None when it only finds facts. `changes_model` marks the stages after which outputs are compared.
    `optional` marks a stage whose failure is a note: its input goes on unchanged. `time_limit` is in seconds, for
    inputs of a gigabyte and more; less has less time, but no less than `least_time` (None: all of it). `facts` is the
    type that its facts are encoded from (a `TypedDict` names those that others read): what is recalled is held to it.
    `volatile` marks a stage whose result depends on what no key can hold (the user's own code): it runs each time.
    """

    name: str
    title: str
    inputs: tuple[str, ...]
    produces: str | None
    packages: tuple[str, ...] = ()
    changes_model: bool = False
    optional: bool = False
    time_limit: float = 3600.0
    least_time: float | None = None
    volatile: bool = False
    facts: Any = Mapping[str, Any]

    def limit_for(self, size: int) -> float:
        """Seconds for a call whose inputs have `size` bytes."""
        if self.least_time is None:
            return self.time_limit
        return min(self.time_limit, max(self.least_time, self.time_limit * size / _LARGE_BYTES))


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRequest:
    """One call of a stage: input files by role, checked options, and the empty folder to write into. `compiler` is the
    program of the step's toolchain, None for a step without one.
    """

    inputs: Mapping[str, Path]
    options: Mapping[str, Any]
    output: Path
    compiler: Path | None = None

    def input(self, role: str) -> Path:
        """The entry file for `role`; for `samples` the path as the user gave it. Raises `KeyError`."""
        return self.inputs[role]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that the user should know: a decision, a next best way, a warning. One that `names_samples` says whose
    files they were, and does not travel in the bundle.
    """

    text: str
    level: NoteLevel = "info"
    names_samples: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """What a stage found and wrote.

    `facts` is plain JSON data without times or paths; `entry` is the file of the artifact that later stages open
    (`model.onnx`, `index.json`), relative to the output folder, or None when nothing was written: then, for a stage
    that changes the model, its input goes on unchanged.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    entry: str | None = None
    notes: tuple[Note, ...] = ()


Report = Callable[[float, str], None]
"""Called with progress from 0 to 1 and a short text."""
