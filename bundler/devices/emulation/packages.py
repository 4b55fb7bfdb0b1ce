"""The distribution's packages for another processor, fetched and unpacked without root.

apt resolves and verifies them as it does this machine's own, but with its state in a
private folder, which is what makes root and `dpkg --add-architecture` unneeded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bundler.environments.variables import fetching_environment
from bundler.model.errors import EnvironmentMissingError
from bundler.support.processes import run_process

DEBIAN_NAMES = {"aarch64": "arm64"}
# The package lists of another processor, in a private folder: the machine's sources and
# keys are read, its state is not touched, and its hooks (which may need root) stay out.
APT_SETTINGS = """\
#clear APT::Architectures;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Architecture "{debian}";
APT::Architectures {{ "{debian}"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "2";
Dir::Cache "{apt}/cache";
Dir::State "{apt}/state";
Dir::State::status "{apt}/state/status";
"""
# A link to this machine's /etc (sitecustomize), and what no program reads.
LEFT_OUT = ("sitecustomize.py", "./usr/share/doc", "./usr/share/locale", "./usr/share/man")


class EmulationError(EnvironmentMissingError):
    """Emulation is not available here; the message says what is missing and what to do."""


def download(apt: Path, architecture: str, names: Sequence[str], report: Callable[[str], None]) -> list[Path]:
    """The packages `names` and all they depend on, as for an empty machine of that processor."""
    for folder in ("cache/archives/partial", "state/lists/partial"):
        (apt / folder).mkdir(parents=True)
    (apt / "state/status").touch()
    settings = apt / "apt.conf"
    settings.write_text(APT_SETTINGS.format(apt=apt, debian=DEBIAN_NAMES[architecture]), "utf-8")
    apt_get = ("apt-get", "--quiet", "--yes", "--config-file", str(settings))
    report(f"Fetching the {architecture} package lists and packages")
    _fetch_lists(apt_get, apt / "state/lists", architecture)
    run((*apt_get, "install", "--download-only", *names))
    return sorted((apt / "cache/archives").glob("*.deb"))


def _fetch_lists(apt_get: Sequence[str], lists: Path, architecture: str) -> None:
    """One broken source of several does no harm, so what arrived decides."""
    done = run_process((*apt_get, "update"), env=fetching_environment())
    if not any(lists.glob("*Packages*")):
        raise EmulationError(
            f"no package list for {architecture} could be fetched: check the network, and that "
            f"this machine's package sources have that processor. {_last_lines(done.stderr)}"
        )


def unpack(package: Path, root: Path) -> None:
    """By tar, since `dpkg-deb --extract` puts a folder in the place of the /lib link."""
    excluded = [f"--exclude={name}" for name in LEFT_OUT]
    keep = ("--keep-directory-symlink", "--no-same-owner", "--no-same-permissions")
    content = run(("dpkg-deb", "--fsys-tarfile", str(package)))
    run(("tar", "--extract", *keep, *excluded, "--directory", str(root)), content)


def run(argv: Sequence[str], given: bytes = b"") -> bytes:
    """The program's output; the error has the last lines when it fails."""
    done = run_process(argv, data=given, env=fetching_environment())
    if done.returncode != 0:
        raise EmulationError(f"{' '.join(argv)} failed ({done.returncode}): {_last_lines(done.stderr)}")
    return bytes(done.stdout)


def _last_lines(stderr: bytes) -> str:
    return "\n".join(stderr.decode(errors="replace").strip().splitlines()[-4:])
