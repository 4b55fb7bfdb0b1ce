"""What a user gets for each kind of model: a bundle whose own command reproduces its golden set."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from bundler.execution.locks import hold
from tests.support import models
from tests.support.command_line import CommandLine
from tests.support.documents import read_document
from tests.support.real_models import run_python

TYPES: dict[str, Callable[[], onnx.ModelProto]] = {
    "linear-classifier-with-zipmap": models.zipmap,
    "zipmap-with-text-labels": lambda: models.zipmap(text_labels=True),
    "if": models.if_model,
    "loop": models.loop_model,
    "sequence-output": models.sequence_output,
    "sequence-input": models.sequence_input,
    "optional-output": models.optional_output,
    "optional-input": models.optional_input,
    "strings": models.strings,
    "contrib-operator": models.contrib,
    "local-function": models.local_function,
    "old-format": models.old_ir,
    "input-with-a-default": models.overridable,
    "bfloat16": models.bfloat16_model,
    "unnamed-dimensions": models.unnamed_dimensions,
    "tokens": models.token_encoder,
    "nan": models.nan_output,
    "infinity": models.infinite_output,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A bundle, and ways to ask it."""

    folder: Path
    manifest: dict[str, Any]
    notes: tuple[str, ...]

    @property
    def payload(self) -> Path:
        return self.folder / self.manifest["payload"]

    @property
    def runtime(self) -> dict[str, Any]:
        read: dict[str, Any] = read_document(self.payload / "runtime.json")
        return read

    def ask(self, *arguments: str) -> str:
        """What `python -m <package> ARGUMENTS` prints."""
        env = {**os.environ, "PYTHONPATH": str(self.folder), "ORT_DISABLE_TELEMETRY": "1"}
        return run_python(Path(sys.executable), ["-m", self.manifest["package"], *arguments], env)

    def self_test(self) -> dict[str, Any]:
        (variant,) = json.loads(self.ask("self-test", "--json"))["variants"]
        assert isinstance(variant, dict)
        return variant


def open_built(made: dict[str, Any]) -> Built:
    """The bundle that a build's document tells of."""
    manifest = read_document(Path(made["bundle"]) / "bundle.json")
    return Built(folder=Path(made["bundle"]), manifest=manifest, notes=tuple(made["notes"]))


Build = Callable[..., Built]
OpenKind = Callable[[str], Built]


@pytest.fixture
def build(warm: CommandLine, here: tuple[str, ...], tmp_path: Path) -> Build:
    """Builds without the proof: the tests run the bundle themselves, in this environment, which is quicker."""

    def run(model: Path, *options: str) -> Built:
        return open_built(warm.build(model, *here, "--no-prove", "--output", tmp_path / "out", *options))

    return run


@pytest.fixture(scope="module")
def open_kind(warm: CommandLine, here: tuple[str, ...], shared: Path) -> OpenKind:
    """`open_kind(kind)` is one of `TYPES`; all are built in one call, once for all processes of the session."""
    folder = shared / "kinds"
    folder.mkdir(exist_ok=True)
    with hold(folder / "lock"):
        document = folder / "document.json"
        if not document.exists():
            paths = [models.save(make(), folder / "in", f"{kind}.onnx") for kind, make in TYPES.items()]
            answer = warm.run("build", *paths, *here, "--no-prove", "--output", folder / "out", "--json")
            document.write_text(answer.out, encoding="utf-8")
    answer = json.loads(document.read_text(encoding="utf-8"))
    failures = {Path(failure["model"]).stem: failure["error"] for failure in answer["failures"]}
    bundles = {made["name"]: made for made in answer["bundles"]}

    def find(kind: str) -> Built:
        assert kind not in failures, failures[kind]
        return open_built(bundles[kind])

    return find


@pytest.mark.parametrize("kind", TYPES)
def test_each_kind_of_model_becomes_a_bundle_that_reproduces_it(open_kind: OpenKind, kind: str) -> None:
    bundle = open_kind(kind)
    tested = bundle.self_test()
    assert (tested["status"], tested["reason"]) == ("passed", "")
    assert tested["samples"] > 0
    assert len(tested["outputs"]) == len(bundle.runtime["signature"]["outputs"])


def test_a_model_with_external_data(build: Build, tmp_path: Path) -> None:
    bundle = build(models.save_external(models.cnn(), tmp_path / "in"))
    assert bundle.self_test()["status"] == "passed"
    assert bundle.manifest["model"]["size"] == sum(file.stat().st_size for file in (tmp_path / "in").iterdir())


def test_a_larger_model_keeps_its_weights_in_a_file_of_their_own(build: Build, tmp_path: Path) -> None:
    bundle = build(models.big_external(tmp_path / "in", megabytes=12, layers=3))
    assert bundle.self_test()["status"] == "passed"
    (variant,) = bundle.runtime["variants"]
    assert max(file["size"] for file in variant["files"]) > 10_000_000
    assert (bundle.payload / variant["model"]).stat().st_size < 100_000


def test_old_formats_ask_only_for_what_has_no_value(open_kind: OpenKind) -> None:
    assert [port["name"] for port in open_kind("old-format").runtime["signature"]["inputs"]] == ["x"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A scikit-learn estimator, trained on the irises, and its export."""

    estimator: Any
    path: Path
    features: np.ndarray


@pytest.fixture(params=["zipmap", "plain", "forest"])
def trained(request: pytest.FixtureRequest, tmp_path: Path) -> Trained:
    from skl2onnx import to_onnx  # noqa: PLC0415 - a second to import
    from sklearn.datasets import load_iris  # noqa: PLC0415
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    features, labels = load_iris(return_X_y=True)
    features = features.astype(np.float32)
    # A scaler before the trees would round features across their thresholds: another model, and not our doing.
    forest = RandomForestClassifier(12, max_depth=5, random_state=0)
    estimator = forest if request.param == "forest" else make_pipeline(StandardScaler(), LogisticRegression())
    estimator.fit(features, labels)
    options = {id(estimator): {"zipmap": request.param != "plain"}}
    model = to_onnx(estimator, features[:1], options=options, target_opset={"": 17, "ai.onnx.ml": 3})
    path = models.save(model, tmp_path / "in", f"iris-{request.param}.onnx")
    return Trained(estimator=estimator, path=path, features=features)


def test_a_scikit_learn_pipeline_gives_its_own_answers(build: Build, tmp_path: Path, trained: Trained) -> None:
    features = trained.features
    np.savez(tmp_path / "samples.npz", X=features[:20, None, :])
    bundle = build(trained.path, "--samples", str(tmp_path / "samples.npz"))
    np.save(tmp_path / "x.npy", features)
    code = (
        "import sys, json, numpy as np\nfrom importlib import import_module\n"
        "out = import_module(sys.argv[1]).Model().run(X=np.load(sys.argv[2]))\n"
        "rows = [[r[k] for k in sorted(r)] if isinstance(r, dict) else r.tolist() for r in out[1]]\n"
        "print(json.dumps([out[0].tolist(), rows]))"
    )
    env = {**os.environ, "PYTHONPATH": str(bundle.folder)}
    arguments = ["-c", code, bundle.manifest["package"], tmp_path / "x.npy"]
    labels, scores = json.loads(run_python(Path(sys.executable), arguments, env))
    assert labels == trained.estimator.predict(features).tolist()
    np.testing.assert_allclose(scores, trained.estimator.predict_proba(features), atol=1e-5)


def test_a_random_model_says_what_it_can_still_promise(build: Build, warm: CommandLine, tmp_path: Path) -> None:
    bundle = build(models.save(models.random_model(), tmp_path / "in", "noisy.onnx"))
    assert bundle.manifest["unstable_outputs"] == ["noise"]
    assert any("noise" in note and "only name, type and shape are compared" in note for note in bundle.notes)
    tested = bundle.self_test()
    assert tested["status"] == "passed"
    verified = warm.run("verify", bundle.folder).expect(0).out
    assert "noise" in verified, "verification says for which output only name, type and shape were checked"
    report = (bundle.folder.parent / f"{bundle.folder.name}.report" / "report.html").read_text()
    assert "noise" in report


def test_a_seeded_random_model_is_promised_in_full(build: Build, tmp_path: Path) -> None:
    bundle = build(models.save(models.random_model(seeded=True), tmp_path / "in", "seeded.onnx"))
    again = onnxruntime.InferenceSession(str(tmp_path / "in" / "seeded.onnx"))
    values = np.ones((2, 3), np.float32)
    stable = np.array_equal(again.run(None, {"x": values})[0], again.run(None, {"x": values})[0])
    assert (bundle.manifest["unstable_outputs"] == []) == stable


@pytest.mark.parametrize("kind", ["nan", "infinity"])
def test_non_finite_outputs_are_compared_by_their_pattern(open_kind: OpenKind, kind: str) -> None:
    bundle = open_kind(kind)
    index = json.loads((bundle.payload / "golden" / "index.json").read_text())
    values = [
        np.fromfile(bundle.payload / "golden" / sample["outputs"]["y"]["file"], "<f4") for sample in index["samples"]
    ]
    assert not np.isfinite(np.concatenate(values)).all(), "this model shows nothing"
    assert bundle.self_test()["status"] == "passed"
    json.loads((bundle.folder / "bundle.json").read_text(), parse_constant=pytest.fail)


def test_hostile_names_stay_names(build: Build, tmp_path: Path) -> None:
    """All of them in one model: in code, paths, JSON, pages and shells they are data."""
    names = models.HOSTILE_NAMES
    nodes = [onnx.helper.make_node("Relu", [name], [f"{name} out"]) for name in names]
    inputs = [models.value(name, ["</script><b>", 2]) for name in names]
    outputs = [models.value(f"{name} out", ["</script><b>", 2]) for name in names]
    path = models.save(models.make_model(nodes, inputs, outputs), tmp_path / "in", "$(touch x); '\"`.onnx")
    bundle = build(path)
    assert bundle.self_test()["status"] == "passed"
    assert [port["name"] for port in bundle.runtime["signature"]["inputs"]] == list(names)
    json.loads(bundle.ask("info", "--json"))
    report = bundle.folder.parent / f"{bundle.folder.name}.report" / "report.html"
    assert "<script>alert(1)" not in report.read_text()
    assert "</script><b>" not in report.read_text()
