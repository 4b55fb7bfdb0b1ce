"""A finished web bundle, opened: its package as a folder, packed or not, and the configuration of its loader."""

from __future__ import annotations

import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bundler.emitters.reports import Recorded, read_recorded_sets
from bundler.execution.temporary import temporary_folder
from bundler.model.codec import parse_json
from bundler.model.confinement import MAX_PARTS
from bundler.model.errors import VerificationError
from bundler.model.paths import real_path
from bundler.model.runtime import RuntimeConfig
from bundler.support.remembered import read_bounded
from bundler.support.text import describe_fault
from bundler.verification.configuration import MAX_BYTES, load_config

CONFIG = "payload/runtime.json"
_COPY = re.compile(rb'^export const config = JSON\.parse\((".*")\);$', re.MULTILINE)
"""The configuration in `runtime.js`: JSON as a text of JavaScript, which is one of JSON as well."""

_PACKED_ROOT = "package"
"""The folder in which npm packs a package."""

_SHARE = 0.9
"""Maximum share of the free disk for an unpacked archive, which can be a thousand times larger than packed."""

_BROKEN = (OSError, EOFError, ValueError, tarfile.TarError, zlib.error)
"""Exceptions that reading a damaged bundle may raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPackage:
    """The folder of an npm package, what its `runtime.json` says, and the golden sets in it by component."""

    root: Path
    config: RuntimeConfig
    recorded: Mapping[str, Recorded]


@contextmanager
def open_package(bundle: Path) -> Iterator[OpenPackage]:
    """The package of `bundle`; a packed one is unpacked for as long as the block runs.

    Raises `VerificationError` when the folder is no whole web bundle, or its configuration asks for what bundler never
    writes.
    """
    with ExitStack() as stack:
        try:
            root = real_path(bundle) if (bundle / CONFIG).is_file() else _unpack(bundle, stack)
        except _BROKEN as error:
            raise _broken(bundle, error) from error
        config = load_config(bundle, root / CONFIG)
        try:
            _check_copy(root)
        except _BROKEN as error:
            raise _broken(bundle, error) from error
        yield OpenPackage(root=root, config=config, recorded=read_recorded_sets((root / CONFIG).parent, config))


def _broken(bundle: Path, error: Exception) -> VerificationError:
    return VerificationError(
        f"{bundle} is not a complete web bundle", details=(describe_fault(error),), hint="build it again"
    )


def _check_copy(root: Path) -> None:
    """Raise `ValueError` where the loader has another configuration than `payload/runtime.json`, which is checked."""
    found = _COPY.search(read_bounded(root / "runtime.js", MAX_BYTES))
    if found is None or parse_json(parse_json(found[1])) != parse_json(read_bounded(root / CONFIG, MAX_BYTES)):
        raise ValueError(f"runtime.js has another configuration than {CONFIG}")


def _unpack(bundle: Path, stack: ExitStack) -> Path:
    """Unpack the bundle's archive until `stack` ends. Links that lead out, devices, paths that lead out or go too deep,
    and more than the disk should hold are refused.
    """
    (archive,) = bundle.glob("*.tgz")
    folder = temporary_folder("package")
    place = Path(stack.enter_context(folder))
    left = int(shutil.disk_usage(place).free * _SHARE)
    with tarfile.open(archive, "r:gz") as stream:
        for member in stream:
            left -= member.size
            _refuse_member(member, left)
            stream.extract(member, place, filter="data")
    return (place / _PACKED_ROOT).resolve(strict=True)


def _refuse_member(member: tarfile.TarInfo, left: int) -> None:
    if left < 0:
        raise ValueError(f"unpacked it is larger than {_SHARE:.0%} of the free disk")
    if member.name.count("/") >= MAX_PARTS:
        raise ValueError(f"{member.name[:80]!r}: nested too deeply")
