"""`doctor`: the tools, environments, toolchains and devices of this machine."""

from __future__ import annotations

from pathlib import Path

from bundler.devices.registry import device_names, find_kind
from bundler.environments.survey import ToolStatus, survey
from bundler.toolchains.registry import survey_toolchains


def examine(cache_root: Path) -> tuple[ToolStatus, ...]:
    """Look at everything; changes nothing and needs no network."""
    return (
        *survey(cache_root),
        *survey_toolchains(),
        *(find_kind(name).examine(cache_root) for name in device_names()),
    )
