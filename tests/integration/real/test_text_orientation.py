"""The text-orientation example gives the same answers as the original package, from the bundle alone."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from PIL import Image, ImageDraw, ImageFont

from tests.integration.real.conftest import BuildOnce
from tests.support.command_line import CommandLine
from tests.support.documents import read_document
from tests.support.real_models import EXAMPLES, ask_original, make_original, run_python

ORIGINAL = """
import json, sys
from rapidocr_onnxruntime import RapidOCR
engine = RapidOCR()
answers = [engine(name, use_det=False, use_cls=True, use_rec=False)[0][0] for name in sys.argv[1:]]
print(json.dumps([[label, float(score)] for label, score in answers]))
"""

LINES = {
    "short": "Open",
    "words": "Turn the page around",
    "digits": "2026-11-20 14:35:07",
    "long": "A line of text that is much longer than the network's own width of pixels",
    "capitals": "EMERGENCY EXIT",
}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Each line upright and turned by 180 degrees, in several sizes and colours."""
    folder = tmp_path_factory.mktemp("images")
    paths = []
    for index, (name, text) in enumerate(LINES.items()):
        upright = _render(text, size=26 + 9 * index, ink=(20, 30 * index, 90), paper=(250, 250 - 20 * index, 220))
        for turn in (0, 180):
            paths.append(folder / f"{name}-{turn}.png")
            upright.rotate(turn).save(paths[-1])
    return paths


def _render(text: str, *, size: int, ink: tuple[int, int, int], paper: tuple[int, int, int]) -> Image.Image:
    font = ImageFont.load_default(size)
    left, top, right, bottom = map(int, font.getbbox(text))
    image = Image.new("RGB", (right - left + 16, bottom - top + 12), paper)
    ImageDraw.Draw(image).text((8 - left, 6 - top), text, ink, font)
    return image


@pytest.fixture(scope="module")
def bundle(orientation_model: Path, build_once: BuildOnce) -> Path:
    return build_once(orientation_model)


@pytest.mark.quick
def test_the_bundle_gives_the_answers_of_the_original_package(shared: Path, bundle: Path, images: list[Path]) -> None:
    requirement, python = "rapidocr-onnxruntime==1.4.4", ">=3.11,<3.13"
    # OpenCV's usual wheel asks for a screen's libraries; the headless one has the same functions.
    original = make_original(shared / "original-rapidocr", requirement, python, without=["opencv-python"])
    theirs = ask_original(original, ORIGINAL, images)
    ours = _classify(bundle, images)
    assert [label for label, _ in ours] == [label for label, _ in theirs]
    # OpenCV interpolates in fixed point, so a pixel may differ by one of its 255 levels.
    np.testing.assert_allclose([s for _, s in ours], [s for _, s in theirs], atol=0.03)


@pytest.mark.quick
def test_text_turned_around_is_recognised(bundle: Path, images: list[Path]) -> None:
    answers = dict(zip(images, _classify(bundle, images), strict=True))
    wrong = {path.stem: answer for path, answer in answers.items() if not path.stem.endswith(f"-{answer[0]}")}
    assert not wrong


def _classify(bundle: Path, images: list[Path]) -> list[tuple[str, float]]:
    out = run_python(Path(sys.executable), [EXAMPLES / "text_orientation" / "classify.py", bundle, *images])
    words = [line.rsplit(": ", 1)[1].split() for line in out.splitlines()]
    return [(label, float(score)) for label, score in words]


@pytest.mark.slow
@pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="Qualcomm's compiler is for Linux on x86-64"
)
def test_the_example_for_a_phone_is_compiled_and_keeps_its_answers(
    orientation_model: Path, bundler: CommandLine, tmp_path: Path
) -> None:
    """As `make demo-device` does. The model's batch normalisations once wrecked it on the NPU, and nowhere else."""
    fixed, lines = tmp_path / "fixed.onnx", tmp_path / "lines"
    run_python(Path(sys.executable), [EXAMPLES / "text_orientation" / "fix_sizes.py", orientation_model, fixed])
    run_python(Path(sys.executable), [EXAMPLES / "text_orientation" / "write_samples.py", lines])
    data = (f"--calibration={lines / 'calibration'}", f"--samples={lines / 'held-out'}")
    precision = "--set=variants.htp.precision=static-qnn-a16w8"
    target = "--target=snapdragon-8g3"
    built = bundler.build(fixed, target, "--name=orientation", *data, precision, f"--output={tmp_path}")
    manifest = read_document(Path(built["bundle"]) / "bundle.json")
    assert not manifest["synthetic_inputs"]
    emulated = [check for check in manifest["checks"] if check["after"] == "htp/compile_context"]
    assert [check["samples"] for check in emulated] == [100, 16]  # held-out, then golden
    (held_out,) = emulated[0]["outputs"]
    assert held_out["top1_agreement"] >= 0.95
    assert held_out["sqnr_db"] > 18
    assert held_out["worst_sqnr_db"] > 5
    assert held_out["typical_sqnr_db"] > 15


def test_the_examples_lines_are_not_all_easy(orientation_model: Path, tmp_path: Path) -> None:
    """A model that is sure of everything shows nothing when its arithmetic gets worse."""
    run_python(Path(sys.executable), [EXAMPLES / "text_orientation" / "write_samples.py", tmp_path, "--count", "100"])
    parts = [sorted((tmp_path / part).glob("*.npz")) for part in ("calibration", "held-out")]
    assert [len(paths) for paths in parts] == [100, 100]
    lines = [[np.load(path)["x"] for path in paths] for paths in parts]
    assert not any(np.array_equal(*pair) for pair in zip(*lines, strict=True)), "what calibrates also judges"
    session = onnxruntime.InferenceSession(str(orientation_model), providers=["CPUExecutionProvider"])
    scores = np.concatenate([session.run(None, {"x": line})[0] for line in lines[1]])
    right = scores.argmax(1) * 180 == [int(path.stem.split("-")[1]) for path in parts[1]]
    assert 0.8 <= right.mean() <= 0.97
    assert np.mean(scores.max(1) > 0.999) < 0.6
    assert np.mean(scores.max(1) < 0.9) > 0.15
