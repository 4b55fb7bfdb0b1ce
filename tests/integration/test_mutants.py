"""Whatever is wrong with a model: a bundle that answers as the model does, or one sentence, the same each time.

The mutants follow from their numbers. What they found has tests with names in `tests/unit/stages/test_bad_models.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

from bundler.model.errors import BundlerError, GateError, ModelError
from bundler.model.events import Reporter, ignore
from bundler.pipeline.build import check_gates
from bundler.pipeline.prepare import prepare
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.workspace import Workspace, open_workspace
from tests.support.mutants import Mutant, write_mutant
from tests.support.real_models import fetch_example

TARGET = "linux-x64"
FEW = range(40)
MANY = [range(start, start + 150) for start in range(1000, 2500, 150)]
REAL = [range(start, start + 50) for start in range(0, 200, 50)]
LONGEST = 1000
"""Characters of a line that an error shows."""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with open_workspace(str(tmp_path / "cache"), jobs=1) as opened:
        yield opened


def run_steps(mutant: Mutant, workspace: Workspace) -> None:
    """All that a build does before it writes a bundle: inspect, record, optimise, compare, judge."""
    request = BuildRequest(model=mutant.path, target=TARGET, output=mutant.path.parent / "out", prove=False)
    (prepared,) = prepare(request, workspace, ignore).parts
    outcomes = workspace.executor.execute(prepared.plan.steps, prepared.sources, Reporter(ignore, prepared.title))
    check_gates(prepared, outcomes, workspace, ignore)


def end(mutant: Mutant, workspace: Workspace) -> BundlerError | None:
    """How a mutant ended."""
    try:
        run_steps(mutant, workspace)
    except BundlerError as error:
        return error
    return None


def find_complaint(mutant: Mutant, workspace: Workspace) -> str | None:
    """What is wrong with how a mutant ended; None where all is well."""
    error, again = end(mutant, workspace), end(mutant, workspace)
    if error is None and again is None:
        return None
    if error is None or again is None or error.to_json() != again.to_json():
        return f"{mutant.story}: not the same twice: {error!a}, {again!a}"
    lines = (error.message, error.hint or "", *error.details)
    if not isinstance(error, ModelError | GateError):
        return f"{mutant.story}: exit code {error.exit_code}: {lines!a}"
    if not error.hint or any("\n" in line or len(line) > LONGEST for line in lines):
        return f"{mutant.story}: not one sentence with a hint: {lines!a}"
    return None


def list_complaints(numbers: range, folder: Path, workspace: Workspace, **options: object) -> list[str]:
    mutants = (write_mutant(number, folder / f"mutant-{number}", **options) for number in numbers)  # type: ignore[arg-type]
    return [complaint for mutant in mutants if (complaint := find_complaint(mutant, workspace))]


@pytest.mark.quick
def test_mutants_end_well(tmp_path: Path, workspace: Workspace) -> None:
    assert list_complaints(FEW, tmp_path, workspace) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("numbers", MANY, ids=str)
def test_many_mutants_end_well(tmp_path: Path, workspace: Workspace, numbers: range) -> None:
    assert list_complaints(numbers, tmp_path, workspace) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("numbers", REAL, ids=str)
def test_mutants_of_real_models_end_well(tmp_path: Path, workspace: Workspace, numbers: range) -> None:
    light = Path(onnx.__file__).parent / "backend/test/data/light"
    trained = fetch_example("content_type", tmp_path / "magika.onnx")
    paths = (trained, light / "light_squeezenet.onnx", light / "light_shufflenet.onnx")
    bases: dict[str, Callable[[], ModelProto]] = {path.stem: lambda path=path: onnx.load(path) for path in paths}  # type: ignore[misc]
    assert list_complaints(numbers, tmp_path, workspace, bases=bases) == []
