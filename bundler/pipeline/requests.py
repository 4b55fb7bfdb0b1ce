"""What a caller asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bundler.model.errors import UsageError
from bundler.model.golden_inputs import GoldenKind
from bundler.model.shapes import Shape

MAXIMUM_NAME = 64
"""Characters of a bundle's name: with the target and file names it stays below what file systems take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """One model for one target.

    `output` is the folder in which the bundle's folder `<name>-<target>` is made. `overrides` are
    `dotted.key=value` over the profile. `version` is that of the emitted package, and `package_name` its name
    (None: it is made from the bundle's), in which `{model}` and `{target}` stand for the bundle's name and the
    target's id. `samples` and `calibration` are what `--samples` and `--calibration` take, `preprocessing` the
    declaration for folders of images, sound or text. `dimensions` fixes sizes by their name, `shapes` by input.
    `format` None takes the profile's. `prove` runs the golden set in the bundle's own runtime and measures it; without
    it the manifest claims no more than `resolved`. `on` names the device that runs it, as `NAME` or
    `NAME:SETTING` (None: the first that suits). `decisions` are what was measured before, by `decision_key` and
    variant; with `locked` nothing new is measured. `trust_target` lets the target's file name programs that run (its
    `accuracy.metric`).
    `project` is the name of the project file that asks (empty: a command does).
    `golden` says what the bundle carries of `samples`: themselves, or seeded inputs like them.
    """

    model: Path
    target: str
    output: Path = Path("dist")
    name: str | None = None
    version: str = "1.0.0"
    package_name: str | None = None
    samples: str | Path | None = None
    calibration: str | Path | None = None
    preprocessing: Path | None = None
    dimensions: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    format: str | None = None
    prove: bool = True
    on: str | None = None
    seed: int = 0
    synthetic_count: int = 8
    decisions: Mapping[str, Any] = field(default_factory=dict)
    locked: bool = False
    trust_target: bool = False
    golden: GoldenKind = "samples"
    project: str = ""


def decision_key(name: str, target: str) -> str:
    """Under which what was decided by measuring is kept, for a bundle's name and a target's id."""
    return f"{name}-{target}"


def bundle_name(request: BuildRequest) -> str:
    """The bundle's name: as given, else the model file's stem, reduced to letters, digits, `.`, `_` and `-`."""
    if request.name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", request.name):
        raise UsageError(
            f"{request.name!r} cannot be the name of a bundle",
            hint="use up to 64 letters, digits, '.', '_' and '-', beginning with a letter or digit",
        )
    stem = request.name or request.model.stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:MAXIMUM_NAME] or "model"
