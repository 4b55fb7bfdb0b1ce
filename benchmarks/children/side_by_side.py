"""Open and call the raw model and the bundle in turns within one process, and print the seconds as JSON.

    side_by_side.py MODEL.onnx FOLDER/PACKAGE FEEDS.npz OPENINGS BLOCKS

Loads include the first inference. A block is a steady loop of some 30 ms; its median call counts, and the call before
it does not (the other's turn has cooled the caches).
"""

import gc
import importlib
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import onnxruntime as ort

Call = Callable[[], object]
BLOCK_SECONDS, LEAST, MOST = 0.03, 3, 200
PAUSE_SECONDS = 0.05
"""The runtime's threads spin for a while after a call: they shall not take the other's time."""

raw, place, feeds_path, openings, blocks = sys.argv[1:]
sys.path.insert(0, str(Path(place).parent))
package = importlib.import_module(Path(place).name)
with np.load(feeds_path) as stored:
    names = [str(name) for name in stored["names"]]
    feeds = {name: stored[f"value{index}"] for index, name in enumerate(names)}


def open_raw() -> Call:
    session = ort.InferenceSession(raw, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def open_bundle() -> Call:
    model = package.Model()
    values = dict(zip([port.python_name for port in model.inputs], feeds.values(), strict=True))
    return lambda: model.run(**values)


def time_opening(open_: Callable[[], Call]) -> float:
    gc.collect()
    began = perf_counter()
    open_()()
    return perf_counter() - began


def time_call(call: Call) -> float:
    began = perf_counter()
    call()
    return perf_counter() - began


def time_block(call: Call, count: int) -> float:
    pause = perf_counter() + PAUSE_SECONDS
    while perf_counter() < pause:
        pass
    call()
    return statistics.median(time_call(call) for _ in range(count))


def take_turns(
    measure: Callable[[Callable], float], theirs: Callable, ours: Callable, count: int
) -> dict[str, list[float]]:
    found = {"raw": [], "bundle": []}
    for turn in range(count):
        order = (("raw", theirs), ("bundle", ours))
        for name, subject in order if turn % 2 else order[::-1]:
            found[name].append(measure(subject))
    return found


open_raw()(), open_bundle()()
opening = take_turns(time_opening, open_raw, open_bundle, int(openings))
theirs, ours = open_raw(), open_bundle()
for call in (theirs, ours) * 3:
    call()
count = max(LEAST, min(MOST, round(BLOCK_SECONDS / time_call(theirs))))
steady = take_turns(lambda call: time_block(call, count), theirs, ours, int(blocks))
print(json.dumps({"opening": opening, "steady": steady}))
