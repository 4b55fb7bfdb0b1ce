"""A Python of another processor, run on this machine by QEMU's user emulation.

A bundle for a Raspberry Pi can then be tried where it is made. No chroot, root right
or binfmt handler is needed: the distribution's packages for that processor are
unpacked into a folder, and QEMU runs the Python in it with `-L`, which looks every
absolute path up in that folder first and on this machine second. Times under it
mean nothing; outputs are valid. Only Python itself is emulated: a program it starts is
this machine's own, so `subprocess` with `sys.executable` fails (`fork` works).
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bundler.devices.emulation.packages import DEBIAN_NAMES, EmulationError, download, run, unpack
from bundler.devices.emulation.processor import CORES, view_of
from bundler.model.paths import real_path
from bundler.support.files import publish_folder
from bundler.support.remembered import BEHIND

# Raise it when the way an image is made changes, so that older ones are not used.
RECIPE = 1
PACKAGES = ("python3", "libstdc++6")
# The newest 2.x that uv has a name for; wheels for an older one run on a newer one.
UV_NEWEST_GLIBC = 40
PROBE = "import ctypes, platform, sqlite3, ssl; print(platform.machine())"


@dataclass(frozen=True, slots=True)
class EmulatedPython:
    """Run `[*argv, script, ...]` with `environment` laid over this process's own.

    Install wheels for it into a folder with `uv pip install --target FOLDER
    --python-platform uv_platform --python-version version`, and pass the folder in
    PYTHONPATH.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    version: str
    uv_platform: str


def find_emulator(architecture: str) -> Path | None:
    """QEMU's user emulator; both of its packages will do."""
    names = (f"qemu-{architecture}-static", f"qemu-{architecture}")
    found = next(filter(None, map(shutil.which, names)), None)
    return Path(found) if found else None


def image_ready(cache_root: Path, architecture: str) -> Path | None:
    """The image made earlier, if there is one. It is whole: it got its name last."""
    image = _image_path(cache_root, architecture)
    return image if image.is_dir() else None


def find_images(cache: Path, architecture: str) -> Path:
    """The folder of images of a cache, or of the read-only one behind it when that alone has this one."""
    own, behind = cache / "images", cache / BEHIND / "images"
    only_behind = image_ready(own, architecture) is None and image_ready(behind, architecture) is not None
    return behind if only_behind else own


def make_image(cache_root: Path, architecture: str, report: Callable[[str], None]) -> Path:
    """Make the image, or take the one that another process makes meanwhile."""
    if ready := image_ready(cache_root, architecture):
        return ready
    _check_tools(architecture)
    cache_root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=real_path(cache_root)) as folder:
        packages = download(Path(folder, "apt"), architecture, PACKAGES, report)
        report(f"Unpacking {len(packages)} {architecture} packages")
        image = _assemble(Path(folder, "image"), architecture, packages)
        _probe(image, architecture)
        publish_folder(image, final := _image_path(cache_root, architecture))
        return final


def emulated_python(image: Path, cpu: str | None) -> EmulatedPython:
    """The image's Python, on the core named `cpu` or on one that has every instruction."""
    if cpu is not None and cpu not in CORES:
        raise EmulationError(f"unknown core {cpu!r}; known: {', '.join(CORES)}")
    about: dict[str, str] = json.loads((image / "image.json").read_text("utf-8"))
    core = ("-cpu", cpu or "max")  # always given, so that QEMU_CPU cannot differ from the view
    # Libraries and modules of this machine's processor would be loaded otherwise.
    unset = ("-U", "LD_PRELOAD", "-U", "LD_LIBRARY_PATH", "-U", "PYTHONHOME")
    python = real_path(image) / "root/usr/bin" / f"python{about['python']}"
    emulator = (_emulator(about["architecture"]), "-L", str(view_of(image, cpu)))
    return EmulatedPython(
        argv=(*emulator, *core, *unset, str(python)),
        # Bytecode is kept, since compiling modules is most of an emulated start.
        environment={
            "PYTHONNOUSERSITE": "1",
            "PYTHONUTF8": "1",
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(real_path(image) / "bytecode"),
        },
        version=about["python"],
        uv_platform=_uv_platform(about["architecture"], about["glibc"]),
    )


def _image_path(cache_root: Path, architecture: str) -> Path:
    """Named by what decides its content, of which the distribution's release is a part."""
    release = platform.freedesktop_os_release()
    named = (release.get("ID"), release.get("VERSION_ID"), release.get("VERSION_CODENAME"))
    key = hashlib.sha256(json.dumps([RECIPE, architecture, PACKAGES, named]).encode())
    return cache_root / f"python-{architecture}-{key.hexdigest()[:12]}"


def _uv_platform(architecture: str, glibc: str) -> str:
    major, _, minor = glibc.partition(".")
    return f"{architecture}-manylinux_{major}_{min(int(minor), UV_NEWEST_GLIBC)}"


def _emulator(architecture: str) -> str:
    emulator = find_emulator(architecture)
    if emulator is None:
        raise EmulationError(f"qemu-{architecture}-static is not on PATH: apt-get install qemu-user-static")
    return str(emulator)


def _check_tools(architecture: str) -> None:
    if architecture not in DEBIAN_NAMES:
        known = ", ".join(DEBIAN_NAMES)
        raise EmulationError(f"no image for {architecture!r}; known: {known}")
    _emulator(architecture)
    missing = [tool for tool in ("apt-get", "dpkg-deb", "tar") if shutil.which(tool) is None]
    if missing:
        raise EmulationError(
            f"{', '.join(missing)} not on PATH: the image is made of Debian packages: "
            "make it on Debian or Ubuntu, or in a container of one"
        )


def _assemble(image: Path, architecture: str, packages: list[Path]) -> Path:
    root = image / "root"
    (root / "usr/lib").mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")  # first: packages hold files under either name
    for package in packages:
        unpack(package, root)
    libc = next(p.name for p in packages if p.name.startswith("libc6_"))
    about = {
        "architecture": architecture,
        "python": (root / "usr/bin/python3").readlink().name.removeprefix("python"),
        "glibc": libc.removeprefix("libc6_").partition("-")[0],
        "packages": [p.name for p in packages],
    }
    (image / "image.json").write_text(json.dumps(about, indent=1), "utf-8")
    return image


def _probe(image: Path, architecture: str) -> None:
    printed = run((*emulated_python(image, None).argv, "-I", "-B", "-c", PROBE))
    if printed.decode().strip() != architecture:
        raise EmulationError(f"the image's Python says it runs on {printed.decode().strip()}")
