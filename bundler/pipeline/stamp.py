"""The key under which a finished bundle is remembered."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import bundler
from bundler.model.digests import digest_json
from bundler.model.results import StepOutcome
from bundler.model.runtime import RuntimeConfig
from bundler.pipeline.prepare import Prepared
from bundler.support.data import data_root


def bundle_key(prepared: Prepared, config: RuntimeConfig, outcomes: Mapping[str, StepOutcome]) -> str:
    """Digest of all that decides a bundle's bytes: configuration (it holds every file's digest), profile, format, the
    steps with their tools, and the code and templates that write it. Kept on this machine only, so code counts by its
    files' sizes and times.
    """
    return digest_json(
        {
            "config": config,
            "profile": prepared.profile.model_dump(mode="json"),
            "plan": prepared.plan,
            "steps": {step: outcome.key for step, outcome in outcomes.items()},
            "version": prepared.request.version,
            "package_name": prepared.request.package_name,
            "prove": prepared.request.prove,
            "code": [_code_stamp(Path(bundler.__file__).parent), _code_stamp(data_root("templates"))],
        }
    )


def _code_stamp(root: Path) -> list[list[str | int]]:
    stamps: list[list[str | int]] = []
    for folder, _, names in sorted(os.walk(root)):
        if folder.endswith("__pycache__"):
            continue
        for name in sorted(names):
            stat = os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118 - some hundred files on the no-op path
            stamps.append([name, stat.st_size, stat.st_mtime_ns])
    return stamps
