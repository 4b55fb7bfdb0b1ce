"""The calls of onnx and ONNX Runtime that no build can avoid, in one script with nothing around them.

    bare_build.py MODEL.onnx BUNDLE-PAYLOAD FEEDS OUTPUT

It checks the model, runs the golden inputs (`FEEDS/*.npz`) through the original model, saves the optimised one, opens
that as the bundle of the same model ships it (`runtime.json`) and runs the golden inputs again.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

model_path, payload, feeds_folder, output = map(Path, sys.argv[1:])
variant = json.loads((payload / "runtime.json").read_text())["variants"][0]
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


feeds = [read_feeds(path) for path in sorted(feeds_folder.glob("*.npz"))]
onnx.checker.check_model(str(model_path))
session = open_original()
outputs = [session.run(None, feed) for feed in feeds]
for index, values in enumerate(outputs):
    for position, value in enumerate(values):
        if isinstance(value, np.ndarray):
            np.save(output / f"{index}-{position}.npy", value)
del session
save_optimised()
session = open_shipped()
for feed in feeds:
    session.run(None, feed)
