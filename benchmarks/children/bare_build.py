"""The checks of a build by hand: one script that calls onnx, ONNX Runtime and NumPy, with nothing around them.

    bare_build.py MODEL.onnx BUNDLE-PAYLOAD FEEDS OUTPUT

It checks the model, runs the golden inputs (`FEEDS/*.npz`) through the original model, three of them twice to see
whether its outputs are stable, saves the optimised one, opens that as the bundle of the same model ships it
(`runtime.json`), runs the golden inputs again, compares every output (largest error beside the tolerance, SQNR, top-1)
and takes the SHA-256 of both models. What a build makes beyond checks (a canonical model, the operators that a runtime
needs, a manifest, a report, the package) it does not do.
"""

import hashlib
import json
import math
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

model_path, payload, feeds_folder, output = map(Path, sys.argv[1:])
variant = json.loads((payload / "runtime.json").read_text())["components"][0]["variants"][0]
shipped = Path(variant["model"])


def read_feeds(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as stored:
        return {str(name): stored[f"value{index}"] for index, name in enumerate(stored["names"])}


def open_original() -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model_path, options, providers=["CPUExecutionProvider"])


def save_optimised() -> None:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(output / shipped.name)
    if any(file["path"].endswith(".data") for file in variant["files"]):
        prefix = "session.optimized_model_external_initializers"
        options.add_session_config_entry(f"{prefix}_file_name", f"{shipped.name}.data")
        options.add_session_config_entry(f"{prefix}_min_size_in_bytes", "1024")
    ort.InferenceSession(model_path, options, providers=["CPUExecutionProvider"])


def open_shipped() -> ort.InferenceSession:
    options = ort.SessionOptions()
    for name, value in variant["session"].items():
        members = getattr(type(getattr(options, name)), "__members__", None)
        setattr(options, name, members[value] if members else value)
    for name, value in variant["session_config"].items():
        options.add_session_config_entry(name, value)
    disabled = variant["disabled_optimizers"] or None
    return ort.InferenceSession(
        output / shipped.name, options, providers=["CPUExecutionProvider"], disabled_optimizers=disabled
    )


def compare(expected: np.ndarray, actual: np.ndarray) -> tuple[float, float, bool]:
    """The largest error as a multiple of the tolerance, the SQNR in dB, and whether the largest values agree."""
    reference = expected.astype(np.float64)
    error = actual.astype(np.float64) - reference
    noise, signal = float(np.square(error).sum()), float(np.square(reference).sum())
    largest = float((np.abs(error) / (1e-4 + 1e-3 * np.abs(reference))).max(initial=0.0))
    decibels = 10 * math.log10(signal / noise) if noise and signal else math.inf
    same = bool((expected.argmax(-1) == actual.argmax(-1)).all()) if expected.ndim and expected.size else True
    return largest, decibels, same


feeds = [read_feeds(path) for path in sorted(feeds_folder.glob("*.npz"))]
onnx.checker.check_model(str(model_path))
session = open_original()
outputs = [session.run(None, feed) for feed in feeds]
for index in {0, len(feeds) // 2, len(feeds) - 1}:
    for value, again in zip(outputs[index], session.run(None, feeds[index]), strict=True):
        if isinstance(value, np.ndarray) and value.tobytes() != again.tobytes():
            print(f"sample {index} is not stable")
for index, values in enumerate(outputs):
    for position, value in enumerate(values):
        if isinstance(value, np.ndarray):
            np.save(output / f"{index}-{position}.npy", value)
del session
save_optimised()
session = open_shipped()
for feed, values in zip(feeds, outputs, strict=True):
    for value, actual in zip(values, session.run(None, feed), strict=True):
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            print(*compare(value, actual))
for path in (model_path, output / shipped.name):
    with path.open("rb") as stream:
        print(hashlib.file_digest(stream, "sha256").hexdigest())
