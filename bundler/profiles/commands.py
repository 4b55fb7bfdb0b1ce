"""Programs that a profile names: run when the user named them, not because a target's file did."""

from __future__ import annotations

from bundler.model.errors import ProfileError
from bundler.profiles.chain import Key, Layered, shorten
from bundler.profiles.resolve import Resolved

_METRIC: Key = ("accuracy", "metric")


def check_commands(resolved: Resolved) -> None:
    """Raise `ProfileError` where a build would run code that only the target's file, or one that it extends, names.

    What the command line or the project file gives is the user's own: both reach the profile as overrides.
    """
    metric = resolved.profile.accuracy.metric
    if metric is None:
        return
    name = "command" if metric.command else "python"
    key = (*_METRIC, name)
    if _is_override(key, resolved.layered):
        return
    raise ProfileError(
        f"{resolved.layered.origin(key)}: accuracy.metric.{name} would run {shorten(metric.name)}, "
        "and a target's file may not choose programs that run on this machine",
        hint="if you trust that file and its program, add --trust-target; or set the program with "
        f"--set accuracy.metric.{name}=… or in [accuracy.metric] of bundler.toml",
    )


def _is_override(key: Key, layered: Layered) -> bool:
    """Whether the value as a whole came as an override: `spellings` has those alone, whatever a file may be called."""
    return any(key[:length] in layered.spellings for length in range(1, len(key) + 1))
