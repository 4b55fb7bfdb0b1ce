"""The user's own metric: a function or a command, with errors in the user's terms."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from bundler.model.errors import BundlerError, StageError, UsageError
from bundler.model.signature import Port, Signature, ValueType
from bundler.model.stage import StageResult
from bundler.onnxkit.golden import Sample, read_golden, write_index, write_sample
from bundler.stages.measure_metric.archives import file_name, write_archive
from bundler.stages.measure_metric.spec import SPEC
from tests.support import models
from tests.support.stage_calls import call_stage, record

AGREEMENT = """
import numpy as np
from beside import FACTOR

def agreement(samples):
    assert len(samples) == 3
    first = [sample.name for sample in samples]
    same = [float(s.answers["scores"].argmax() == s.reference["scores"].argmax()) for s in samples]
    assert first == [s.name for s in samples] and all("image" in s.inputs for s in samples)
    return np.mean(same) * FACTOR

def broken(samples):
    for sample in samples:
        raise KeyError("labels")

def nothing(samples):
    pass

def unlimited(samples):
    return float("nan")

def leave(samples):
    raise SystemExit(0)

THRESHOLD = 3
"""

JUDGE = """
import pathlib, sys
import numpy as np

inputs, reference, answers = map(pathlib.Path, sys.argv[1:4])
files = sorted(path.name for path in answers.iterdir())
assert files == sorted(path.name for path in reference.iterdir()) == sorted(path.name for path in inputs.iterdir())
print("samples", len(files))
errors = [np.abs(np.load(answers / f)["scores"] - np.load(reference / f)["scores"]).max() for f in files]
print(1 - max(errors))
print()
"""


@pytest.fixture
def metric(tmp_path: Path) -> Path:
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "beside.py").write_text("FACTOR = 100\n")
    (tmp_path / "user" / "metric.py").write_text(AGREEMENT)
    return tmp_path / "user" / "metric.py"


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return record(models.save(models.cnn(), tmp_path / "whole"), tmp_path / "golden", count=3)


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    model = models.cnn()
    model.graph.initializer[4].CopyFrom(models.tensor("w3", models.weights(5, 16, seed=99)))
    return models.save(model, tmp_path / "changed")


def measure(model: Path, golden: Path, output: Path, *, metric: Path | None = None, **options: Any) -> StageResult:
    inputs = {"model": model, "golden": golden} | ({"metric": metric} if metric else {})
    return call_stage("measure_metric", output, inputs, **options)


def test_a_function_measures_the_model_and_the_original_one(
    tmp_path: Path, changed: Path, golden: Path, metric: Path
) -> None:
    facts = measure(changed, golden, tmp_path / "out", metric=metric, python="agreement").facts
    assert (facts["reference"], facts["samples"]) == (100.0, 3)
    assert 0 <= facts["value"] < 100


def test_a_changed_file_and_what_it_imports_are_read_again(
    tmp_path: Path, changed: Path, golden: Path, metric: Path
) -> None:
    before = measure(changed, golden, tmp_path / "a", metric=metric, python="agreement").facts
    metric.with_name("beside.py").write_text("FACTOR = 1\n# changed\n")
    after = measure(changed, golden, tmp_path / "b", metric=metric, python="agreement").facts
    assert (before["reference"], after["reference"]) == (100.0, 1.0)
    assert SPEC.volatile
    assert str(metric.parent) not in sys.path


def test_a_command_reads_folders_and_prints_a_number(tmp_path: Path, changed: Path, golden: Path) -> None:
    judge = tmp_path / "judge.py"
    judge.write_text(JUDGE)
    command = [sys.executable, str(judge), "{inputs}", "{reference}", "{answers}"]
    facts = measure(changed, golden, tmp_path / "out", command=command).facts
    assert facts["reference"] == 1.0
    assert facts["value"] < 1.0


def test_a_metric_that_is_the_same_for_wrong_outputs_is_a_warning(
    tmp_path: Path, changed: Path, golden: Path, metric: Path
) -> None:
    metric.write_text("""
import numpy as np

def always(samples):
    return sum(1.0 for _ in samples) / len(samples)

def error(samples):
    return -distance(samples)

def endless(samples):
    return 10 ** 400

def distance(samples):
    return -max(float(np.abs(s.answers["scores"] - s.reference["scores"]).max()) for s in samples)
""")
    constant = measure(changed, golden, tmp_path / "a", metric=metric, python="always").notes
    assert [(note.level, "cannot distinguish correct outputs from wrong" in note.text) for note in constant] == [
        ("warning", True)
    ]
    assert measure(changed, golden, tmp_path / "b", metric=metric, python="distance").notes == ()
    lower = measure(changed, golden, tmp_path / "lower", metric=metric, python="error").notes
    assert "higher must be better" in lower[0].text
    with pytest.raises(UsageError, match="not a number"):
        measure(changed, golden, tmp_path / "endless", metric=metric, python="endless")
    judge = tmp_path / "judge.py"
    judge.write_text("print(0.5)")
    command = [sys.executable, str(judge), "{answers}"]
    assert "cannot distinguish" in measure(changed, golden, tmp_path / "c", command=command).notes[0].text
    judge.write_text(JUDGE)
    command = [sys.executable, str(judge), "{inputs}", "{reference}", "{answers}"]
    assert measure(changed, golden, tmp_path / "d", command=command).notes == ()


def failure(tmp_path: Path, changed: Path, golden: Path, **options: Any) -> str:
    with pytest.raises((UsageError, StageError)) as caught:
        measure(changed, golden, tmp_path / "out", **options)
    return tell(caught.value, tmp_path)


def tell(error: BundlerError, folder: Path) -> str:
    text = "\n".join((error.message, *error.details, f"hint: {error.hint}"))
    return text.replace(str(folder), "…").replace(sys.executable, "python")


@pytest.mark.parametrize("name", ["broken", "nothing", "unlimited", "leave", "THRESHOLD", "agrement"])
def test_a_function_that_gives_no_number(  # noqa: PLR0917 - fixtures
    tmp_path: Path, changed: Path, golden: Path, metric: Path, name: str, snapshot: SnapshotAssertion
) -> None:
    assert failure(tmp_path, changed, golden, metric=metric, python=name) == snapshot


def test_a_file_that_is_no_python(
    tmp_path: Path, changed: Path, golden: Path, metric: Path, snapshot: SnapshotAssertion
) -> None:
    metric.write_text("def agreement(samples)\n    return 1\n")
    assert failure(tmp_path, changed, golden, metric=metric, python="agreement") == snapshot


@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "-c", "import sys; print(5, file=sys.stderr); sys.exit('no \x1b[31m labels')", "{answers}"],
        [sys.executable, "-c", "print('accuracy: 0.9')", "{answers}"],
        [sys.executable, "-c", "", "{answers}"],
        [sys.executable, "-c", "print('nan')", "{answers}"],
        ["/no/such/program", "{answers}"],
        [sys.executable, "-c", "print(1)"],
    ],
    ids=["fails", "words", "silent", "nan", "missing", "blind"],
)
def test_a_command_that_gives_no_number(
    tmp_path: Path, changed: Path, golden: Path, command: list[str], snapshot: SnapshotAssertion
) -> None:
    assert failure(tmp_path, changed, golden, command=command) == snapshot


def test_names_of_samples_and_values_stay_inside_their_folder(tmp_path: Path) -> None:
    assert [file_name(7, name) for name in ("cat-01", "../../x", "", "a" * 300, "é", "con.npz")] == [
        "cat-01",
        *["00007"] * 5,
    ]
    values = {"file": np.arange(3), "../x": np.array(["a", "ü"], object), "s": [np.ones(1), {1: 2.0}], "none": None}
    write_archive(tmp_path / "a.npz", values)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        found = {name: archive[name].tolist() for name in archive.files}
    assert found == {"file": [0, 1, 2], "../x": ["a", "ü"], "s.0": [1.0], "s.1.keys": [1], "s.1.values": [2.0]}
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_samples_of_one_name_do_not_overwrite_each_other(tmp_path: Path, golden: Path) -> None:
    recorded = read_golden(golden)
    entries = []
    for index, name in enumerate(("twin", "Twin", "twin")):
        sample = recorded.sample(index)
        renamed = Sample(name=name, inputs=sample.inputs, outputs=sample.outputs)
        entries.append(
            write_sample(tmp_path, index, renamed, Signature(inputs=_ports("image"), outputs=_ports("scores")))
        )
    write_index(tmp_path, entries, seed=None, unstable=())
    judge = "import os, sys; print(len(os.listdir(sys.argv[1])))"
    command = [sys.executable, "-c", judge, "{answers}"]
    model = models.save(models.cnn(), tmp_path / "model")
    assert measure(model, tmp_path / "index.json", tmp_path / "out", command=command).facts["value"] == 3


def _ports(name: str) -> tuple[Any, ...]:
    return (Port(name=name, type=ValueType(element_type="float32")),)
