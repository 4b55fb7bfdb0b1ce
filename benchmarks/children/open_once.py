"""Open a model once in a fresh process, answer once, and print the seconds of each part as JSON.

    open_once.py raw MODEL.onnx FEEDS.npz
    open_once.py bundle FOLDER/PACKAGE FEEDS.npz

The imports of NumPy and the runtime, and that of the bundle's package, are timed apart from the opening.
"""

import importlib
import json
import sys
from pathlib import Path
from time import perf_counter

kind, place, feeds_path = sys.argv[1:]

began = perf_counter()
import numpy as np  # noqa: E402 - timed
import onnxruntime as ort  # noqa: E402 - timed

runtime_imported = perf_counter()
if kind == "bundle":
    sys.path.insert(0, str(Path(place).parent))
    package = importlib.import_module(Path(place).name)
package_imported = perf_counter()

with np.load(feeds_path) as stored:
    names = [str(name) for name in stored["names"]]
    feeds = {name: stored[f"value{index}"] for index, name in enumerate(names)}

start = perf_counter()
if kind == "bundle":
    model = package.Model()
    opened = perf_counter()
    model.run_named(feeds)
else:
    session = ort.InferenceSession(place, providers=["CPUExecutionProvider"])
    opened = perf_counter()
    session.run(None, feeds)
answered = perf_counter()

seconds = {
    "import_runtime": runtime_imported - began,
    "import_package": package_imported - runtime_imported,
    "open": opened - start,
    "first_run": answered - opened,
    "first_answer": answered - start,
}
print(json.dumps(seconds))
