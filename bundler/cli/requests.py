"""Build requests from a command line that names models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bundler.api import BuildRequest, list_target_names
from bundler.cli.options import Given
from bundler.model.errors import UsageError


def make_requests(
    models: Sequence[Path], targets: Sequence[str], given: Given, only: Sequence[str]
) -> tuple[BuildRequest, ...]:
    """One request for each model and target; what is given twice counts once. Raises `UsageError` for incompatible
    options.
    """
    models, targets = tuple(dict.fromkeys(models)), tuple(dict.fromkeys(targets))
    if only:
        raise UsageError("--only selects from a project file", hint="omit the model or --only")
    if not targets:
        raise _no_target(models)
    if given.get("name") and len(models) > 1:
        raise UsageError("--name applies to one model only", hint="omit it, or build the models one by one")
    return tuple(BuildRequest(model=model, target=target, **given) for model in models for target in targets)


def _no_target(models: Sequence[Path]) -> UsageError:
    """A target's name among the models is a common mistake: the hint names it."""
    names = list_target_names()
    named = [str(model) for model in models if str(model) in names]
    hint = "`bundler targets list` shows the targets; give one with --target"
    if named:
        hint = f"{named[0]} is a target: give it as --target {named[0]}"
    return UsageError("no target given", hint=hint)
