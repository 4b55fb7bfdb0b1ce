"""Wheels of a runtime for a target's platform and Python versions, locked by digest and kept in the cache."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bundler.emitters.python.interpreters import find_uv
from bundler.model.artifacts import Artifact, record_folder
from bundler.model.codec import decode, encode
from bundler.model.digests import canonical_json, digest_json
from bundler.model.errors import EnvironmentMissingError, VerificationError

LOCKS = Path(__file__).parent / "locks"
"""Locks that ship with bundler, by runtime: with one of them a build resolves to the same files on any day."""

PIP = "pip==26.3"
"""Downloads for other platforms and versions, which uv does not."""

TIME_LIMIT = 1800.0
"""Seconds for a download; a runtime with its libraries may weigh several hundred MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheels:
    """A folder of nothing but wheels, and the text of the lock that holds their digests."""

    folder: Path
    lock: str

    @property
    def files(self) -> tuple[Path, ...]:
        """The wheels, sorted by name."""
        return tuple(sorted(self.folder.glob("*.whl")))


def fetch_wheels(
    requirements: Sequence[str], platforms: Sequence[str], python_versions: Sequence[str], cache_root: Path
) -> Wheels:
    """Lock `requirements`, and have their wheels for every platform tag and version (of CPython) at hand.

    Raises `EnvironmentMissingError` when one is not to be had.
    """
    lock = lock_requirements(requirements, python_versions, cache_root)
    home = cache_root / "wheels" / digest_json([lock, list(platforms), list(python_versions)])[:32]
    if not _is_whole(home):
        _download(lock, platforms, python_versions, home)
    return Wheels(folder=home / "wheels", lock=_narrow(lock, home / "wheels"))


def fetch_locked(lock: str, python_version: str, cache_root: Path) -> Path:
    """The folder of the wheels of `lock` that fit this machine and `python_version`.

    Raises `EnvironmentMissingError` when one is not to be had.
    """
    home = cache_root / "wheels" / digest_json([lock, "here", python_version])[:32]
    if not _is_whole(home):
        _download(lock, (), (python_version,), home)
    return home / "wheels"


def check_locked(folder: Path, lock: str) -> None:
    """Raise `VerificationError` unless `folder` holds exactly the wheels that `lock` names by digest."""
    wanted = {digest for _, digests in parse_lock(lock) for digest in digests}
    records = record_folder(folder).files
    strange = sorted(record.path for record in records if record.sha256 not in wanted)
    missing = len(wanted - {record.sha256 for record in records})
    if strange or missing:
        raise VerificationError(
            f"the wheels in {folder} are not those of the lock",
            hint="build the bundle again",
            details=(*(f"not in the lock: {name}" for name in strange), f"{missing} wheels are missing"),
        )


def lock_requirements(requirements: Sequence[str], python_versions: Sequence[str], cache_root: Path) -> str:
    """Every distribution that `requirements` need, pinned with the digests of all its wheels."""
    name = f"{requirements[0].replace('==', '-')}.txt"
    shipped, kept = LOCKS / name, cache_root / "locks" / f"{digest_json([*requirements, *python_versions])[:32]}.txt"
    for path in (shipped, kept):
        if path.is_file():
            return path.read_text("utf-8")
    kept.parent.mkdir(parents=True, exist_ok=True)
    text = _compile(requirements, python_versions[0])
    kept.write_text(text, "utf-8")
    return text


def _compile(requirements: Sequence[str], python_version: str) -> str:
    options = ["--universal", "--generate-hashes", "--only-binary", ":all:", "--fork-strategy", "fewest", "--quiet"]
    plain = ["--no-header", "--no-annotate", "--no-config", "--python-version", python_version]
    command = [find_uv(), "pip", "compile", *options, *plain, "-"]
    return _run(command, f"cannot lock {', '.join(requirements)}", "\n".join(requirements))


def _download(lock: str, tags: Sequence[str], python_versions: Sequence[str], home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".draft-", ignore_cleanup_errors=True) as name:
        draft = Path(name) / "set"
        (draft / "wheels").mkdir(parents=True)
        requirements = Path(name) / "lock.txt"
        requirements.write_text(lock, "utf-8")
        for version in python_versions:
            _run(
                _pip_command(requirements, draft / "wheels", tags, version),
                f"cannot fetch wheels for {', '.join(tags[:1]) or 'this machine'}",
            )
        (draft / "index.json").write_text(canonical_json(encode(record_folder(draft / "wheels"))), "utf-8")
        _replace(draft, home, Path(name) / "old")


def _pip_command(requirements: Path, folder: Path, tags: Sequence[str], version: str) -> list[str]:
    command = [find_uv(), "tool", "run", "--quiet", "--no-config", "--from", PIP, "pip", "download", "--quiet"]
    command += ["--no-deps", "--only-binary=:all:", "--require-hashes", "--disable-pip-version-check"]
    command += ["--implementation", "cp", "--python-version", version, "--dest", str(folder)]
    return command + [part for tag in tags for part in ("--platform", tag)] + ["--requirement", str(requirements)]


def _replace(draft: Path, home: Path, old: Path) -> None:
    """Another build may have put the same set there; a damaged one is set aside."""
    if home.exists() and not _is_whole(home):
        home.rename(old)
    try:
        draft.rename(home)
    except OSError:
        if not _is_whole(home):
            raise


def _is_whole(home: Path) -> bool:
    """Whether every wheel is there and has the digest that it had when it was fetched."""
    try:
        index = decode(Artifact, json.loads((home / "index.json").read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return record_folder(home / "wheels") == index


def _narrow(lock: str, folder: Path) -> str:
    """The lock with the digests of the wheels that are there alone, sorted: the lock of the bundle."""
    held = {record.sha256 for record in record_folder(folder).files}
    entries = []
    for requirement, hashes in parse_lock(lock):
        kept = sorted(digest for digest in hashes if digest in held)
        if kept:
            entries.append(" \\\n".join([requirement, *(f"    --hash=sha256:{digest}" for digest in kept)]))
    return "\n".join(sorted(entries)) + "\n"


def parse_lock(lock: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Pinned requirement and digests, an entry a distribution."""
    joined = lock.replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return tuple(
        (line.split("--hash=")[0].strip(), tuple(re.findall(r"--hash=sha256:([0-9a-f]{64})", line))) for line in lines
    )


def _run(command: list[str], failure: str, text: str | None = None) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIME_LIMIT, input=text or ""
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentMissingError(failure, hint="check the network, then build again") from error
    if done.returncode:
        raise EnvironmentMissingError(
            failure,
            hint="check the network and the target's python.wheel_platforms and python.versions, then build again",
            details=tuple(done.stderr.strip().splitlines()[-12:]),
        )
    return done.stdout
