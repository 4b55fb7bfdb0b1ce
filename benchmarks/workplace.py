"""Where benchmarks work: one folder with models, a cache that keeps its wheels, and bundles."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import BUNDLER, Ran, run_timed

TARGET = "linux-x64"
KEPT = ("packages", "environments", "locked", "CACHEDIR.TAG")
"""What stays in the cache when its steps are forgotten: packages and tool environments come from the network."""
PROOFS = "proofs"
"""The environment in which a bundle is proven, made of its wheels once a machine: it stays, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """`quick` asks for few repetitions and few models; `models` names the only ones that are wanted, if any. `resume`
    asks to measure only what no earlier run in this folder has.
    """

    folder: Path
    quick: bool
    models: tuple[str, ...] = ()
    resume: bool = False

    @property
    def cache(self) -> Path:
        """The cache of all builds here."""
        return self.folder / "cache"

    def pick(self, few: int, many: int) -> int:
        """A number of repetitions."""
        return few if self.quick else many

    def forget_steps(self) -> None:
        """Make the cache as good as new, but for what was downloaded."""
        for path in self.cache.iterdir() if self.cache.exists() else ():
            if path.name not in (*KEPT, PROOFS):
                shutil.rmtree(path)

    def empty(self, name: str) -> Path:
        """A folder of that name with nothing in it."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A bundle, from the output of `bundler build --json`."""

    folder: Path
    package: str
    answer: dict[str, Any]
    ran: Ran

    @property
    def payload(self) -> Path:
        """The folder with `runtime.json`, `golden/` and `models/`."""
        return self.folder / self.package / "payload"

    @property
    def config(self) -> dict[str, Any]:
        """The content of `runtime.json`."""
        config: dict[str, Any] = json.loads((self.payload / "runtime.json").read_text(encoding="utf-8"))
        return config

    @property
    def timings(self) -> dict[str, Any]:
        """Seconds by step and phase, as the build reported them."""
        report = self.folder.with_name(f"{self.folder.name}.report")
        timings: dict[str, Any] = json.loads((report / "timings.json").read_text(encoding="utf-8"))
        return timings


def build_bundle(
    workplace: Workplace,
    model: Path | str,
    output: Path,
    samples: Path | None = None,
    *,
    arguments: Sequence[str] = ("--no-prove",),
    cache: Path | None = None,
    environment: dict[str, str] | None = None,
    target: str = TARGET,
) -> Built:
    """Build `model` as a user does. Raises `CommandError`."""
    command = [BUNDLER, "build", str(model), "--target", target, "--output", str(output), "--json"]
    command += ["--progress", "none", "--cache", str(cache or workplace.cache), *arguments]
    command += ["--samples", str(samples)] if samples else []
    ran = run_timed(command, environment)
    answer = json.loads(ran.output)["bundles"][0]
    folder = Path(answer["bundle"])
    manifest = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
    return Built(folder=folder, package=manifest["payload"].split("/")[0], answer=answer, ran=ran)


def measure_folder(folder: Path) -> int:
    """Bytes of all files below `folder`."""
    return sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(folder) for name in names)  # noqa: PTH118, PTH202
