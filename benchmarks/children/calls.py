"""Call the raw model and the bundle in turns within one process, and print what was found as JSON.

calls.py alone MODEL.onnx FOLDER/PACKAGE FEEDS.npz TURNS      seconds and CPU seconds of one call
calls.py together MODEL.onnx FOLDER/PACKAGE FEEDS.npz TURNS   calls of four callers at once, per second and CPU second
calls.py spinning MODEL.onnx FOLDER/PACKAGE FEEDS.npz TURNS   the same of the bundle, by `spinning`
"""

import importlib
import json
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter, process_time, sleep, thread_time

import numpy as np
import onnxruntime as ort

Call = Callable[[], object]
CALLERS = 4
BLOCK_SECONDS, ROUND_SECONDS = 0.02, 0.5
PAUSE_SECONDS = 0.05
"""The runtime's threads spin for a while after a call: they shall not take the other's time."""

kind, raw, place, feeds_path, turns = sys.argv[1:]
sys.path.insert(0, str(Path(place).parent))
package = importlib.import_module(Path(place).name)
with np.load(feeds_path) as stored:
    names = [str(name) for name in stored["names"]]
    feeds = {name: stored[f"value{index}"] for index, name in enumerate(names)}


def open_each() -> dict[str, Call]:
    session, model = ort.InferenceSession(raw, providers=["CPUExecutionProvider"]), package.Model()
    values = dict(zip([port.python_name for port in model.inputs], feeds.values(), strict=True))
    return {
        "raw": lambda: session.run(None, feeds),
        "run": lambda: model.run(**values),
        "run_named": lambda: model.run_named(feeds),
    }


def open_by_spinning() -> dict[str, Call]:
    sleeping, spinning = package.Model(spinning=False), package.Model(spinning=True)
    return {"sleeping": lambda: sleeping.run_named(feeds), "spinning": lambda: spinning.run_named(feeds)}


def call_alone(call: Call) -> tuple[float, float]:
    count, began, cpu_began = 0, perf_counter(), thread_time()
    while perf_counter() - began < BLOCK_SECONDS:
        for _ in range(50):
            call()
        count += 50
    return (perf_counter() - began) / count, (thread_time() - cpu_began) / count


def call_together(call: Call) -> tuple[float, float]:
    barrier, counts = threading.Barrier(CALLERS), []

    def work() -> None:
        barrier.wait()
        count, until = 0, perf_counter() + ROUND_SECONDS
        while perf_counter() < until:
            call()
            count += 1
        counts.append(count)

    threads = [threading.Thread(target=work) for _ in range(CALLERS)]
    began, cpu_began = perf_counter(), process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (perf_counter() - began), sum(counts) / (process_time() - cpu_began)


def take_turns(calls: Mapping[str, Call], measure: Callable[[Call], tuple[float, float]]) -> dict[str, list]:
    found = {name: [] for name in calls}
    for turn in range(int(turns) + 1):  # The first does not count.
        for name in list(calls) if turn % 2 else [*calls][::-1]:
            sleep(PAUSE_SECONDS)
            measured = measure(calls[name])
            if turn:
                found[name].append(measured)
    return found


calls = open_by_spinning() if kind == "spinning" else open_each()
for call in [*calls.values()] * 3:
    call()
print(json.dumps(take_turns(calls, call_alone if kind == "alone" else call_together)))
