"""Emitted packages for tests, imported in this process or run as a program."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from bundler.emitters.contract import EmitRequest
from bundler.emitters.python.project import write_python_project


@dataclasses.dataclass(frozen=True)
class Package:
    """A package that was written to `root`; `cache` is the cache folder that its loader sees."""

    root: Path
    name: str
    cache: Path

    @property
    def payload(self) -> Path:
        return self.root / self.name / "payload"

    @property
    def model(self) -> Path:
        return next((self.payload / "models").glob("*/*.onnx"))

    def call(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """`python -m <package> …` as a user would."""
        return subprocess.run(
            [sys.executable, "-m", self.name, *arguments],
            cwd=self.root,
            env={**os.environ, "XDG_CACHE_HOME": str(self.cache), "PYTHONDONTWRITEBYTECODE": "1", **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def ask(self, *arguments: str, **environment: str) -> Any:
        """The JSON that a command answers."""
        done = self.call(*arguments, **environment)
        return json.loads(done.stdout)

    def rewrite(self, alter: Callable[[dict[str, Any]], None]) -> None:
        """Let `alter` change the first component in `runtime.json`, as if it had been built so."""
        path = self.payload / "runtime.json"
        config = json.loads(path.read_text("utf-8"))
        alter(config["components"][0])
        path.write_text(json.dumps(config), "utf-8")
        self.repin()

    def repin(self) -> None:
        """Make the facade accept the `runtime.json` that stands there, as if it had been built with it.

        Bytecode of the facade that stood there before is removed: Python takes it for that of the new one where both
        are of one size and one second.
        """
        facade = self.root / self.name / "__init__.py"
        old = next(line for line in facade.read_text("utf-8").splitlines() if "sha256=" in line)
        digest = hashlib.sha256((self.payload / "runtime.json").read_bytes()).hexdigest()
        facade.write_text(facade.read_text("utf-8").replace(old, f'        sha256="{digest}",'), "utf-8")
        shutil.rmtree(facade.parent / "__pycache__", ignore_errors=True)


def write_package(request: EmitRequest, folder: Path) -> Package:
    """Write the package of `request`, without wheels: it runs on this environment's runtime."""
    root = folder / "bundle"
    root.mkdir(parents=True)
    context = write_python_project(request, root)
    return Package(root=root, name=context.package, cache=folder / "user-cache")


@contextmanager
def imported(package: Package) -> Iterator[ModuleType]:
    """The package, imported afresh."""
    sys.path.insert(0, str(package.root))
    try:
        yield importlib.import_module(package.name)
    finally:
        sys.path.remove(str(package.root))
        for name in [name for name in sys.modules if name.partition(".")[0] == package.name]:
            del sys.modules[name]
