"""Published networks, as structures whose weights come from constant generators, with their published outputs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.support.command_line import CommandLine
from tests.support.documents import read_document
from tests.support.real_models import LIGHT

PROVEN = ("light_squeezenet", "light_shufflenet", "light_resnet50")
"""Run in their own runtime too; the others only up to the comparison of what ships, which takes time enough."""

STRUCTURES = sorted(path.stem for path in LIGHT.glob("*.onnx"))


def make_input(model: Path) -> tuple[str, np.ndarray]:
    """The input that the published output belongs to: evenly spaced values from 0 to just below 1."""
    graph = onnx.load(model).graph
    weights = {tensor.name for tensor in graph.initializer}
    (port,) = (port for port in graph.input if port.name not in weights)
    shape = [dimension.dim_value for dimension in port.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return port.name, (np.arange(count, dtype=np.float32) / count).reshape(shape)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_published_network_builds_and_gives_its_published_output(
    warm: CommandLine, here: tuple[str, ...], tmp_path: Path, structure: str
) -> None:
    model = LIGHT / f"{structure}.onnx"
    name, values = make_input(model)
    np.savez(tmp_path / "samples.npz", **{name: values[None]})  # type: ignore[arg-type] # stubs want its own option
    options = ("--samples", str(tmp_path / "samples.npz"), "--output", str(tmp_path / "out"))
    built = warm.build(model, *here, *options, *([] if structure in PROVEN else ["--no-prove"]))
    bundle = Path(built["bundle"])
    manifest = read_document(bundle / "bundle.json")
    # Weights that are one constant give one constant answer: nothing tells a right network from a wrong one by it.
    assert manifest["proof"]["level"] == ("ran-unchecked" if structure in PROVEN else "resolved")
    assert all("everywhere in every sample" in output["unjudged"] for output in manifest["golden"]["outputs"])
    golden = bundle / manifest["payload"] / "golden"
    (sample,) = json.loads((golden / "index.json").read_text())["samples"]
    (output,) = sample["outputs"].values()
    published = numpy_helper.to_array(onnx.load_tensor(LIGHT / f"{structure}_output_0.pb"))
    recorded = np.fromfile(golden / output["file"], "<f4").reshape(output["shape"])
    np.testing.assert_allclose(recorded, published, rtol=1e-3, atol=1e-5)
    shutil.rmtree(tmp_path / "out")  # half a gigabyte, for some
