"""Sizes at which a model runs, found by running it: what a hint on sizes names."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from bundler.execution.sources import Source
from bundler.model.errors import BundlerError
from bundler.model.events import Reporter
from bundler.model.facts import ModelFacts
from bundler.model.fixing import split_sizes
from bundler.model.free_dimensions import free_dimensions
from bundler.model.open_sizes import YOUR_SIZES, Asker, explain_command
from bundler.model.plan import MODEL, Step
from bundler.model.requirements import FixedSize
from bundler.model.signature import Signature
from bundler.pipeline.workspace import Workspace
from bundler.stages.record_golden.spec import SPEC, Facts

RAN = "(the model ran at these sizes)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTrial:
    """A model as it was given, the sizes that its build has `fixed`, and who asks."""

    source: Source
    facts: ModelFacts
    fixed: Sequence[FixedSize]
    asker: Asker


def name_running_sizes(error: BundlerError, trial: SizeTrial, workspace: Workspace, reporter: Reporter) -> BundlerError:
    """`error` with a command as its hint, with sizes at which the model ran; unchanged where none are found, and where
    the user's samples say which are needed.
    """
    if trial.asker.samples or trial.asker.picture:
        return error
    reporter.say("looking for sizes at which the model runs")
    shapes = find_running_shapes(trial, workspace)
    if not shapes:
        return error
    named = copy.copy(error)
    command = explain_command(trial.facts.signature, replace(trial.asker, samples=shapes)).replace(YOUR_SIZES, RAN)
    named.hint = f"fix the sizes{command}"
    return named


def find_running_shapes(trial: SizeTrial, workspace: Workspace) -> Mapping[str, Sequence[int]]:
    """The shape of each input in one run; empty where the model ran at no size that was tried."""
    signature = trial.facts.signature
    for kept in _list_attempts(signature, trial.fixed):
        options = {"seed": 0, "count": 1, **split_sizes(signature, kept).options()}
        step = Step(id="find_sizes", stage=SPEC.name, inputs={"model": MODEL}, options=options)
        try:
            outcome = workspace.executor.execute((step,), {MODEL: trial.source}, Reporter())[step.id]
        except BundlerError:
            continue
        return outcome.read_facts(Facts).shapes
    return {}


def _list_attempts(signature: Signature, fixed: Sequence[FixedSize]) -> Iterator[Sequence[FixedSize]]:
    """Sizes to keep: all of this build, else those that the user gave, else those of batches, else none."""
    batches = {item.label for item in free_dimensions(signature) if item.role == "batch"}
    attempts = (
        tuple(fixed),
        tuple(size for size in fixed if size.by == "user"),
        tuple(size for size in fixed if size.name in batches),
        (),
    )
    yield attempts[0]
    yield from (now for before, now in pairwise(attempts) if now != before)
