"""The calls that no compiling for a Snapdragon's NPU can avoid, in one script with nothing around them.

    bare_compile.py MODEL.onnx OPTIONS.json OUTPUT

It compiles the model with the provider options of OPTIONS.json, and prints the seconds of that call alone.
"""

import json
import sys
import time
from pathlib import Path

import onnxruntime as ort
import onnxruntime_qnn as qnn

model_path, options_path, output = map(Path, sys.argv[1:])
ort.register_execution_provider_library(qnn.get_ep_name(), qnn.get_library_path())
device = next(device for device in ort.get_ep_devices() if device.ep_name == qnn.get_ep_name())
session = ort.SessionOptions()
session.log_severity_level = 4
session.add_provider_for_devices([device], json.loads(options_path.read_text()))
began = time.perf_counter()
compiler = ort.ModelCompiler(
    session,
    str(model_path),
    embed_compiled_data_into_model=False,
    flags=ort.OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED,
)
compiler.compile_to_file(str(output / "model.onnx"))
print(json.dumps({"seconds": time.perf_counter() - began}))
