"""Small files that ask for much end soon, with the same code and one sentence each time, and leave nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import ModelProto

from tests.support import hostile_models, models
from tests.support.command_line import CommandLine, list_all
from tests.unit.execution.test_limits import LINUX

MODEL, STAGE = 3, 6

MEMORY = "it required more memory than a step may use (BUNDLER_MEMORY_LIMIT)"
HOSTILE: dict[str, tuple[Callable[[], ModelProto], str]] = {
    "functions": (lambda: hostile_models.nested_functions(depth=30, calls=2), "expand to 536,870,912 nodes"),
    "input": (lambda: hostile_models.large_input(1_000_000, 1_000_000), "the inputs would have 3725.3 GiB"),
    "constant": (lambda: hostile_models.large_constant(1_000_000, 1_000_000), MEMORY),
    "answer": (lambda: hostile_models.large_answer(1_000_000, 1_000_000), MEMORY),
    "growing": (hostile_models.growing_loop, MEMORY),
}


@pytest.fixture
def limited(bundler: CommandLine, tmp_path: Path) -> CommandLine:
    (tmp_path / "temporary").mkdir()
    limits = {"BUNDLER_MEMORY_LIMIT": "1G", "TMPDIR": str(tmp_path / "temporary")}
    return dataclasses.replace(bundler, env=limits, cwd=tmp_path)


@LINUX
@pytest.mark.parametrize("kind", HOSTILE)
def test_what_asks_for_too_much_is_a_bad_model_each_time(
    limited: CommandLine, here: tuple[str, ...], tmp_path: Path, kind: str
) -> None:
    make, sentence = HOSTILE[kind]
    path = models.save(make(), tmp_path, f"{kind}.onnx")
    errors = set()
    for _ in range(2):
        answer = limited.run("build", path, *here, "--no-prove", "--output", tmp_path / "out", timeout=120)
        errors.add(answer.expect(MODEL).err[answer.err.index("error: ") :])
    assert len(errors) == 1
    assert sentence in errors.pop()
    assert list_all(tmp_path / "out") == []
    assert list_all(tmp_path / "temporary") == []


@pytest.mark.parametrize("make", [hostile_models.endless_loop, hostile_models.endless_empty_loop])
def test_a_step_without_end_is_ended(
    limited: CommandLine, here: tuple[str, ...], tmp_path: Path, make: Callable[[], ModelProto]
) -> None:
    path = models.save(make(), tmp_path, f"{make.__name__}.onnx")
    patient = dataclasses.replace(limited, env={**limited.env, "BUNDLER_TIME_LIMIT": "12"})
    answer = patient.run("build", path, *here, "--no-prove", "--output", tmp_path / "out", timeout=120)
    assert "did not finish within 12 s and was terminated" in answer.expect(STAGE).err
    assert "BUNDLER_TIME_LIMIT=SECONDS" in answer.err
    assert list_all(tmp_path / "out") == []


@pytest.mark.quick
def test_inspect_reads_no_more_than_there_is(limited: CommandLine, tmp_path: Path) -> None:
    path = models.save(hostile_models.nested_functions(depth=30, calls=2), tmp_path)
    assert "expand to 536,870,912 nodes" in limited.run("inspect", path, timeout=60).expect(MODEL).err
    path = models.save(hostile_models.large_input(1_000_000, 1_000_000), tmp_path)
    limited.run("inspect", path, timeout=60).expect(0)
