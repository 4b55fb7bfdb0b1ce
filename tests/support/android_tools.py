"""Android's packaging tools from Debian, unpacked without root; a test that cannot have them is skipped, and says why.

The release is fixed: the aapt2 of the one before it refuses `<uses-native-library>`.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from bundler.execution.locks import hold
from tests.support.kotlin import find_java

RELEASE: Final = "trixie"
PROGRAMS: Final = ("aapt=1:14~beta1-3", "zipalign=1:10.0.0+r36-1.1", "libapksig-java=35.0.2-1")
"""They come with all that they depend on, for they run with libraries of their own."""

ALONE: Final = ("apksigner=35.0.2-1",)
"""It depends on a whole Java, which is here already."""

ROOT: Final = Path(sys.prefix) / "android-tools"
"""Beside the environment, so that they are fetched once and not once a session."""

_KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_APT: Final = """\
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "2";
Dir::Etc::SourceList "{apt}/debian.list";
Dir::Etc::SourceParts "-";
Dir::Cache "{apt}/cache";
Dir::State "{apt}/state";
Dir::State::status "{apt}/state/status";
"""
"""apt with a state of its own: the machine's is not touched."""


@dataclass(frozen=True, slots=True)
class AndroidTools:
    """The unpacked packages below `root`."""

    root: Path

    def run_native(self, program: str, *arguments: str | Path) -> str:
        """What `aapt2` or `zipalign` prints; they run with the loader and the libraries of their own release."""
        libraries = self.root / "usr/lib/x86_64-linux-gnu"
        folders = (libraries, libraries / "android", self.root / "usr/lib/7zip", self.root / "usr/lib")
        start = (libraries / "ld-linux-x86-64.so.2", "--library-path", os.pathsep.join(map(str, folders)))
        return _run(*start, self.root / "usr/bin" / program, *arguments)

    def run_signer(self, *arguments: str | Path) -> str:
        """What `apksigner` prints."""
        jars = (self.root / "usr/share/java" / name for name in ("apksigner.jar", "apksig.jar"))
        path = os.pathsep.join(map(str, jars))
        return _run(find_java(), "-cp", path, "com.android.apksigner.ApkSignerTool", *arguments)


@functools.cache
def provide_tools() -> AndroidTools:
    """The tools, fetched when they are needed first."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or shutil.which("apt-get") is None:
        pytest.skip(
            "Android's packaging tools come from Debian's packages for x86_64, and there is no apt-get for them"
        )
    find_java()
    place = ROOT / "-".join(name.partition("=")[2].replace(":", ".") for name in (*PROGRAMS, *ALONE))
    place.parent.mkdir(parents=True, exist_ok=True)
    with hold(place.with_name(f"{place.name}.lock")):
        if not place.is_dir():
            _fetch(place)
    return AndroidTools(place)


def _fetch(place: Path) -> None:
    draft, apt = place.with_name(f"{place.name}.draft"), place.with_name(f"{place.name}.apt")
    for folder in (draft, apt):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    try:
        for package in _download(apt):
            _run("dpkg-deb", "--extract", package, draft)
    except subprocess.TimeoutExpired:
        pytest.skip("Android's packaging tools could not be fetched: the mirror of Debian takes too long")
    except ToolError as error:
        last = (error.stderr.strip().splitlines() or ["it said nothing"])[-1]
        pytest.skip(f"Android's packaging tools could not be fetched: {last}")
    finally:
        shutil.rmtree(apt, ignore_errors=True)
    draft.rename(place)


def _download(apt: Path) -> list[Path]:
    """The packages, from the mirror that this machine's own sources name, verified by its own keys."""
    archives = apt / "cache/archives"
    for folder in (archives / "partial", apt / "state/lists/partial"):
        folder.mkdir(parents=True)
    (apt / "state/status").touch()
    signed = f"[signed-by={_KEYRING}] " if _KEYRING.is_file() else ""
    lines = [f"deb {signed}{mirror} {RELEASE} main\n" for mirror in _find_mirrors()]
    (apt / "debian.list").write_text("".join(lines), "utf-8")
    settings = apt / "apt.conf"
    settings.write_text(_APT.format(apt=apt), "utf-8")
    own = ("env", f"APT_CONFIG={settings}", "apt-get", "--quiet", "--yes")
    _run(*own, "update")
    _run(*own, "install", "--download-only", *PROGRAMS)
    _run(*own, "download", *ALONE, cwd=archives)
    return sorted(archives.glob("*.deb"))


def _find_mirrors() -> list[str]:
    """Where this machine gets its own release from, in any form that its sources are written in."""
    listed = _run("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages")
    rows = (line.split() for line in listed.splitlines())
    found = [row[2] for row in rows if len(row) == 3 and row[1] == "main" and "-" not in row[0]]
    return list(dict.fromkeys(found)) or pytest.skip("this machine's apt has no mirror of Debian among its sources")


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    """Its output; an error has its last words, for a traceback shows no more of it."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd=cwd, timeout=300)
    if done.returncode != 0:
        raise ToolError(done.returncode, done.args, done.stdout, done.stderr)
    return done.stdout


class ToolError(subprocess.CalledProcessError):
    """A tool's refusal, in its own words."""

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.stdout}\n{self.stderr}"
