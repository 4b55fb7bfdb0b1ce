"""Steps of a bundle's stream beside a hand-written loop with I/O binding, in turns, as JSON.

stream_steps.py FOLDER/PACKAGE TURNS STEPS

CPU seconds of STEPS steps in each turn, by name, and the growth of memory in kB over all turns of the stream.
"""

import importlib
import json
import resource
import sys
from pathlib import Path
from time import process_time

import numpy as np
import onnxruntime

place, turns, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.path.insert(0, str(Path(place).parent))
model = importlib.import_module(Path(place).name).Model(threads=1)
session: onnxruntime.InferenceSession = model.session
shapes = {port.name: port.shape for port in session.get_inputs()}
frames = np.random.default_rng(0).standard_normal((64, *shapes["x"])).astype(np.float32)


def run_stream() -> None:
    stream = model.stream()
    for step in range(steps):
        stream.run(x=frames[step % 64])


def run_by_hand() -> None:
    """Two bindings that swap the state; the other outputs are bound anew, for a caller may keep them."""
    state = [onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(shapes["h0"], np.float32)) for _ in "ab"]
    bindings = [session.io_binding() for _ in "ab"]
    for place, binding in enumerate(bindings):
        binding.bind_ortvalue_input("h0", state[place])
        binding.bind_output("scores", "cpu")
        binding.bind_ortvalue_output("hn", state[place ^ 1])
    for step in range(steps):
        binding = bindings[step % 2]
        binding.bind_cpu_input("x", frames[step % 64])
        binding.bind_output("scores", "cpu")
        session.run_with_iobinding(binding)
        binding.get_outputs()[0].numpy()


found: dict[str, list[float]] = {"stream": [], "by hand": []}
calls = [("stream", run_stream), ("by hand", run_by_hand)]
began = 0
for turn in range(turns + 1):
    for name, call in calls[:: 1 if turn % 2 else -1]:
        start = process_time()
        call()
        if turn:  # the first one warms up
            found[name].append(process_time() - start)
    began = began or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - began
print(json.dumps({**found, "grown_kb": grown}))
