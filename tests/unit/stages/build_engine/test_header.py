"""An engine that is empty, truncated, of another library or for other devices is never shipped."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from bundler.model.errors import StageError
from bundler.stages.build_engine.header import HEADER_BYTES, check_engine

VERSION = "1.7.1.116"


def write_engine(folder: Path, *, magic: bytes = b"vtrt", size: int = 200, mask: int = 8, length: int = 200) -> Path:
    head = struct.pack("<4s12xQ4B4sI", magic, size, 1, 7, 1, 116, b"vtrt", mask)
    path = folder / "engine.bin"
    path.write_bytes(head.ljust(length, b"\1")[:length])
    return path


def test_the_header_is_what_a_provider_reads(tmp_path: Path) -> None:
    path = write_engine(tmp_path)
    assert check_engine(path, VERSION, 8) == path.read_bytes()[:HEADER_BYTES]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"length": 0}, "it has 0 bytes"),
        ({"length": 64}, "it has 64 bytes"),
        ({"length": 199}, "it has 199 bytes, and its header declares 200"),
        ({"magic": b"ftrt"}, "it begins with b'ftrt'"),
        ({"mask": 4}, "for the devices 0x4, not 0x8"),
    ],
)
def test_what_was_not_asked_for_is_refused(tmp_path: Path, changes: dict[str, int], reason: str) -> None:
    with pytest.raises(StageError, match="wrote an invalid engine") as caught:
        check_engine(write_engine(tmp_path, **changes), VERSION, 8)  # type: ignore[arg-type]
    assert reason in caught.value.details[0]


def test_an_engine_of_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StageError) as caught:
        check_engine(write_engine(tmp_path), "1.8.0.1", 8)
    assert "built by TensorRT for RTX 1.7.1.116, not 1.8.0.1" in caught.value.details[0]
