"""What a bundle says of files that a profile names: their names, not where they lie on the machine that builds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from bundler.profiles.schema import TargetProfile


def name_command(command: Sequence[str]) -> list[str]:
    """A command whose absolute paths, also after `--option=`, are names of files."""
    return [_without_root(argument) for argument in command]


def describe_profile(profile: TargetProfile) -> dict[str, Any]:
    """The resolved profile as data that is the same wherever the files lie that it names."""
    data = profile.model_dump(mode="json")
    metric = profile.accuracy.metric
    if metric is not None:
        named = {"python": metric.python and metric.name, "command": name_command(metric.command)}
        data["accuracy"]["metric"] |= named
    return data


def _without_root(argument: str) -> str:
    option, equals, path = argument.rpartition("=")
    absolute = PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()
    return option + equals + PureWindowsPath(path).name if absolute else argument  # Windows takes both separators
