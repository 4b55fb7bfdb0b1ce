"""Trained networks on real data, through the command line: what a user gets, and how accurate it still is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image

from tests.support import digits, models, text_images
from tests.support.command_line import ONE_PYTHON, CommandLine, digest_folder
from tests.support.content_files import list_files, measure_content_types, write_content_samples
from tests.support.digits import Network
from tests.support.documents import read_document
from tests.support.encoders import encoder
from tests.support.loaded_bundles import ask_bundle
from tests.support.real_models import fetch_example
from tests.support.tokenizers import write_tokenizer

pytestmark = pytest.mark.timeout(600)

METRIC = """
LABELS = {labels}


def accuracy(samples):
    hits = [int(sample.answers[{output!r}].argmax()) == LABELS[sample.name.partition(".")[0]] for sample in samples]
    return sum(hits) / len(hits)
"""
OUTPUTS: dict[Network, str] = {"perceptron": "probabilities", "convolutional": "scores"}
SAMPLES = 200
"""So many of the held-out digits judge a build."""


class Workplace:
    """A folder with a model, data to calibrate with and other data to judge by; `build` builds from there."""

    def __init__(self, folder: Path, model: Path, *options: str) -> None:
        self.folder, self.model, self.options = folder, model, options

    def arguments(self, *options: str, output: Path | None = None, target: str = "linux-x64") -> list[str | Path]:
        return [
            self.model,
            f"--target={target}",
            f"--set={ONE_PYTHON}",
            f"--calibration={self.folder / 'calibration'}",
            f"--samples={self.folder / 'samples'}",
            f"--output={output or self.folder / 'out'}",
            *self.options,
            *options,
        ]

    def build(self, bundler: CommandLine, *options: str, output: Path | None = None) -> dict[str, Any]:
        answer = bundler.run("build", *self.arguments(*options, output=output), "--json", timeout=500)
        document = answer.expect(0).document
        assert document["failures"] == []
        (bundle,) = document["bundles"]
        found: dict[str, Any] = bundle
        return found


def stage_facts(built: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The last record of each stage in the bundle's manifest, by the stage's name."""
    manifest = read_document(Path(built["bundle"]) / "bundle.json")
    return {record["stage"]: record["facts"] for record in manifest["stages"]}


def answers(model: Path, feeds: dict[str, np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    found: np.ndarray = session.run(None, feeds)[0]
    return found


def bundled_model(built: dict[str, Any]) -> Path:
    (model,) = Path(built["bundle"]).glob("*/payload/models/*/model.onnx")
    return model


@pytest.fixture(scope="module")
def digit_places(tmp_path_factory: pytest.TempPathFactory) -> dict[Network, Workplace]:
    """Both trained networks, each with a metric that knows the labels of the samples by their names."""
    train, held_out = digits.load_digits()
    labels = {f"{index:04d}": int(label) for index, label in enumerate(held_out.labels[:SAMPLES])}
    places = {}
    for network, output in OUTPUTS.items():
        folder = tmp_path_factory.mktemp(network)
        model = digits.write_network(network, folder)
        digits.write_samples(train.part(100), folder / "calibration", network)
        digits.write_samples(held_out.part(SAMPLES), folder / "samples", network)
        (folder / "metric.py").write_text(METRIC.format(labels=labels, output=output), encoding="utf-8")
        places[network] = Workplace(folder, model, f"--set=accuracy.metric.python={folder / 'metric.py'}:accuracy")
    return places


@pytest.mark.parametrize(
    "case",
    [
        ("convolutional", "static-int8", 0.8),
        pytest.param(("convolutional", "fp16", 0.6), marks=pytest.mark.slow),
        pytest.param(("convolutional", "static-a16w8", 0.5), marks=pytest.mark.slow),
        pytest.param(("perceptron", "dynamic-int8", 0.6), marks=pytest.mark.slow),
        pytest.param(("perceptron", "weights-8bit", 0.6), marks=pytest.mark.slow),
        ("perceptron", "weights-4bit", 0.5),
    ],
    ids=lambda case: "-".join(case[:2]),
)
def test_digits_are_still_read_and_the_accuracy_before_and_after_is_reported(
    bundler: CommandLine,
    digit_places: dict[Network, Workplace],
    tmp_path: Path,
    case: tuple[Network, str, float],
) -> None:
    network, method, share = case
    place = digit_places[network]
    asked = (f"--set=precision.method={method}", "--set=accuracy.metric.drop=0.03")
    built = place.build(bundler, *asked, output=tmp_path)
    (metric,) = built["metrics"]
    before = digits.measure_accuracy(place.model, network, digits.load_digits()[1].part(SAMPLES))
    assert metric["variant"] == "cpu"
    assert metric["reference"] == pytest.approx(before)
    assert metric["reference"] > 0.9
    assert metric["reference"] - 0.03 <= metric["value"]
    assert built["proof"] == "executed"
    assert built["model_bytes"] < built["source_bytes"] * share
    after = digits.measure_accuracy(bundled_model(built), network, digits.load_digits()[1].part(SAMPLES))
    assert after == pytest.approx(metric["value"], abs=0.011), "the model that ships is the one that was measured"
    reported = f"{metric['value']:.4g}", f"{metric['reference']:.4g}"
    page = Path(built["report"]).read_text(encoding="utf-8")
    (sentence,) = re.findall(r"Your metric[^<]*", page)
    assert all(number in sentence for number in (*reported, str(SAMPLES)))
    again = bundler.run("build", *place.arguments(*asked, output=tmp_path)).expect(0).out
    assert "up to date" in again
    assert f"Metric    cpu: {reported[0]} (original model {reported[1]})" in again


def test_a_metric_that_asks_for_more_than_the_model_has_ends_the_build(
    bundler: CommandLine, digit_places: dict[Network, Workplace], tmp_path: Path
) -> None:
    place = digit_places["perceptron"]
    asked = ("--set=precision.method=static-int8", "--set=accuracy.metric.least=0.9999", "--json")
    error = bundler.run("build", *place.arguments(*asked, output=tmp_path / "out")).expect(7).document["error"]
    assert "breaks your metric" in error["message"]
    assert error["details"][0].startswith("metric metric.py:accuracy")
    assert "0.9999" in error["details"][0]
    assert "accuracy.metric.least" in error["hint"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("method", ["static-int8", pytest.param("weights-4bit", marks=pytest.mark.slow)])
def test_a_second_build_is_up_to_date_and_another_cache_gives_the_same_bytes(
    bundler: CommandLine, cold: CommandLine, digit_places: dict[Network, Workplace], tmp_path: Path, method: str
) -> None:
    place = digit_places["perceptron"]
    asked = (f"--set=precision.method={method}", "--set=accuracy.metric.drop=0.05", "--no-prove")
    first = place.build(bundler, *asked, output=tmp_path / "first")
    assert place.build(bundler, *asked, output=tmp_path / "first")["up_to_date"]
    second = place.build(cold, *asked, output=tmp_path / "second")
    assert not second["up_to_date"]
    assert digest_folder(Path(first["bundle"])) == digest_folder(Path(second["bundle"]))


PICTURES = """
kind = "image"
colour = "BGR"
mean = [0.5]
std = [0.5]
size = [48, 192]
"""


@pytest.fixture(scope="module")
def orientation(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """The orientation classifier of rapidocr, and folders of pictures with a declared preprocessing."""
    folder = tmp_path_factory.mktemp("orientation")
    model = fetch_example("text_orientation", shared / "text_orientation" / "orientation.onnx")
    for name, seed in (("calibration", 0), ("samples", 1)):
        text_images.write_line_images(folder / name, 40, seed=seed)
        (folder / name / "preprocessing.toml").write_text(PICTURES, encoding="utf-8")
    return Workplace(folder, model, "--set=precision.method=static-int8")


def prepare_picture(path: Path, record: dict[str, Any]) -> np.ndarray:
    """float32[1, 3, height, width], as an application would write it after reading `Model().preprocessing`."""
    assert (record["resize"], record["filter"], record["layout"]) == ("stretch", "bilinear", "NCHW")
    height, width = record["size"]
    picture = Image.open(path).convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
    values = np.asarray(picture, np.float32)
    values = values[:, :, ::-1] if record["colour"] == "BGR" else values
    values = (values * record["scale"] - record["mean"]) / record["std"]
    return values.transpose(2, 0, 1)[None].astype(np.float32)


def test_pictures_calibrate_judge_and_leave_their_preprocessing_in_the_bundle(
    bundler: CommandLine, orientation: Workplace, tmp_path: Path
) -> None:
    built = orientation.build(bundler, output=tmp_path)
    assert built["proof"] == "executed"
    assert built["model_bytes"] < built["source_bytes"] * 0.8
    assert stage_facts(built)["quantize_static"]["calibration"] == {"method": "minmax", "samples": 40}
    bundle = Path(built["bundle"])
    runtime = read_document(bundle / "orientation" / "payload" / "runtime.json")
    record = ask_bundle(bundle, "print(json.dumps(dict(model.preprocessing)))")
    assert record == runtime["components"][0]["preprocessing"]
    assert (record["colour"], record["size"], record["mean"], record["std"]) == ("BGR", [48, 192], [0.5] * 3, [0.5] * 3)
    readme = (bundle / "README.md").read_text(encoding="utf-8")
    assert "float32\\[1, 3, 48, 192\\] (NCHW)" in readme
    assert "BGR" in readme

    folder = text_images.write_line_images(tmp_path / "new", 60, seed=2)
    pictures = np.concatenate([prepare_picture(path, record) for path in sorted(folder.iterdir())])
    untouched = np.concatenate([answers(orientation.model, {"x": picture[None]}) for picture in pictures])
    np.save(tmp_path / "pictures.npy", pictures)
    code = (
        f"pictures = numpy.load({str(tmp_path / 'pictures.npy')!r})\n"
        "answers = [next(iter(model.run_named({'x': picture[None]}).values())) for picture in pictures]\n"
        "print(json.dumps([answer.tolist()[0] for answer in answers]))"
    )
    ours = np.array(ask_bundle(bundle, code))
    assert np.mean(ours.argmax(1) == untouched.argmax(1)) >= 0.97
    turned = np.array([path.stem.endswith("-180") for path in sorted(folder.iterdir())])
    assert np.mean(ours.argmax(1) == turned) >= 0.9


@pytest.mark.slow
def test_the_method_for_content_types_is_chosen_by_trying(bundler: CommandLine, shared: Path, tmp_path: Path) -> None:
    """On real files; some methods are left out for time."""
    model = fetch_example("content_type", shared / "content_type" / "magika.onnx")
    write_content_samples(tmp_path / "calibration", model, 60)
    write_content_samples(tmp_path / "samples", model, 60, skip=60)
    place = Workplace(tmp_path, model, "--set=precision.method=auto")
    built = place.build(bundler, '--set=precision.order=["dynamic-int8", "static-int8", "weights-8bit"]')
    frontier = built["decisions"]["cpu"]["answer"]
    attempts = {attempt["method"]: attempt for attempt in frontier["attempts"]}
    assert list(attempts) == ["none", "dynamic-int8", "static-int8", "weights-8bit"]
    assert {attempt["state"] for attempt in attempts.values()} <= {"passed", "chosen"}
    assert attempts["static-int8"]["figures"]["top1_agreement"] >= 0.95
    assert (frontier["timing"], frontier["held_out"]) == ("measured", 60)
    assert 50 <= frontier["calibration"] <= 60, "files that are also held out are left out"
    count = len(list_files()) - 120
    assert count > 60
    before = measure_content_types(model, model, count)
    assert measure_content_types(bundled_model(built), model, count) >= before - 0.02


SENTENCES = {"calibration": (40, 0), "samples": (24, 1)}


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A BERT-class encoder and texts with its tokenizer."""
    folder = tmp_path_factory.mktemp("sentences")
    for name, (count, seed) in SENTENCES.items():
        (folder / name).mkdir()
        vocabulary = write_tokenizer(folder / name, text_images.WORDS)
        (folder / name / "preprocessing.toml").write_text('kind = "text"\nmax_length = 32\n', encoding="utf-8")
        rng = np.random.default_rng(seed)
        texts = (" ".join(rng.choice(text_images.WORDS, int(rng.integers(3, 12)))) for _ in range(count))
        (folder / name / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    made = encoder(width=128, hidden=256, heads=4, vocabulary=vocabulary)
    return Workplace(folder, models.save(made, folder, "encoder.onnx"))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["precision.method=dynamic-int8"], marks=pytest.mark.slow),
        pytest.param(["optimization.preset=O2"], marks=pytest.mark.slow),
        ["optimization.preset=O2", "precision.method=dynamic-int8"],
    ],
    ids=["dynamic-int8", "O2", "both"],
)
def test_an_encoder_on_texts(bundler: CommandLine, sentences: Workplace, tmp_path: Path, options: list[str]) -> None:
    fuses, rounds = any("O2" in option for option in options), any("int8" in option for option in options)
    built = sentences.build(bundler, *(f"--set={option}" for option in options), output=tmp_path)
    assert built["proof"] == "executed"
    assert built["model_bytes"] < built["source_bytes"] * (0.5 if rounds else 1)
    assert stage_facts(built).get("fuse_transformers", {}).get("attentions_fused", 0) == (2 if fuses else 0)
    record = ask_bundle(Path(built["bundle"]), "print(json.dumps(dict(model.preprocessing)))")
    assert (record["kind"], record["max_length"]) == ("text", 32)
    operators = {node.op_type for node in onnx.load(bundled_model(built)).graph.node}
    assert bool(operators & {"Attention", "QAttention"}) is fuses
    assert ("QAttention" in operators) is (fuses and rounds)
    assert bool(operators & {"MatMulInteger", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"}) is rounds


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (
            "auto",
            "bundler measures the candidates and takes the fastest one that meets the accuracy gate: none",
        ),
        ("static-int8", "set by the profile: 8-bit matrix products and convolutions, ranges from calibration data"),
        ("weights-4bit-gptq", "set by the profile: 4-bit weights of matrix products, by GPTQ from calibration data"),
        ("mixed-fp16", "set by the profile: half precision, except nodes that lose too much accuracy"),
    ],
)
def test_a_plan_says_what_becomes_of_the_precision(
    bundler: CommandLine, digit_places: dict[Network, Workplace], method: str, said: str
) -> None:
    folder = digit_places["perceptron"].folder
    data = (f"--calibration={folder / 'calibration'}", f"--samples={folder / 'samples'}")
    model = digit_places["perceptron"].model
    reported = bundler.run("plan", model, "--target=linux-x64", *data, f"--set=precision.method={method}").expect(0).out
    assert f"precision of cpu: {method}: {said}" in reported
    assert ("prepare_calibration" in reported) is (method != "auto")
