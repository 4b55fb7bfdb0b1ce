"""Models that are simply bad end with one sentence about the model.

Most of these ended with a library's raw error, or with a result that depended on the current folder.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from bundler.model.codec import conforms
from bundler.model.errors import BundlerError, ModelError
from bundler.model.facts import ModelFacts
from bundler.onnxkit.inference import infer_shapes
from bundler.onnxkit.structure import read_constant, read_structure
from bundler.onnxkit.workload import count_multiplications
from tests.support import models
from tests.support.stage_calls import call_stage, compare, record

NO_TEXT = b"\xe9\xe9\xe9\xe9\xe9"


def refuse(path: Path) -> ModelError:
    with pytest.raises(ModelError) as caught:
        call_stage("inspect", path.parent / "out", {"model": path})
    error = caught.value
    assert error.hint
    assert "\n" not in error.message
    assert all(len(line) < 700 for line in (error.message, *error.details))
    return error


def write(model: ModelProto, folder: Path) -> Path:
    return models.save(model, folder / "in")


def declare_outside(tensor: TensorProto, **entries: str) -> None:
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)


def with_constant_of_shape(shape: TensorProto) -> ModelProto:
    """A model that computes a constant from a shape in its file, and does not use it."""
    model = models.cnn()
    model.graph.initializer.append(shape)
    model.graph.node.insert(0, helper.make_node("ConstantOfShape", [shape.name], ["made"]))
    return model


def test_a_place_of_external_data_that_no_file_system_takes(tmp_path: Path) -> None:
    model = models.cnn()
    model.graph.initializer[0].ClearField("raw_data")
    declare_outside(model.graph.initializer[0], location="w" * 3000)
    error = refuse(write(model, tmp_path))
    assert error.message == "the model's external data cannot be used"
    assert error.details[0].startswith("a path of 3000 characters cannot be read: File name too long: 'www")


def test_a_shape_that_stands_outside_is_not_looked_for_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of that name in the folder where somebody works is none of the model's."""
    shape = models.tensor("shape", np.array([2, 2], np.int64))
    declare_outside(shape, location="shape.bin", offset="0", length="16")
    path = write(with_constant_of_shape(shape), tmp_path)
    (path.parent / "shape.bin").write_bytes(np.array([2, 2], np.int64).tobytes())
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "shape.bin").write_bytes(np.array([9, 9], np.int64).tobytes())
    monkeypatch.chdir(tmp_path / "elsewhere")
    facts = call_stage("inspect", tmp_path / "out", {"model": path}).facts
    assert facts["generated_bytes"] == 0
    assert read_constant(shape) is None


@pytest.mark.parametrize(
    "shape",
    [
        TensorProto(name="shape", dims=[2], data_type=TensorProto.INT64, raw_data=b"12345"),
        TensorProto(name="shape", dims=[3], data_type=TensorProto.INT64, int64_data=[1]),
        TensorProto(name="shape", dims=[-2], data_type=TensorProto.INT64, raw_data=bytes(16)),
        TensorProto(name="shape", dims=[2], data_type=99, raw_data=bytes(16)),
    ],
)
def test_a_constant_whose_shape_is_malformed(tmp_path: Path, shape: TensorProto) -> None:
    refuse(write(with_constant_of_shape(shape), tmp_path))


def test_sizes_that_no_machine_has(tmp_path: Path) -> None:
    model = with_constant_of_shape(models.tensor("shape", np.array([(1 << 62) - 1, 4], np.int64)))
    error = refuse(write(model, tmp_path))
    assert error.message == "the model declares impossible sizes"
    assert error.details[0].startswith("bytes of its generated constants: ")


def test_facts_can_always_be_remembered(tmp_path: Path) -> None:
    facts = call_stage("inspect", tmp_path / "out", {"model": write(models.cnn(), tmp_path)}).facts
    assert conforms(ModelFacts, facts)


NAMES: dict[str, tuple[str, Callable[[], ModelProto]]] = {
    "operator": ("Relu", models.cnn),
    "value": ("image", models.cnn),
    "dimension": ("batch", models.cnn),
    "tensor": ("logits", models.cnn),
    "domain": ("com.microsoft", models.contrib),
    "function": ("TwiceRelu", models.local_function),
    "attribute": ("kernel_shape", models.cnn),
}


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_that_is_not_utf8(tmp_path: Path, kind: str) -> None:
    name, make = NAMES[kind]
    path = write(make(), tmp_path)
    content = path.read_bytes()
    assert name.encode() in content
    path.write_bytes(content.replace(name.encode(), (NO_TEXT * 3)[: len(name)]))
    assert refuse(path).message.endswith("is not UTF-8, which the ONNX format requires")


@pytest.mark.parametrize(
    ("altered", "message"),
    [
        (b"here", "a key of the model's metadata is not UTF-8, which the ONNX format requires"),
        (b"prop", "a value of the model's metadata is not UTF-8"),
    ],
)
def test_metadata_that_are_not_utf8(tmp_path: Path, altered: bytes, message: str) -> None:
    model = models.cnn()
    helper.set_model_props(model, {"here": "prop"})
    path = write(model, tmp_path)
    path.write_bytes(path.read_bytes().replace(altered, NO_TEXT[:4]))
    assert refuse(path).message == message


def make_range(count: int) -> ModelProto:
    """Numbers up to `count`, which shape inference would compute."""
    numbers = [helper.make_node("Constant", [], [name], value_int=value) for name, value in (("a", 0), ("b", count))]
    body = [
        helper.make_node("Constant", [], ["step"], value_int=1),
        helper.make_node("Range", ["a", "b", "step"], ["numbers"]),
        helper.make_node("Cast", ["numbers"], ["y"], to=TensorProto.FLOAT),
    ]
    graph = helper.make_graph([*numbers, *body], "range", [], [models.value("y", [None])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no limit for the data of a process")
def test_the_estimate_of_memory_is_bounded_itself(tmp_path: Path) -> None:
    """It took 10 GB, and 45 s."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    facts = call_stage("inspect", tmp_path / "out", {"model": write(make_range(1 << 28), tmp_path)}).facts
    assert facts["peak_memory_bytes"] is None
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no limit for the data of a process")
def test_the_inference_of_every_stage_is_bounded(tmp_path: Path) -> None:
    """The recording of a golden set took 5.7 GB before the model ran for the first time."""
    path = write(make_range(1 << 28), tmp_path)
    before = read_peak()
    assert count_multiplications(read_structure(path), {}) == 0
    assert read_peak() - before < 1 << 30


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no limit for the data of a process")
@pytest.mark.parametrize("generator", ["Range", "ConstantOfShape", "Expand"])
def test_a_value_of_16_gib_is_refused_before_it_takes_memory(tmp_path: Path, generator: str) -> None:
    """The size is computed from the shape of the input. It took all memory, and real inputs were asked for."""
    before = read_peak()
    with pytest.raises(ModelError) as caught:
        record(write(make_huge(generator, 1 << 31), tmp_path), tmp_path / "golden")
    assert "required more memory than a step may use" in caught.value.details[0]
    assert "BUNDLER_MEMORY_LIMIT=SIZE" in (caught.value.hint or "")
    assert "--samples" not in (caught.value.hint or "")
    assert read_peak() - before < 1 << 30


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no limit for the data of a process")
def test_a_forest_takes_more_memory_than_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no tensors: a forest of 194 MB was refused as unlike any model of its size, for what its lists take."""
    monkeypatch.setattr("bundler.stages.record_golden.run._LOAD_BYTES", 16 << 20)
    record(write(make_tree(18), tmp_path), tmp_path / "golden")


def make_tree(levels: int) -> ModelProto:
    """One complete tree: every leaf has its own value."""
    count = (1 << levels) - 1
    inner = [2 * node + 2 < count for node in range(count)]
    leaves = [node for node in range(count) if not inner[node]]
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        nodes_treeids=[0] * count,
        nodes_nodeids=range(count),
        nodes_featureids=[node % 3 for node in range(count)],
        nodes_modes=["BRANCH_LEQ" if branches else "LEAF" for branches in inner],
        nodes_values=[0.5 - node % 7 / 7 for node in range(count)],
        nodes_truenodeids=[2 * node + 1 if inner[node] else 0 for node in range(count)],
        nodes_falsenodeids=[2 * node + 2 if inner[node] else 0 for node in range(count)],
        target_treeids=[0] * len(leaves),
        target_nodeids=leaves,
        target_ids=[0] * len(leaves),
        target_weights=[leaf / count for leaf in leaves],
        n_targets=1,
    )
    graph = helper.make_graph([node], "tree", [models.value("x", ["rows", 3])], [models.value("y", ["rows", 1])])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def make_huge(generator: str, count: int) -> ModelProto:
    """Generates `count` numbers of eight bytes, and outputs how many."""
    sizes = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Mul", ["shape", "factor"], ["size"])]
    value = helper.make_tensor("value", TensorProto.INT64, [1], [1])
    making = {
        "Range": [
            helper.make_node("Squeeze", ["size"], ["end"]),
            helper.make_node("Range", ["zero", "end", "one"], ["huge"]),
        ],
        "ConstantOfShape": [helper.make_node("ConstantOfShape", ["size"], ["huge"], value=value)],
        "Expand": [helper.make_node("Expand", ["one", "size"], ["huge"])],
    }
    counting = [helper.make_node("Size", ["huge"], ["y"])]
    constants = [
        helper.make_tensor("factor", TensorProto.INT64, [1], [count]),
        helper.make_tensor("zero", TensorProto.INT64, [], [0]),
        helper.make_tensor("one", TensorProto.INT64, [], [1]),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.INT64, [])
    nodes = [*sizes, *making[generator], *counting]
    graph = helper.make_graph(nodes, "huge", [models.value("x", [1])], [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems fill holes, or do not tell of them")
def test_a_file_that_was_never_written_is_refused(tmp_path: Path) -> None:
    """An interrupted download leaves one; a terabyte would be read for hours. A file with data is taken."""
    path = models.save_external(models.mlp(), tmp_path / "in")
    call_stage("inspect", tmp_path / "facts", {"model": path})
    model = onnx.load(path, load_external_data=False)
    tensor = next(item for item in model.graph.initializer if item.external_data)
    del tensor.external_data[:], tensor.dims[:]
    tensor.dims.append(1 << 38)
    for key, value in (("location", "holes.bin"), ("length", str(1 << 40))):
        tensor.external_data.add(key=key, value=value)
    with (path.parent / "holes.bin").open("wb") as stream:
        stream.truncate(1 << 40)
    path.write_bytes(model.SerializeToString())
    error = refuse(path)
    assert "'holes.bin' is incomplete" in error.details[0]


def test_a_crash_of_the_shape_inference_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library may crash when it gets no memory: that happens in a process apart."""
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", lambda *_, **__: os.abort())
    with pytest.raises(onnx.shape_inference.InferenceError, match="more memory"):
        infer_shapes(models.mlp())


def read_peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def reshape(count: int) -> ModelProto:
    """A value of `count` dimensions on the way from the input to the output."""
    body = [
        helper.make_node("Constant", [], ["shape"], value_ints=[1] * count),
        helper.make_node("Reshape", ["x", "shape"], ["high"]),
        helper.make_node("ReduceSum", ["high"], ["y"], keepdims=0),
    ]
    graph = helper.make_graph(body, "reshape", [models.value("x", [1])], [models.value("y", [])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_values_with_too_many_dimensions(tmp_path: Path) -> None:
    """A hundred nodes on such a value took 30 s in every stage."""
    error = refuse(write(reshape(1_000_000), tmp_path))
    assert error.message == "the value 'high' has 1,000,000 dimensions, and at most 64 are supported"
    declared = models.identity()
    declared.graph.input[0].type.tensor_type.shape.dim.extend([onnx.TensorShapeProto.Dimension(dim_value=1)] * 65)
    assert refuse(write(declared, tmp_path / "declared")).message.startswith("the value 'x' has 6")
    call_stage("inspect", tmp_path / "out2", {"model": write(reshape(64), tmp_path / "most")})


def test_metadata_are_carried_as_they_are(tmp_path: Path) -> None:
    """Longer than any name: an alphabet of 18,000 characters."""
    alphabet = "\n".join(map(chr, range(0x4E00, 0x9000)))
    metadata = {"character": alphabet, "": "\0\x1b[31m\u2028", "__proto__": "</script>"}
    model = models.cnn()
    helper.set_model_props(model, metadata)
    assert call_stage("inspect", tmp_path / "out", {"model": write(model, tmp_path)}).facts["metadata"] == metadata


def test_metadata_are_bounded_in_sum(tmp_path: Path) -> None:
    model = models.cnn()
    helper.set_model_props(model, {f"key {index}": "é" * 100_000 for index in range(6)})
    error = refuse(write(model, tmp_path))
    assert error.message == "the model's metadata have 1,200,030 bytes, and a bundle carries at most 1,048,576"
    assert error.details == ("the longest value is that of 'key 0'",)


def test_metadata_with_a_key_twice(tmp_path: Path) -> None:
    model = models.cnn()
    for value in ("first", "last"):
        model.metadata_props.add(key="classes", value=value)
    refuse(write(model, tmp_path))


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    error = refuse(write(models.identity("n" * 20_000, "y"), tmp_path))
    assert error.message == "the name of a value is longer than 16,384 characters"


def test_long_names_of_nested_modules_are_taken(tmp_path: Path) -> None:
    path = write(models.identity("/model/" * 500, "y"), tmp_path)
    call_stage("inspect", tmp_path / "out", {"model": path})


def test_outputs_of_one_name(tmp_path: Path) -> None:
    model = models.cnn()
    model.graph.output.append(model.graph.output[0])
    error = refuse(write(model, tmp_path))
    assert (error.message, error.details) == ("several outputs of the model have the same name", ("'scores'",))


@pytest.mark.parametrize("length", ["8", "16"])
def test_external_data_of_another_length_than_the_tensor(tmp_path: Path, length: str) -> None:
    shape = models.tensor("weight", np.array([1, 2, 3], np.float32))
    shape.ClearField("raw_data")
    declare_outside(shape, location="w.bin", length=length)
    model = models.cnn()
    model.graph.initializer.append(shape)
    path = write(model, tmp_path)
    (path.parent / "w.bin").write_bytes(bytes(64))
    assert refuse(path).details == (f"tensor 'weight': requires 12 bytes and has {length} in 'w.bin'",)


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([("location", "w.bin"), ("location", "other.bin")], "'location' is given 2 times, and tools differ in"),
        ([("location", "w.bin"), ("offset", "0"), ("offset", "4")], "'offset' is given 2 times, and tools differ in"),
        ([("location", "w.bin"), ("offset", "1_0")], "offset or length in 'w.bin' is not a number"),
    ],
)
def test_external_data_that_tools_read_differently(
    tmp_path: Path, entries: list[tuple[str, str]], problem: str
) -> None:
    weight = models.tensor("weight", np.array([1, 2, 3], np.float32))
    weight.ClearField("raw_data")
    for key, value in entries:
        declare_outside(weight, **{key: value})
    model = models.cnn()
    model.graph.initializer.append(weight)
    path = write(model, tmp_path)
    for name in ("w.bin", "other.bin"):
        (path.parent / name).write_bytes(bytes(64))
    (line,) = refuse(path).details
    assert line.startswith(f"tensor 'weight': {problem}")


def test_training_information(tmp_path: Path) -> None:
    model = models.cnn()
    model.training_info.add().algorithm.CopyFrom(model.graph)
    assert refuse(write(model, tmp_path)).message == "the model contains training information"


def test_a_function_that_calls_itself(tmp_path: Path) -> None:
    model = models.local_function()
    function = model.functions[0]
    function.opset_import.add(domain=function.domain, version=1)
    function.node[0].domain, function.node[0].op_type = function.domain, function.name
    refuse(write(model, tmp_path))


def test_graphs_in_graphs_deeper_than_protobuf_reads(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "model.onnx"
    path.write_bytes(onnx.ModelProto(ir_version=8).SerializeToString() + _nest(400))
    refuse(path)


def _nest(depth: int) -> bytes:
    """Bytes of a graph in an attribute of a node in a graph, and so on."""
    content = b""
    for tags in (b"\x0a\x2a\x32",) * depth:  # graph.node, node.attribute, attribute.g
        for tag in reversed(tags):
            content = bytes([tag]) + _length(len(content)) + content
    return b"\x3a" + _length(len(content)) + content


def _length(number: int) -> bytes:
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes((*out, number))


def test_external_data_without_a_length_ends_with_its_tensor(tmp_path: Path) -> None:
    """No bad model: others may follow in the file, and the runtime reads as much as it needs."""
    path = models.save_external(models.mlp(), tmp_path / "in")
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        kept = [(entry.key, entry.value) for entry in tensor.external_data if entry.key != "length"]
        del tensor.external_data[:]
        for key, value in kept:
            tensor.external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())
    call_stage("inspect", tmp_path / "facts", {"model": path})
    golden = record(path, tmp_path / "golden")
    call_stage("optimize", tmp_path / "out", {"model": path}, level="basic")
    outputs = compare(tmp_path / "out" / "model.onnx", golden, tmp_path / "compared").outputs
    assert all(output.max_absolute < 1e-6 for output in outputs)


@pytest.mark.parametrize(
    ("ir_version", "domain", "version"), [(99, "", 17), (8, "", 99), (8, "", -1), (8, "ai.onnx.ml", 99)]
)
def test_the_hint_about_versions_works_as_printed(tmp_path: Path, ir_version: int, domain: str, version: int) -> None:
    """The IR version and each operator set have a hint of their own, with the newest version that the runtime loads."""
    model = models.identity()
    model.ir_version = ir_version
    if domain:
        model.opset_import.add(domain=domain, version=version)
    else:
        model.opset_import[0].version = version
    path = write(model, tmp_path)
    hint = refuse(path).hint or ""
    if ir_version == 99:
        model.ir_version = int(hint.split("`model.ir_version = ")[1].split("`")[0])
    else:
        assert hint.endswith(f" of the operator set {domain or 'ai.onnx'}")
        model.opset_import[-1].version = int(hint.split(" version ")[1].split()[0])
    path.write_bytes(model.SerializeToString())
    call_stage("inspect", tmp_path / "out", {"model": path})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (models.unknown_operator, "correct the operator's name"),
        (models.unknown_domain, "bundler cannot load libraries of custom operators"),
    ],
)
def test_the_hint_about_an_operator_fits_its_fault(tmp_path: Path, make: Callable[[], ModelProto], said: str) -> None:
    assert said in (refuse(write(make(), tmp_path)).hint or "")


def lower(locale: str) -> ModelProto:
    """A model that makes text small in the language of `locale`."""
    node = helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="LOWER", locale=locale)
    values = [helper.make_tensor_value_info(name, TensorProto.STRING, [1]) for name in ("x", "y")]
    graph = helper.make_graph([node], "lower", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.skipif(sys.platform != "linux", reason="the names of locales are those of Linux")
@pytest.mark.parametrize(
    ("locale", "exit_code", "said"),
    [
        ("sw_UG.UTF-8", 5, "&& localedef -i sw_UG -f UTF-8 sw_UG.UTF-8`)"),
        ("tlh_QX", 5, "&& localedef -i tlh_QX -f UTF-8 tlh_QX`)"),
        ("$(reboot)_XX", 3, "`bundler inspect MODEL`"),
    ],
)
def test_a_locale_that_the_machine_lacks(tmp_path: Path, locale: str, exit_code: int, said: str) -> None:
    """A machine without the model's language is not a bad model; an invented name is."""
    with pytest.raises(BundlerError) as caught:
        record(write(lower(locale), tmp_path), tmp_path / "golden")
    assert caught.value.exit_code == exit_code
    assert said in (caught.value.hint or "")
