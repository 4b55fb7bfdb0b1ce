"""What can be seen of a machine is read from files, whatever they hold."""

import platform
from pathlib import Path

import pytest

from bundler.catalogue.machine import see_machine

CPU = """processor	: 0
vendor_id	: GenuineIntel
model name	: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz

processor	: 1
model name	: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
"""


def write(root: Path, path: str, content: bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content)


def test_the_board_the_gpu_and_the_cpu_name_themselves(tmp_path):
    write(tmp_path, "proc/cpuinfo", CPU.encode())
    write(tmp_path, "proc/device-tree/model", b"NVIDIA Jetson Orin\0")
    write(
        tmp_path, "proc/driver/nvidia/gpus/0000:01:00.0/information", b"Model: \t\t NVIDIA GeForce RTX 4090\nIRQ: 5\n"
    )
    assert see_machine(tmp_path).clues == (
        "NVIDIA Jetson Orin",
        "NVIDIA GeForce RTX 4090",
        "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz",
    )


def test_a_machine_that_tells_nothing(tmp_path):
    assert see_machine(tmp_path).clues == ()


def test_odd_files_are_no_obstacle(tmp_path):
    write(tmp_path, "proc/cpuinfo", b"\xff\xfe" * 1_000_000)
    (tmp_path / "proc/device-tree/model").mkdir(parents=True)
    assert see_machine(tmp_path).clues == ()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("Linux", "x86_64"), ("linux", "x64")),
        (("Darwin", "arm64"), ("macos", "arm64")),
        (("Windows", "AMD64"), ("windows", "x64")),
        (("Linux", "aarch64"), ("linux", "arm64")),
        (("Haiku", "riscv64"), ("", "")),
    ],
)
def test_kinds_of_machines_are_named_as_profiles_name_them(monkeypatch, tmp_path, names, expected):
    monkeypatch.setattr(platform, "system", lambda: names[0])
    monkeypatch.setattr(platform, "machine", lambda: names[1])
    machine = see_machine(tmp_path)
    assert (machine.system, machine.architecture) == expected
