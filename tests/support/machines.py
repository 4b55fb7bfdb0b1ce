"""The same build as two users on two machines would start it, and a search for what their machines left in a bundle."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import io
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import uv

from tests.support.command_line import CommandLine

MARK = "qzx-builder"
"""Stands in every name that a machine has; long enough that compressed bytes do not hold it by chance."""


def build_elsewhere(bundler: CommandLine, number: int, folder: Path, model: Path, *options: str) -> Path:
    """A bundle built by another user, in another folder, with an empty cache, under another hash seed and hour.

    `{in}` in the options is the folder of the model. Only what is fetched by digest is shared, through uv's own cache.
    """
    place = folder / (f"{MARK}-machine" if number else f"{MARK}-another machine with a longer name")
    shutil.copytree(model.parent, place / "in")
    names = {name: place / f"{MARK}-{name.lower()}" for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    for path in names.values():
        path.mkdir()
    user = f"{MARK}-user-{number}"
    env = {
        **{name: str(path) for name, path in names.items()},
        **dict.fromkeys(("USER", "LOGNAME", "USERNAME", "HOSTNAME"), user),
        "UV_CACHE_DIR": _find_uv_cache(),
        "PYTHONHASHSEED": str(7 * number),
        "TZ": f"Etc/GMT-{number * 9}",
    }
    given = [option.replace("{in}", str(place / "in")) for option in options]
    with tempfile.TemporaryDirectory(prefix=f"{MARK}-") as scratch:  # short: a browser's socket lies there
        env |= {"TMPDIR": scratch}
        program = dataclasses.replace(bundler, cache=place / f"{MARK}-cache", env=env, cwd=place)
        return place / program.build(place / "in" / model.name, *given, "--output", "out")["bundle"]


@functools.cache
def _find_uv_cache() -> str:
    done = subprocess.run([uv.find_uv_bin(), "cache", "dir"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def find_traces(bundle: Path, *words: str) -> list[str]:
    """Files of a bundle, and members of archives in them, that hold one of `words`, or the name of any machine."""
    wanted = [encoded for word in (MARK, *words) for encoded in (word.encode(), word.encode("utf-16-le"))]
    return [
        name
        for path in sorted(bundle.rglob("*"))
        for name, content in _open(str(path.relative_to(bundle)), path.read_bytes() if path.is_file() else b"")
        if any(word in content or word in name.encode() for word in wanted)
    ]


def _open(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """A file and all that is packed into it."""
    yield name, content
    for member, inside in _unpack(content):
        yield from _open(f"{name}!{member}", inside)


def _unpack(content: bytes) -> Iterator[tuple[str, bytes]]:
    if content.startswith(b"\x1f\x8b"):
        yield "gz", gzip.decompress(content)
    elif content[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for entry in archive:
                file = archive.extractfile(entry)
                yield f"{entry.name} of {entry.uname} {entry.gname}", file.read() if file else b""
    elif zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield name, archive.read(name)
