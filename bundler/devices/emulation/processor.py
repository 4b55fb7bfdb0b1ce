"""The description of the emulated processor for a Python that QEMU runs.

QEMU before 8.1 shows a program this machine's own /proc/cpuinfo. onnxruntime's processor
detection crashes on one of another make (SIGSEGV at import), and trusts some part numbers
for which instructions it may use (SIGILL when the emulated core lacks them). So each core
has its own view of an image: links to its libraries, and a /proc/cpuinfo that matches the
core. It has as many processors as this machine, for threads are pinned to them.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bundler.model.paths import real_path
from bundler.support.files import publish_folder


@dataclass(frozen=True, slots=True)
class Core:
    """A processor's entries in /proc/cpuinfo."""

    part: str
    variant: int
    revision: int
    features: str


_ARMV8 = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"
_ARMV82 = f"{_ARMV8} atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp"
# The cores of Raspberry Pi 3, 4 and 5, then of Arm servers, by their names in QEMU.
CORES = {
    "cortex-a53": Core("0xd03", 0, 4, _ARMV8),
    "cortex-a72": Core("0xd08", 0, 3, _ARMV8),
    "cortex-a76": Core("0xd0b", 4, 1, _ARMV82),
    "neoverse-n1": Core("0xd0c", 3, 1, _ARMV82),
}
# From a newer part number onnxruntime assumes instructions; from this one it asks.
ANY_CORE = CORES["cortex-a72"]


def view_of(image: Path, cpu: str | None) -> Path:
    """A folder for QEMU's `-L`: the image's libraries, and the processor `cpu`."""
    count = os.cpu_count() or 1
    view = real_path(image) / "views" / f"{cpu or 'any'}-{count}"
    if not view.is_dir():
        view.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=view.parent) as folder:
            _link_libraries(Path(folder, "view/lib"), image / "root/usr/lib")
            _describe(Path(folder, "view"), CORES.get(cpu or "", ANY_CORE), count)
            publish_folder(Path(folder, "view"), view)
    return view


def _link_libraries(folder: Path, libraries: Path) -> None:
    """Only the loader and what it loads; Python finds its own modules by its place.

    A link higher up, as of /usr, would show: resolving a path below it ends nowhere.
    """
    folder.mkdir(parents=True)
    for entry in libraries.glob("*linux*"):
        (folder / entry.name).symlink_to(f"../../../root/usr/lib/{entry.name}")


def _describe(view: Path, core: Core, count: int) -> None:
    processors = view / "sys/devices/system/cpu"
    processors.mkdir(parents=True)
    for name in ("possible", "present"):
        (processors / name).write_text(f"0-{count - 1}\n" if count > 1 else "0\n")
    (view / "proc").mkdir()
    entries = "\n".join(_cpuinfo(number, core) for number in range(count))
    (view / "proc/cpuinfo").write_text(entries)


def _cpuinfo(number: int, core: Core) -> str:
    fields = {
        "processor": number,
        "Features": core.features,
        "CPU implementer": "0x41",
        "CPU architecture": 8,
        "CPU variant": f"0x{core.variant:x}",
        "CPU part": core.part,
        "CPU revision": core.revision,
    }
    return "".join(f"{name}\t: {value}\n" for name, value in fields.items())
