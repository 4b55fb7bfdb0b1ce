"""What a program on the Java virtual machine says of itself is believed only where it can be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bundler.devices.contract import Outcome
from bundler.emitters.jvm.launching import open_jar, read_ending
from bundler.model.errors import VerificationError

REPORT = json.dumps({"variants": [{"component": "model", "variant": "cpu", "status": "passed"}]})


@pytest.mark.parametrize("code", [0, 1])
def test_a_report_is_read(code: int) -> None:
    ending = read_ending(Outcome(code=code, output=REPORT, errors="", seconds=1.0))
    assert ending.outcomes["model", "cpu"]["status"] == "passed"
    assert ending.failure is None


@pytest.mark.parametrize(
    ("code", "said"),
    [(7, "it exited with code 7: boom"), (134, "code 134"), (-9, "terminated by SIGKILL"), (None, "did not finish")],
)
def test_a_program_that_ends_badly_after_its_report_has_not_reported(code: int | None, said: str) -> None:
    ending = read_ending(Outcome(code=code, output=REPORT, errors="boom", seconds=1.0))
    assert ending.outcomes == {}
    assert said in str(ending.failure)


@pytest.mark.parametrize(
    "output", ["", "{", "[]", "null", '{"variants": 1}', '{"variants": [{}]}', '{"variants": [1]}']
)
def test_what_is_no_report_is_none(output: str) -> None:
    assert read_ending(Outcome(code=0, output=output, errors="", seconds=1.0)).outcomes == {}


@pytest.mark.parametrize("names", [(), ("a.jar",), ("a.jar", "a-sources.jar", "b.jar"), ("a.jar", "b-sources.jar")])
def test_a_folder_with_other_jars_is_no_bundle(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(VerificationError):
        open_jar(tmp_path)


@pytest.mark.parametrize("code", [0, 1])
def test_a_stray_line_before_the_report_is_no_report(code: int) -> None:
    assert read_ending(Outcome(code=code, output=f"hello\n{REPORT}", errors="", seconds=1.0)).outcomes == {}
