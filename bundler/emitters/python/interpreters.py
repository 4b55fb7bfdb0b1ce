"""Python interpreters on this machine, and environments that have only a bundle's wheels."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bundler.emitters.python.wheels import BY_HARD_LINK, WHEELS_ALONE, fresh_environment, unpacked_beside
from bundler.environments.interpreters import find_interpreter
from bundler.environments.lockfiles import Lock, render_pins
from bundler.environments.making import interpreter_in
from bundler.environments.sandbox import Sandbox
from bundler.environments.sealing import find_altered, seal_folder
from bundler.environments.tools import ShutIn, run_uv
from bundler.execution.scratch import thin_out
from bundler.execution.temporary import temporary_folder
from bundler.model.digests import digest_json
from bundler.model.errors import EnvironmentMissingError, VerificationError
from bundler.model.paths import real_path
from bundler.support.files import publish_folder
from bundler.support.remembered import BEHIND, kept_at, recall, remember

Provide = Callable[[], AbstractContextManager[Path]]
"""Provides the folder of wheels, when an environment has to be made."""
Say = Callable[[str], None]
"""Shows a message to the user."""

_MARK = "complete"


def find_python(versions: Sequence[str], cache_root: Path) -> tuple[str, Path] | None:
    """The newest of `versions` that is installed here, with its interpreter; None when there is none.

    The search takes longer than a verification, so its result is kept for as long as the interpreter is unchanged.
    """
    memory = cache_root / "proofs" / f"python-{digest_json([list(versions), os.environ.get('PATH', '')])[:32]}.json"
    about = f"python {memory.stem}"
    found = _recall(kept_at(cache_root, "proofs", memory.name), about)
    if found is None:
        found = _search(versions)
        if found is not None:
            with contextlib.suppress(OSError):  # it is looked for again the next time
                remember(memory, [found[0], str(found[1]), _stamp(found[1])], about)
    return found


def _recall(memory: Path, about: str) -> tuple[str, Path] | None:
    kept = recall(memory, about)
    try:
        version, path, stamp = kept
        return (version, Path(path)) if _stamp(Path(path)) == stamp else None
    except (OSError, ValueError, TypeError):
        return None


def _search(versions: Sequence[str]) -> tuple[str, Path] | None:
    for version in sorted(versions, key=lambda text: int(text.split(".")[1]), reverse=True):
        path = find_interpreter(version)
        if path is not None:
            return version, path
    return None


def prepare_environment(python: Path, lock: Lock, provide: Provide, cache_root: Path, *, say: Say) -> Path:
    """The interpreter of an environment that holds exactly what `lock` names, installed with no index.

    It never changes once it is there, so it is kept by the digest of the lock and the interpreter: only the first
    verification of a set of wheels installs it. One that was altered is made anew, which `say` reports. Raises
    `EnvironmentMissingError` when the wheels do not install.
    """
    home = cache_root / "proofs" / digest_json([lock.digest, str(python), _stamp(python)])[:32]

    def make(draft: Path, wheels: Path, requirements: Path) -> None:
        fresh_environment(python, wheels, ("--require-hashes", "-r", str(requirements)), draft)

    return interpreter_in(_make_once(home, lock, provide, make, say))


@contextmanager
def install_bundle(
    environment: Path, wheels: Path, what: Path, cache_root: Path, sandbox: Sandbox | None = None
) -> Iterator[Path]:
    """The interpreter of a passing environment: what `prepare_environment` made (`environment` is its interpreter), and
    the bundle's package `what` installed into that, a folder or a wheel, by name, version, Python and platform, with
    nothing but the folder `wheels` to take from.

    Raises `VerificationError` when an installer refuses it.
    """
    proofs = cache_root / "proofs"  # beside the files that are linked to; else they are copied
    place = proofs if os.access(proofs, os.W_OK) else None
    with temporary_folder("draft", otherwise=place) as name:
        home, memory = Path(name) / "environment", Path(name) / "memory"
        if sandbox:
            shutil.copytree(_home_of(environment), home, symlinks=True)
        else:
            _link_folder(_home_of(environment), home)
        if BEHIND in environment.parts:  # a copy of a folder that nothing may be written to is such a folder
            _let_write(home)
        python = interpreter_in(home)
        # The backend is in the environment, for it is in the lock. uv's own cache would know a folder by its path,
        # and not notice that it was altered since.
        rules = ("--no-build-isolation", "--cache-dir", str(memory), *BY_HARD_LINK, "--python", str(python))
        try:
            shown = sandbox.showing((wheels, what)) if sandbox else None  # the bundle brings its build backend
            install(wheels, *rules, str(what), shut_in=ShutIn(home=Path(name), sandbox=shown))
        except EnvironmentMissingError as error:
            raise VerificationError(
                f"{what} does not install as its README says", details=error.details, hint="build it again"
            ) from error
        try:
            yield python
        finally:
            thin_out(home)


def _home_of(interpreter: Path) -> Path:
    return interpreter.parent.parent


def _let_write(home: Path) -> None:
    for place, _, _ in os.walk(home):
        Path(place).chmod(stat.S_IMODE(Path(place).stat().st_mode) | stat.S_IRWXU)


def _link_folder(source: Path, target: Path) -> None:
    """A copy to install into: its packages are links to those of `source`, and each other file has one more name, where
    the file system has that. To copy an environment's hundreds of folders takes longer than to install the bundle. What
    a bundle writes behind the links is found before `source` is used again.
    """
    target.mkdir()
    with os.scandir(source) as entries:
        for entry in entries:
            place = target / entry.name
            if not entry.is_dir(follow_symlinks=False):
                _link(entry.path, place)
            elif not _is_package(source, entry.name) or not _point(entry.path, place):
                _link_folder(Path(entry.path), place)


def _is_package(folder: Path, name: str) -> bool:
    """Whether it is code: uv takes a package for installed by a folder of metadata that is no link."""
    return folder.name == "site-packages" and not name.endswith(".dist-info")


def _point(source: str, target: Path) -> bool:
    try:
        target.symlink_to(source, target_is_directory=True)
    except OSError:  # Windows, without the right to
        return False
    return True


def _link(source: str, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def prepare_site(platform: str, version: str, lock: Lock, provide: Provide, cache_root: Path, *, say: Say) -> Path:
    """A folder with what `lock` names for another `platform` (uv's name) and Python `version`; kept in the same way.

    Raises `EnvironmentMissingError` when the wheels do not install.
    """
    home = cache_root / "proofs" / digest_json([lock.digest, platform, version])[:32]

    def make(draft: Path, wheels: Path, requirements: Path) -> None:
        target = ("--target", str(draft), "--python-platform", platform, "--python-version", version)
        with unpacked_beside(draft) as memory:
            install(wheels, *WHEELS_ALONE, *memory, *target, "--require-hashes", "-r", str(requirements))

    return _make_once(home, lock, provide, make, say)


def install(wheels: Path, *what: str, shut_in: ShutIn | None = None) -> None:
    """`uv pip install` that sees one folder and no index. Raises `EnvironmentMissingError`."""
    source = ("--quiet", "--no-config", "--offline", "--no-index", "--find-links", str(wheels))
    run_uv(("pip", "install", *source, *what), f"install from {wheels} alone", shut_in)


def _make_once(home: Path, lock: Lock, provide: Provide, make: Callable[[Path, Path, Path], None], say: Say) -> Path:
    """Make it aside, mark it, rename it: another build may be doing the same. Returns where it is."""
    for place in (home, home.parents[1] / BEHIND / "proofs" / home.name):
        if _is_intact(place):
            return place
    if home.exists():
        say(f"{find_altered(home, closed=True) or _MARK} in {home} was altered: the environment is made again")
    home.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder("draft", otherwise=home.parent) as name:
        draft, requirements = Path(name) / "environment", Path(name) / "requirements.lock"
        requirements.write_text(render_pins(lock.pins), "utf-8")
        with provide() as wheels:
            make(draft, wheels, requirements)
        (draft / _MARK).touch()
        seal_folder(draft, closed=True)
        publish_folder(draft, home, _is_intact)
    return home


def _is_intact(home: Path) -> bool:
    return (home / _MARK).is_file() and find_altered(home, closed=True) is None


def _stamp(python: Path) -> list[int]:
    """Changes when the interpreter is replaced by another."""
    stat = real_path(python).stat()
    return [stat.st_size, stat.st_mtime_ns]
