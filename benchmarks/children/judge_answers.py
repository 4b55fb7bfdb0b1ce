"""How far a model's answers are from the original model's, and how well it does its task; printed as JSON.

    judge_answers.py TASK MODEL.onnx CANDIDATE.onnx SAMPLES

SQNR and cosine are the least over the floating-point outputs, each over all samples; the agreement is the share of
samples whose greatest score (last axis) stays where it was; `task` is None for a model without one here.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support import content_files, digits, text_images

task, original, candidate, samples = sys.argv[1], *map(Path, sys.argv[2:])
TASKS = {
    "digits_cnn": lambda model: digits.measure_accuracy(model, "convolutional"),
    "digits_mlp": lambda model: digits.measure_accuracy(model, "perceptron"),
    "rapidocr_cls": text_images.measure_orientation,
    "rapidocr_det": text_images.measure_detection,
    "magika": lambda model: content_files.measure_content_types(model, original),
}


def open_session(model: Path) -> ort.InferenceSession:
    return ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])


def judge_output(pairs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float]:
    ours, theirs = (np.concatenate([pair[side].ravel() for pair in pairs]).astype(np.float64) for side in (0, 1))
    noise = float(np.sum((ours - theirs) ** 2))
    sqnr = 10 * np.log10(float(np.sum(ours**2)) / noise) if noise else float("inf")
    return float(sqnr), float(ours @ theirs / (np.linalg.norm(ours) * np.linalg.norm(theirs) or 1))


reference, changed = open_session(original), open_session(candidate)
names = [output.name for output in reference.get_outputs()]
pairs = {name: [] for name in names}
for path in sorted(samples.glob("*.npz")):
    with np.load(path) as stored:
        feed = {name: stored[name] for name in stored.files}
    for name, *pair in zip(names, reference.run(names, feed), changed.run(names, feed), strict=True):
        pairs[name].append(pair)
floats = {name: found for name, found in pairs.items() if found[0][0].dtype.kind == "f"}
figures = [judge_output(found) for found in floats.values()]
same = [np.mean(one.argmax(-1) == two.argmax(-1)) for found in floats.values() for one, two in found]
answer = {
    "sqnr_db": min(sqnr for sqnr, _ in figures),
    "cosine": min(cosine for _, cosine in figures),
    "agreement": float(np.mean(same)),
    "task": float(TASKS[task](candidate)) if task in TASKS else None,
}
print(json.dumps(answer))
