"""A cache key in the model's metadata distinguishes models in a device's cache."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from bundler.model.stage import StageResult
from tests.support import models
from tests.support.stage_calls import call_stage

KEY = "COREML_CACHE_KEY"


def stamp(folder: Path, path: Path) -> StageResult:
    return call_stage("stamp_key", folder, {"model": path}, key=KEY)


def read_key(path: Path) -> str | None:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.get_modelmeta().custom_metadata_map.get(KEY)


def test_the_runtime_reads_the_digest_and_the_outputs_stay_the_same(tmp_path: Path) -> None:
    path = models.save(models.mlp(), tmp_path / "in")
    found = stamp(tmp_path / "out", path)
    written = tmp_path / "out" / str(found.entry)
    assert read_key(written) == found.facts["value"]
    assert len(found.facts["value"]) == 64
    onnx.checker.check_model(str(written))
    before, after = (onnx.load(place) for place in (path, written))
    assert before.graph == after.graph


def test_another_model_has_another_digest_and_the_same_one_the_same(tmp_path: Path) -> None:
    first = models.save(models.mlp(hidden=16), tmp_path / "a")
    other = models.save(models.mlp(hidden=24), tmp_path / "b")
    values = [stamp(tmp_path / f"out{n}", path).facts["value"] for n, path in enumerate((first, first, other))]
    assert values[0] == values[1] != values[2]


def test_an_old_entry_is_overridden(tmp_path: Path) -> None:
    model = models.mlp()
    model.metadata_props.add(key=KEY, value="old")
    found = stamp(tmp_path / "out", models.save(model, tmp_path / "in"))
    assert read_key(tmp_path / "out" / str(found.entry)) == found.facts["value"]


def test_weights_beside_the_model_come_along_and_count(tmp_path: Path) -> None:
    values = []
    for turn in range(2):
        model = models.mlp(hidden=64)
        tensor = model.graph.initializer[0]
        weights = onnx.numpy_helper.to_array(tensor) + np.float32(turn)
        tensor.CopyFrom(onnx.numpy_helper.from_array(weights, tensor.name))
        place = tmp_path / f"in{turn}" / "model.onnx"
        place.parent.mkdir()
        onnx.save(model, place, save_as_external_data=True, location="weights.bin", size_threshold=0)
        found = stamp(tmp_path / f"out{turn}", place)
        assert (tmp_path / f"out{turn}" / "weights.bin").is_file()
        assert read_key(tmp_path / f"out{turn}" / str(found.entry)) == found.facts["value"]
        values.append(found.facts["value"])
    assert values[0] != values[1]
