"""Placements on phones are estimated in a worker, and an estimate that fails is no failed build.

No phone is at hand: what NNAPI and CoreML really take is decided there.
"""

from __future__ import annotations

import copy
import dataclasses
from importlib.metadata import version
from pathlib import Path

import pytest
from onnx import helper

from bundler.environments.registry import Environments
from bundler.model.plan import HOST
from bundler.model.results import StepOutcome
from bundler.providers.registry import find_provider
from tests.support import digits, models
from tests.support.bundles import cache_root
from tests.support.encoders import tiny_encoder
from tests.support.environment_stages import StageRunner


@pytest.fixture
def run(shared: Path, tmp_path: Path) -> StageRunner:
    return StageRunner(Environments(cache_root(shared / "cache")), tmp_path / "runs")


CHECKERS = {
    "nnapi": find_provider("nnapi").graph.checker({}),
    "coreml-nn": find_provider("coreml").graph.checker({"ModelFormat": "NeuralNetwork"}),
    "coreml-mlprogram": find_provider("coreml").graph.checker({"ModelFormat": "MLProgram"}),
}


def check(run: StageRunner, model: Path, checker: str, environment: str = HOST) -> StepOutcome:
    options = dataclasses.asdict(CHECKERS[checker])
    return run("check_placement", environment, {"model": model}, provider="SomeExecutionProvider", **options)


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_trained_classifier(tmp_path: Path, run: StageRunner, checker: str) -> None:
    model = copy.deepcopy(digits.make_network("convolutional"))
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.shape.dim[0].dim_value = 1
    outcome = check(run, models.save(model, tmp_path / "model"), checker)
    assert outcome.facts["estimated"]
    assert outcome.facts["share"] > 0.7
    assert outcome.facts["assigned"] + outcome.facts["left"] == len(model.graph.node)


@pytest.mark.parametrize(("environment", "assigned"), [("onnxruntime==1.24.2", 1), (HOST, 2)])
def test_each_version_of_the_runtime_has_its_own_operators(
    tmp_path: Path, run: StageRunner, environment: str, assigned: int
) -> None:
    nodes = [helper.make_node("HardSigmoid", ["x"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    ports = [[models.value(name, [1, 3, 8, 8])] for name in "xy"]
    model = models.save(models.make_model(nodes, *ports), tmp_path / "model")
    facts = check(run, model, "coreml-mlprogram", environment).facts
    assert facts["assigned"] == assigned
    assert facts["estimated_by"] == environment.replace("==", " ").replace(
        HOST, f"onnxruntime {version('onnxruntime')}"
    )


def test_every_worker_answers_the_same(tmp_path: Path, run: StageRunner) -> None:
    model = models.save(tiny_encoder(batch=1, sequence=8), tmp_path / "model")
    found = [check(run, model, "coreml-nn") for _ in range(3)]
    assert found[0].facts == found[1].facts == found[2].facts
    assert found[0].notes == found[1].notes == found[2].notes


def test_a_dynamic_encoder_is_doubtful_and_the_user_hears_why(tmp_path: Path, run: StageRunner) -> None:
    outcome = check(run, models.save(tiny_encoder(), tmp_path / "model"), "nnapi")
    assert outcome.facts["suitable"] == "no"
    assert "worse performance than just using the CPU" in outcome.notes[0].text


def test_a_graph_that_cannot_be_judged_is_a_warning(tmp_path: Path, run: StageRunner) -> None:
    outcome = check(run, models.save(models.cyclic(), tmp_path / "model"), "nnapi")
    assert outcome.facts == {}
    assert outcome.notes[0].level == "warning"
