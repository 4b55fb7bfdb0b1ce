"""A gate that fails ends the build with exit code 7, and names the error sources and a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.support import models
from tests.support.chains import chain, write_chain_samples
from tests.support.command_line import ONE_PYTHON, Answer, CommandLine
from tests.support.documents import read_document

METRIC = """
import numpy as np

def closeness(samples):
    return float(1 - np.mean([np.abs(s.answers["y"] - s.reference["y"]).mean() for s in samples]))
"""


@pytest.fixture
def here(tmp_path: Path) -> CommandLine:
    models.save(chain(outlier_in=3), tmp_path)
    write_chain_samples(tmp_path / "samples", 40)
    (tmp_path / "metric.py").write_text(METRIC)
    return CommandLine(cache=tmp_path / "cache", cwd=tmp_path)


def build(here: CommandLine, *overrides: str) -> Answer:
    given = [word for override in (ONE_PYTHON, *overrides) for word in ("--set", override)]
    return here.run(
        "build", "model.onnx", "--target", "linux-x64", "--calibration", "samples", "--no-prove", "-o", "out", *given
    )


def failure(answer: Answer) -> str:
    return "error:" + answer.expect(7).err.partition("error:")[2]


@pytest.mark.parametrize("method", ["static-int8", "dynamic-int8"])
def test_the_layer_that_lost_its_weights_is_blamed(here: CommandLine, method: str) -> None:
    text = failure(build(here, f"precision.method={method}"))
    lines = text.splitlines()
    assert "breaks the accuracy gate" in lines[0]
    assert "output 'y': SQNR " in lines[1]
    place = next(number for number, line in enumerate(lines) if "worst sample 's" in line)
    assert all("output 'y': SQNR " in line for line in lines[1:place])
    assert lines[place + 1].startswith("  error source: node 'product 3' (MatMul)")
    assert '"product 3"' in lines[-1]
    assert "precision.exclude_nodes=[" in lines[-1]
    assert not (here.cwd or Path()).joinpath("out").exists()


def test_the_users_own_metric_ends_the_build(here: CommandLine, snapshot: SnapshotAssertion) -> None:
    """Without a loss there is no error source, and the metric is the user's own affair."""
    broken = build(here, "accuracy.metric.python=metric.py:closeness", "accuracy.metric.least=1.5")
    assert failure(broken) == snapshot


@pytest.mark.quick
def test_a_metric_that_holds_is_in_the_manifest_and_runs_each_time(here: CommandLine) -> None:
    asked = ("accuracy.metric.python=metric.py:closeness", "accuracy.metric.drop=0.01")
    for _ in range(2):
        text = build(here, *asked).expect(0).err
        assert "Measure with your metric (cached)" not in text
    (manifest,) = (here.cwd or Path()).glob("out/*/bundle.json")
    stages = {stage["stage"]: stage["facts"] for stage in read_document(manifest)["stages"]}
    assert stages["measure_metric"]["reference"] == 1.0


def test_a_mistake_in_the_metric_is_reported_with_all_others(here: CommandLine, snapshot: SnapshotAssertion) -> None:
    answer = build(here, "accuracy.metric.python=metric", "accuracy.outputs.y.sqnr=30", "accuracy.outputs.y.cosine=2")
    reported = answer.expect(2).err
    nothing = build(here, "accuracy.metric.least=1").expect(2).err
    blind = build(here, "accuracy.metric.python=metric.py:closeness").expect(2).err
    assert f"{reported}\n{nothing}\n{blind}" == snapshot
