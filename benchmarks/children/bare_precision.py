"""The stages that change a model's precision by themselves, in one process: no plan, no store, no gate, no bundle.

    bare_precision.py METHOD OPTIONS.json MODEL.onnx SAMPLES FOLDER

OPTIONS are keys of a profile's `precision`. Prints the changed model's path.
"""

import importlib
import json
import sys
from pathlib import Path

from bundler.model.runtime import Gate, Tolerance
from bundler.model.stage import StageRequest
from bundler.planning.precision import method_options
from bundler.profiles.methods import METHODS
from bundler.profiles.schema import Precision

name, options, model, samples, folder = sys.argv[1], json.loads(sys.argv[2]), *map(Path, sys.argv[3:])


def run_stage(stage: str, inputs: dict[str, Path], values: dict[str, object]) -> Path:
    output = folder / stage
    output.mkdir(parents=True)
    run = importlib.import_module(f"bundler.stages.{stage}.run").run
    result = run(StageRequest(inputs=inputs, options=values, output=output), lambda _share, _text: None)
    return output / result.entry


method = METHODS[name]
inputs = {"model": model}
if method.needs_calibration:
    inputs["samples"] = run_stage("prepare_data", {"model": model, "data": samples}, {"kind": "samples"})
print(run_stage(method.stage, inputs, method_options(method, Precision(**options), Gate(default=Tolerance()))))
