"""Whether this machine makes sandboxes: the reason where it does not is on the screen."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pytest

from bundler.environments.sandbox import find_sandbox
from bundler.model.errors import EnvironmentMissingError


@functools.cache
def why_no_sandbox() -> str:
    """Empty where there is one."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            find_sandbox(Path(folder))
        except EnvironmentMissingError as error:
            return " ".join((error.message, *error.details))
    return ""


needs_sandbox = pytest.mark.skipif(bool(why_no_sandbox()), reason=why_no_sandbox() or "there is one")
