"""Starts uv and other tools, and explains their failures."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bundler.environments.indexes import index_variables
from bundler.environments.sandbox import Sandbox
from bundler.environments.variables import fetching_environment, proof_environment
from bundler.model.errors import EnvironmentMissingError, IndexUnreachableError
from bundler.support.disk import find_full_disk
from bundler.support.processes import run_process

LAST_LINES = 12
_OFFLINE_HINT = "build once with a network: downloads are cached; `bundler doctor` shows what is installed"
_UNREACHABLE: Final = re.compile(
    r"client error \(Connect\)|dns error|operation timed out|ConnectTimeout|NewConnectionError|Connection refused"
    r"|name resolution|Name or service not known|Network is unreachable|Unknown host|Connect to \S+ .*failed"
    r"|\b(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ENETUNREACH)\b"
)
"""How uv, pip, npm and Maven say that nobody answers."""
_ADDRESS: Final = re.compile(r"https?://[^\s'\"`,)]+")
_INDEX_SETTINGS: Final = {
    "uv": "UV_DEFAULT_INDEX",
    "pip": "PIP_INDEX_URL",
    "npm": "`npm config set registry`",
    "Maven": "a mirror in Maven's settings.xml",
}
_UNWANTED = ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PYTHON", "UV_PROJECT_ENVIRONMENT", "PYTHONHOME", "PYTHONPATH")
"""Variables of the user's shell that would lead uv, or an interpreter that it asks, to another environment."""


@functools.cache
def find_uv() -> Path:
    """The uv that came with bundler, else the one on the PATH. Raises `EnvironmentMissingError`."""
    import uv  # noqa: PLC0415 - most runs need no uv

    try:
        return Path(uv.find_uv_bin())
    except FileNotFoundError:
        found = shutil.which("uv")
        if found is None:
            raise EnvironmentMissingError(
                "uv, which makes tool environments, was not found",
                hint="install it with `python -m pip install uv` in bundler's environment; `bundler doctor` checks it",
            ) from None
        return Path(found)


def run_uv(arguments: Sequence[str], doing: str, shut_in: ShutIn | None = None) -> str:
    """Run uv; returns its standard output. `doing` completes the sentence "could not …" of the error.

    `shut_in` is for what needs no index and may run untrusted code. Raises `EnvironmentMissingError` with uv's own
    last lines.
    """
    return run_tool([str(find_uv()), *arguments], doing, "uv", shut_in)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutIn:
    """A tool that sees nothing of the user's settings and writes to the folder `home`; in a sandbox, to it alone. It is
    ended, with all that it started, after so many `seconds`.
    """

    home: Path
    sandbox: Sandbox | None = None
    seconds: float = 1800.0


def run_tool(
    command: Sequence[str], doing: str, name: str, shut_in: ShutIn | None = None, *, variables: Sequence[str] = ()
) -> str:
    """Run a tool that provisions something; it sees the user's `variables` (patterns of names) beside the usual ones.

    Returns its standard output. Raises `EnvironmentMissingError`.
    """
    if shut_in is None:
        environ = {key: value for key, value in fetching_environment(*variables).items() if key not in _UNWANTED}
        environ |= index_variables(environ)
    else:
        environ = {**proof_environment(), "HOME": str(shut_in.home), "TMPDIR": str(shut_in.home)}
        if shut_in.sandbox is not None:
            command = shut_in.sandbox.showing(find_uv().parents[:1]).wrap(command, writable=(shut_in.home,))
    # A bundle's own build backend runs in the bundle's folder, which must stay as it was built.
    environ |= {"UV_NO_PROGRESS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        seconds = shut_in.seconds if shut_in else None
        done = run_process(command, seconds=seconds, text=True, errors="replace", env=environ)
    except OSError as error:
        raise EnvironmentMissingError(f"could not {doing}: {name} does not start ({error.strerror})") from error
    except subprocess.TimeoutExpired as error:
        raise EnvironmentMissingError(
            f"could not {doing}: {name} did not finish within {error.timeout:g} s and was terminated",
            hint="an installed package may run code that waits: check its build backend",
        ) from error
    if done.returncode != 0:
        places = [Path(part) for part in map(str, command) if part.startswith("/")]
        places += [shut_in.home] if shut_in else []
        full = find_full_disk(f"{done.stderr}\n{done.stdout}", doing, *places)
        if full is not None:
            raise full
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-LAST_LINES:]
        if shut_in is None and name in _INDEX_SETTINGS and _UNREACHABLE.search(f"{done.stderr}\n{done.stdout}"):
            raise _describe_unreachable(doing, name, lines)
        raise EnvironmentMissingError(
            f"could not {doing}: {name} exited with code {done.returncode}",
            details=tuple(lines),
            hint=_OFFLINE_HINT,
        )
    return str(done.stdout)


def _describe_unreachable(doing: str, name: str, lines: Sequence[str]) -> IndexUnreachableError:
    """The host alone is named: an address may have a password in it."""
    address = _ADDRESS.search("\n".join(lines))
    host = urlsplit(address.group()).hostname if address else None
    return IndexUnreachableError(
        f"the package index{f' on {host}' if host else ''} cannot be reached: could not {doing}",
        details=tuple(re.sub(r"://[^/@\s]+@", "://", line) for line in lines),
        hint=f"connect this machine to the network, or configure a reachable index with {_INDEX_SETTINGS[name]}; "
        "packages already downloaded are cached",
    )
