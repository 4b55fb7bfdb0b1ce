"""Tensors that models have in common are stored once, and each model keeps its graph and its values."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

from bundler.model.codec import decode
from bundler.model.errors import ModelError, StageError
from bundler.onnxkit.canonical.tensor_data import LARGE_TENSOR_BYTES, WINDOWS_GRANULARITY
from bundler.onnxkit.structure import subgraphs
from bundler.stages.share_weights.checking import check_same
from bundler.stages.share_weights.spec import Facts
from tests.support.models import branch_weights, make_model, value
from tests.support.stage_calls import call_stage

SIDE = 64
POOL = {n: np.random.default_rng(n).normal(size=(SIDE, SIDE)).astype(np.float32) for n in range(6)}
"""Matrices of 16 KiB."""


def chain(matrices: Mapping[str, np.ndarray], side: int = SIDE) -> ModelProto:
    """y = x times each matrix."""
    names = list(matrices)
    values = ["x", *(f"v{number}" for number in range(len(names) - 1)), "y"]
    nodes = [
        helper.make_node("MatMul", [values[at], name], [values[at + 1]], name=f"n{at}") for at, name in enumerate(names)
    ]
    weights = tuple(numpy_helper.from_array(matrix, name) for name, matrix in matrices.items())
    return make_model(nodes, [value("x", [1, side])], [value("y", [1, side])], weights)


def keep(model: ModelProto, folder: Path, *, external: bool = False) -> Path:
    folder.mkdir(parents=True)
    path = folder / "model.onnx"
    onnx.save(model, path, save_as_external_data=external, location="model.onnx.data", size_threshold=0)
    return path


def share(folder: Path, inputs: dict[str, Path], **options: Any) -> Facts:
    shutil.rmtree(folder, ignore_errors=True)
    names = {role: role.replace("/", "-") for role in inputs}
    return decode(Facts, dict(call_stage("share_weights", folder, inputs, names=names, **options).facts))


def answer(path: Path) -> Any:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["y"], {"x": np.ones((1, SIDE), np.float32)})[0]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


CHAINS = st.lists(
    st.tuples(st.lists(st.sampled_from(sorted(POOL)), min_size=1, max_size=5), st.booleans(), st.sampled_from("ab")),
    min_size=1,
    max_size=4,
)
"""Models: their matrices, whether these are beside the file, and how they are called."""


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(CHAINS, st.sampled_from([0, 20_000, 40_000]))
def test_every_model_keeps_its_graph_and_answers_and_common_tensors_lie_once(
    chains: list[tuple[list[int], bool, str]], minimum: int
) -> None:
    with TemporaryDirectory() as name:
        folder, inputs = Path(name), dict[str, Path]()
        for number, (picked, external, prefix) in enumerate(chains):
            model = chain({f"{prefix}{at}": POOL[matrix] for at, matrix in enumerate(picked)})
            inputs[f"m{number}"] = keep(model, folder / str(number), external=external)
        facts = share(folder / "out", inputs, minimum=minimum)
        again = contents(folder / "out")
        share(folder / "out", inputs, minimum=minimum)
        assert contents(folder / "out") == again
        for role, shared in facts.models.items():
            assert set(shared.files) <= again.keys()
            np.testing.assert_array_equal(answer(inputs[role]), answer(folder / "out" / shared.entry))
        stored = {role: set(chains[int(role[1:])][0]) for role in facts.models}
        assert facts.saved <= sum(map(len, stored.values())) * POOL[0].nbytes
        if minimum == 0:
            for role, (picked, _, _) in zip(inputs, chains, strict=True):
                others = {
                    matrix for other, (held, *_) in zip(inputs, chains, strict=True) if other != role for matrix in held
                }
                assert (role in facts.models) == bool(set(picked) & others)
            once = {matrix for held in stored.values() for matrix in held}
            assert facts.saved == (sum(map(len, stored.values())) - len(once)) * POOL[0].nbytes
            data = b"".join(content for file, content in again.items() if file.endswith(".data"))
            assert all(data.count(POOL[matrix].tobytes()) == 1 for matrix in once)


def test_large_tensors_lie_where_windows_can_map_them_and_each_model_lists_what_it_reads(tmp_path: Path) -> None:
    big = np.random.default_rng(9).normal(size=(520, 520)).astype(np.float32)
    own = np.random.default_rng(8).normal(size=(520, 520)).astype(np.float32)
    assert big.nbytes >= LARGE_TENSOR_BYTES
    inputs = {
        "detect/gpu": keep(chain({"a": big, "b": own}, 520), tmp_path / "a"),
        "detect/cpu": keep(chain({"c": big}, 520), tmp_path / "b", external=True),
        "other/cpu": keep(chain({"d": own + 1}, 520), tmp_path / "c"),
    }
    facts = share(tmp_path / "out", inputs)
    assert facts.saved == big.nbytes
    assert {role: shared.files for role, shared in facts.models.items()} == {
        "detect/cpu": ("detect-cpu.onnx", "weights.data"),
        "detect/gpu": ("detect-gpu.onnx", "detect-gpu.onnx.data", "weights.data"),
    }
    for shared in facts.models.values():
        for weight in onnx.load(tmp_path / "out" / shared.entry, load_external_data=False).graph.initializer:
            places = {entry.key: entry.value for entry in weight.external_data}
            assert int(places["offset"]) % WINDOWS_GRANULARITY == 0


def test_models_that_share_with_different_ones_have_a_file_for_each(tmp_path: Path) -> None:
    picked = {"a": (0, 1), "b": (0, 2), "c": (1, 2)}
    inputs = {
        role: keep(chain({f"w{n}": POOL[matrix] for n, matrix in enumerate(held)}), tmp_path / role)
        for role, held in picked.items()
    }
    facts = share(tmp_path / "out", inputs, minimum=0)
    assert sorted(path.name for path in (tmp_path / "out").glob("*.data")) == [f"weights-{n}.data" for n in (1, 2, 3)]
    assert all(len(shared.files) == 3 for shared in facts.models.values())


@pytest.mark.parametrize("change", ["value", "type", "sizes"])
def test_tensors_that_differ_are_not_shared(tmp_path: Path, change: str) -> None:
    other = POOL[0].copy()
    if change == "value":
        other[-1, -1] += 1
    model = chain({"w": other})
    if change == "type":
        model.graph.initializer[0].data_type = TensorProto.INT32
    if change == "sizes":
        model.graph.initializer[0].dims[:] = [SIDE * 2, SIDE // 2]
    inputs = {"a": keep(chain({"w": POOL[0]}), tmp_path / "a"), "b": keep(model, tmp_path / "b")}
    assert share(tmp_path / "out", inputs, minimum=0) == Facts(models={}, saved=0)
    assert contents(tmp_path / "out") == {}


def test_packed_types_and_tensors_of_typed_fields_keep_their_bytes(tmp_path: Path) -> None:
    packed = TensorProto(name="p", data_type=TensorProto.INT4, dims=[40_000], raw_data=bytes(range(200)) * 100)
    typed = TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[8000], float_data=np.arange(8000.0))
    inputs = {}
    for role in "ab":
        model = chain({"w": POOL[0]})
        model.graph.initializer.extend([packed, typed])
        inputs[role] = keep(model, tmp_path / role)
    facts = share(tmp_path / "out", inputs, minimum=0)
    assert facts.saved == POOL[0].nbytes + 20_000
    for shared in facts.models.values():
        read = onnx.load(tmp_path / "out" / shared.entry)
        assert {item.name: item.raw_data for item in read.graph.initializer}["p"] == packed.raw_data
        assert list(read.graph.initializer[-1].float_data) == list(typed.float_data)


def test_a_compiled_model_and_one_with_other_files_beside_it_stay_where_they_are(tmp_path: Path) -> None:
    compiled = chain({"w": POOL[0]})
    compiled.graph.node.append(helper.make_node("EPContext", ["x"], ["z"], domain="com.microsoft"))
    beside = keep(chain({"w": POOL[0]}), tmp_path / "b")
    (beside.parent / "table.bin").write_bytes(b"1")
    inputs = {"a": keep(chain({"w": POOL[0]}), tmp_path / "a"), "b": beside, "c": keep(compiled, tmp_path / "c")}
    assert not share(tmp_path / "out", inputs, minimum=0).models


@pytest.mark.parametrize(
    ("key", "text"),
    [("location", "../a/model.onnx"), ("offset", "-8"), ("offset", "x"), ("length", "9" * 9)],
)
def test_a_place_that_is_none_is_refused(tmp_path: Path, key: str, text: str) -> None:
    path = keep(chain({"w": POOL[0]}), tmp_path / "b", external=True)
    model = onnx.load(path, load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        entry.value = text if entry.key == key else entry.value
    if all(entry.key != key for entry in model.graph.initializer[0].external_data):
        model.graph.initializer[0].external_data.add(key=key, value=text)
    path.write_bytes(model.SerializeToString())
    twin = tmp_path / "c" / "model.onnx"
    shutil.copytree(path.parent, twin.parent)
    with pytest.raises((StageError, ModelError)):
        share(tmp_path / "out", {"b": path, "c": twin}, minimum=0)


@pytest.mark.parametrize("change", ["value", "graph", "tensors"])
def test_the_check_finds_a_model_that_differs(tmp_path: Path, change: str) -> None:
    before = keep(chain({"w": POOL[0]}), tmp_path / "a", external=True)
    model = chain({"w": POOL[1] if change == "value" else POOL[0]})
    if change == "graph":
        model.graph.node[0].name = "other"
    if change == "tensors":
        model.graph.initializer.append(numpy_helper.from_array(POOL[2], "more"))
    check_same(before, before)
    with pytest.raises(StageError):
        check_same(before, keep(model, tmp_path / "b"))


def test_weights_in_branches_stay_in_each_model(tmp_path: Path) -> None:
    inputs = {role: keep(branch_weights(size=4096), tmp_path / role, external=role == "b") for role in "ab"}
    facts = share(tmp_path / "out", inputs, threshold=64, minimum=64)
    assert sorted(facts.models) == ["a", "b"]
    for shared in facts.models.values():
        linked = onnx.load(tmp_path / "out" / shared.entry, load_external_data=False)
        assert [item.name for item in linked.graph.initializer if item.external_data] == ["last"]
        nested = [graph.initializer[0] for node in linked.graph.node for graph in subgraphs(node)]
        assert [bool(item.external_data) for item in nested] == [False, False]
