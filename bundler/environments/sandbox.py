"""Runs a program without network and with access to only the given files of the user, mostly read-only.

bubblewrap makes it, from namespaces that Linux gives to every user where the administrator lets it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bundler.model.errors import EnvironmentMissingError
from bundler.model.paths import real_path
from bundler.support.processes import run_process

_PROGRAM: Final = "bwrap"
_INSTALL: Final = "install bubblewrap (`apt-get install bubblewrap`, `dnf install bubblewrap`), or omit --sandbox"
_ROOTS: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Folders of the system, or links to them in /usr."""
_SYSTEM: Final = (
    *("/usr", "/opt", "/nix/store", "/gnu/store", "/sys", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"),
    *("/etc/alternatives", "/etc/localtime", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/fonts"),
    *("/etc/OpenCL", "/etc/vulkan"),
)
_DEVICES: Final = ("/dev/dri", "/dev/kfd", "/dev/accel", "/dev/dxg")
_TEMPORARY: Final = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - not written to
_SITES: Final = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """How programs are shut in. `visible` are the files and folders that they may read beside the system's own."""

    program: Path
    visible: tuple[Path, ...] = ()

    def showing(self, paths: Iterable[Path]) -> Sandbox:
        """The same with more to read; a folder with the user's home in it, or of all users' files, shows no more than
        its plain files.
        """
        shown = dict.fromkeys((*self.visible, *(path for given in paths for path in _narrow(given.absolute()))))
        return Sandbox(program=self.program, visible=tuple(shown))

    def wrap(self, command: Sequence[str], *, writable: Sequence[Path]) -> tuple[str, ...]:
        """The command that runs `command` inside. It may write to `writable`, of which the first is its home.

        All that runs inside ends with the thread that starts it, and has no terminal, into which it could type.
        """
        home = str(writable[0])
        homes = {"HOME": home, "TMPDIR": home, "XDG_CACHE_HOME": f"{home}/.cache", "XDG_CONFIG_HOME": f"{home}/.config"}
        return (
            str(self.program),
            *("--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session"),
            *_list_system(),
            *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),  # noqa: S108 - its own, empty
            *_flags("--dev-bind-try", _devices()),
            *_flags("--ro-bind-try", self.visible),
            *_flags("--bind", writable),
            *("--remount-ro", "/"),
            *(part for name, value in homes.items() for part in ("--setenv", name, value)),
            *("--", *command),
        )


def find_sandbox(scratch: Path) -> Sandbox:
    """The sandbox of this machine, tried once; `scratch` is a folder that may be written to.

    Raises `EnvironmentMissingError` where there is none.
    """
    found = shutil.which(_PROGRAM) if sys.platform == "linux" else None
    if found is None:
        where = "bubblewrap is not installed" if sys.platform == "linux" else "the sandbox requires Linux"
        raise EnvironmentMissingError(f"--sandbox is not available on this machine: {where}", hint=_INSTALL)
    sandbox = Sandbox(program=Path(found))
    command = sandbox.wrap(("/bin/sh", "-c", ":"), writable=(scratch,))
    done = run_process(command, text=True, errors="replace", env={"PATH": "/usr/bin"})
    if done.returncode:
        raise EnvironmentMissingError(
            "--sandbox: bubblewrap cannot make a sandbox on this machine",
            details=tuple(done.stderr.strip().splitlines()[-2:]),
            hint="this system or container does not allow user namespaces: allow them "
            "(`sysctl kernel.unprivileged_userns_clone=1`; AppArmor), or omit --sandbox",
        )
    return sandbox


def python_folders(python: Path) -> tuple[Path, ...]:
    """What an interpreter needs to read to start: its environment, and the installation that this is made from.

    Of a folder with no more than a link to it (`~/.local`, which has keys too), programs and libraries.
    """
    links = [python.absolute()]
    while links[-1].is_symlink():
        links.append(links[-1].parent / links[-1].readlink())
    folders = [folder for link in links for folder in _around(link)] + [real_path(python).parent.parent]
    return tuple(dict.fromkeys(folder for folder in folders if not real_path(folder).is_relative_to("/usr")))


def own_folders() -> tuple[Path, ...]:
    """What bundler's own interpreter, and the packages that it finds, need to read."""
    sites = [Path(entry) for entry in sys.path if Path(entry).name in _SITES]
    package = Path(__file__).parents[1]
    return tuple(dict.fromkeys((*python_folders(Path(sys.executable)), Path(sys.base_prefix), *sites, package)))


def _around(link: Path) -> tuple[Path, ...]:
    prefix = link.parent.parent
    return (prefix,) if (prefix / "pyvenv.cfg").is_file() else (link.parent, *sorted(prefix.glob("lib/python3*")))


def _crowded() -> Iterator[Path]:
    """Folders with more in them than one project's files: the user's home, by every account, and temporary ones, with
    the sockets of the user's other programs.
    """
    yield Path(os.path.expanduser("~"))  # noqa: PTH111 - a user without a home has `~` itself, and no error
    with contextlib.suppress(ImportError, KeyError):  # not POSIX; a number without a name
        import pwd  # noqa: PLC0415

        yield Path(pwd.getpwuid(os.getuid()).pw_dir)
    yield from map(Path, _TEMPORARY)


def _narrow(path: Path) -> Iterator[Path]:
    if path.is_dir() and any(real_path(folder).is_relative_to(real_path(path)) for folder in _crowded()):
        yield from (item for item in sorted(path.iterdir()) if item.is_file() and not item.name.startswith("."))
    else:
        yield path


def _list_system() -> Iterator[str]:
    for name in _ROOTS:
        path = Path(name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), name)
        elif path.is_dir():
            yield from ("--ro-bind", name, name)
    yield from _flags("--ro-bind-try", map(Path, _SYSTEM))


def _devices() -> Iterator[Path]:
    yield from (path for name in _DEVICES if (path := Path(name)).exists())
    yield from sorted(Path("/dev").glob("nvidia*"))


def _flags(flag: str, paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        yield from (flag, str(path), str(path))
