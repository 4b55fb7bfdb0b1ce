"""Tiny models built in code: one function a kind, each answering an `onnx.ModelProto` or writing one to a folder.

Weights come from a fixed seed, so that a model has the same bytes in every run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

OPSET = 17
IR = 8
FLOAT = TensorProto.FLOAT


def weights(*shape: int, seed: int = 0, scale: float = 0.3) -> np.ndarray:
    """Seeded float32 values of a trained network's magnitude."""
    values: np.ndarray = np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * scale
    return values


def tensor(name: str, values: np.ndarray) -> TensorProto:
    """An initializer."""
    return numpy_helper.from_array(np.asarray(values, order="C"), name)


def value(name: str, shape: list[Any] | None, element: int = FLOAT) -> onnx.ValueInfoProto:
    """A tensor input or output; a dimension is a size, a symbol or None."""
    return helper.make_tensor_value_info(name, element, shape)


def make_model(
    nodes: list[NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    initializers: tuple[TensorProto, ...] = (),
    *,
    opset: int = OPSET,
    ir_version: int = IR,
    domains: tuple[tuple[str, int], ...] = (),
) -> ModelProto:
    """A model around one graph. `domains` are further operator sets."""
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, list(initializers))
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(*domain) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, producer_name="tests")


def save(model: ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    """Write `model` as one file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def save_external(model: ModelProto, folder: Path, name: str = "model.onnx", location: str = "weights.bin") -> Path:
    """Write `model` with every initializer in one external file beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    copy = ModelProto()
    copy.CopyFrom(model)
    onnx.save_model(copy, str(path), save_as_external_data=True, location=location, size_threshold=0)
    return path


def cnn(*, batch: Any = "batch", size: int = 16, classes: int = 5) -> ModelProto:
    """Two convolutions, pooling and a softmax head: image[batch, 3, size, size] -> scores[batch, classes]."""
    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["c1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("GlobalAveragePool", ["r2"], ["pool"]),
        helper.make_node("Flatten", ["pool"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w3", "b3"], ["logits"], transB=1),
        helper.make_node("Softmax", ["logits"], ["scores"], axis=1),
    ]
    initializers = (
        tensor("w1", weights(8, 3, 3, 3, seed=1)),
        tensor("b1", weights(8, seed=2)),
        tensor("w2", weights(16, 8, 3, 3, seed=3)),
        tensor("b2", weights(16, seed=4)),
        tensor("w3", weights(classes, 16, seed=5)),
        tensor("b3", weights(classes, seed=6)),
    )
    inputs, outputs = [value("image", [batch, 3, size, size])], [value("scores", [batch, classes])]
    return make_model(nodes, inputs, outputs, initializers)


def difference() -> ModelProto:
    """a[n, 3], b[n, 3] -> y = a - b, which is another where they are exchanged, and z = a * b."""
    nodes = [helper.make_node("Sub", ["a", "b"], ["y"]), helper.make_node("Mul", ["a", "b"], ["z"])]
    ports = [[value(name, ["n", 3]) for name in names] for names in ("ab", "yz")]
    return make_model(nodes, *ports)


def mlp(*, batch: Any = "batch", width: int = 8, hidden: int = 16, out: int = 4) -> ModelProto:
    """Two matrix products with an exact Gelu written out between them: x[batch, width] -> y[batch, out]."""
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["m1"]),
        helper.make_node("Add", ["m1", "b1"], ["a1"]),
        helper.make_node("Div", ["a1", "sqrt2"], ["d"]),
        helper.make_node("Erf", ["d"], ["e"]),
        helper.make_node("Add", ["e", "one"], ["e1"]),
        helper.make_node("Mul", ["a1", "e1"], ["p"]),
        helper.make_node("Mul", ["p", "half"], ["gelu"]),
        helper.make_node("MatMul", ["gelu", "w2"], ["m2"]),
        helper.make_node("Add", ["m2", "b2"], ["y"]),
    ]
    initializers = (
        tensor("w1", weights(width, hidden, seed=1)),
        tensor("b1", weights(hidden, seed=2)),
        tensor("sqrt2", np.array(np.sqrt(2), np.float32)),
        tensor("one", np.array(1, np.float32)),
        tensor("half", np.array(0.5, np.float32)),
        tensor("w2", weights(hidden, out, seed=3)),
        tensor("b2", weights(out, seed=4)),
    )
    return make_model(nodes, [value("x", [batch, width])], [value("y", [batch, out])], initializers)


def token_encoder(*, vocabulary: int = 11, width: int = 6) -> ModelProto:
    """Ids of a small vocabulary and a mask: an id outside the table fails, as in every language model."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
        helper.make_node("Mul", ["rows", "column"], ["masked"]),
        helper.make_node("ReduceMean", ["masked"], ["pooled"], axes=[1], keepdims=0),
    ]
    ids = [value(name, ["batch", "sequence"], TensorProto.INT64) for name in ("input_ids", "attention_mask")]
    initializers = (tensor("table", weights(vocabulary, width)), tensor("last", np.array([-1], np.int64)))
    return make_model(nodes, ids, [value("pooled", ["batch", width])], initializers)


def identity(name: str = "x", result: str = "y", shape: list[Any] | None = None) -> ModelProto:
    """One node; input and output carry the names given, whatever they hold."""
    shape = [2, 3] if shape is None else shape
    nodes = [helper.make_node("Relu", [name], [result])]
    return make_model(nodes, [value(name, shape)], [value(result, shape)])


HOSTILE_NAMES = (
    'quote"name',
    "apos'trophe",
    "new\nline",
    "tab\tand\rreturn",
    "${HOME} $(id) `id`",
    "*/ comment",
    "</script><script>alert(1)</script>",
    "{{ 7 * 7 }} {% raw %}",
    "back\\slash",
    "../../etc/passwd",
    "C:\\windows\\nul",
    "класс 出力 🙂",
    "\u202etxt.exe",
    "class",
    "import",
    "__init__",
    "a" * 5000,
    " ",
    "%s %d {0}",
    '"""',
    "x; rm -rf /",
    "0",
)
"""Names that a model may carry and that must never break out of code, paths, shells or pages."""


def hostile(name: str) -> ModelProto:
    """A model whose input and output are named after `name`."""
    return identity(name, f"{name} out")


def old_ir() -> ModelProto:
    """IR version 3: the initializer stands among the inputs, as the format asked then. Only `x` must be given."""
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    inputs = [value("x", [1, 3]), value("w", [1, 3])]
    return make_model(nodes, inputs, [value("y", [1, 3])], (tensor("w", weights(1, 3)),), opset=9, ir_version=3)


def overridable() -> ModelProto:
    """IR version 8 with a default for the input `scale`."""
    nodes = [helper.make_node("Mul", ["x", "scale"], ["y"])]
    inputs = [value("x", [1, 3]), value("scale", [1])]
    return make_model(nodes, inputs, [value("y", [1, 3])], (tensor("scale", np.array([2], np.float32)),))


def sequence_output() -> ModelProto:
    """x[4, 3] is split into a sequence of rows."""
    nodes = [helper.make_node("SplitToSequence", ["x"], ["rows"], axis=0)]
    output = helper.make_tensor_sequence_value_info("rows", FLOAT, [1, 3])
    return make_model(nodes, [value("x", [4, 3])], [output])


def sequence_input() -> ModelProto:
    """A sequence of tensors is joined to one."""
    nodes = [helper.make_node("ConcatFromSequence", ["parts"], ["y"], axis=0)]
    inputs = [helper.make_tensor_sequence_value_info("parts", FLOAT, ["n", 3])]
    return make_model(nodes, inputs, [value("y", ["total", 3])])


def optional_output() -> ModelProto:
    """An optional that holds a tensor."""
    nodes = [helper.make_node("Optional", ["x"], ["y"])]
    inner = helper.make_tensor_type_proto(FLOAT, [2])
    output = helper.make_value_info("y", helper.make_optional_type_proto(inner))
    return make_model(nodes, [value("x", [2])], [output])


def optional_input() -> ModelProto:
    """An optional input that the graph only asks after: may be left empty."""
    inner = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [2]))
    nodes = [helper.make_node("OptionalHasElement", ["x"], ["present"])]
    return make_model(nodes, [helper.make_value_info("x", inner)], [value("present", [], TensorProto.BOOL)], opset=18)


def strings() -> ModelProto:
    """A string tensor goes through unchanged."""
    nodes = [helper.make_node("Identity", ["words"], ["same"])]
    shape = ["n"]
    return make_model(nodes, [value("words", shape, TensorProto.STRING)], [value("same", shape, TensorProto.STRING)])


def zipmap(*, text_labels: bool = False) -> ModelProto:
    """A linear classifier of three classes that ends in a ZipMap: sequence(map(label, float32))."""
    labels: dict[str, Any] = (
        {"classlabels_strings": ["cat", "dog", "owl"]} if text_labels else {"classlabels_int64s": [0, 1, 2]}
    )
    attribute = {"classlabels_ints": [0, 1, 2]} if not text_labels else labels
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "probabilities"],
            domain="ai.onnx.ml",
            coefficients=weights(3 * 4).tolist(),
            intercepts=[0.1, -0.2, 0.05],
            multi_class=0,
            post_transform="SOFTMAX",
            **attribute,
        ),
        helper.make_node("ZipMap", ["probabilities"], ["scores"], domain="ai.onnx.ml", **labels),
    ]
    key = TensorProto.STRING if text_labels else TensorProto.INT64
    mapping = helper.make_map_type_proto(key, helper.make_tensor_type_proto(FLOAT, []))
    outputs = [value("label", ["n"], key), helper.make_value_info("scores", helper.make_sequence_type_proto(mapping))]
    return make_model(nodes, [value("x", ["n", 4])], outputs, domains=(("ai.onnx.ml", 1),))


def labels(*, rows: Any = "n") -> ModelProto:
    """A classifier that gives the label of each row, of which it declares `rows`."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["label"], axis=1, keepdims=0),
    ]
    outputs = [value("label", [rows], TensorProto.INT64), value("scores", ["n", 3])]
    return make_model(nodes, [value("x", ["n", 4])], outputs, initializers=[tensor("w", weights(4, 3))])


def scaler_pipeline() -> ModelProto:
    """A scikit-learn scaler and logistic regression, exported by skl2onnx: ends in a ZipMap."""
    # Importing scikit-learn takes a second: only the tests that use it pay for it.
    from skl2onnx import to_onnx  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    features = weights(60, 4, scale=1.0)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    pipeline.fit(features, (features.sum(axis=1) > 0).astype(np.int64) + (features[:, 0] > 1))
    model: ModelProto = to_onnx(pipeline, features[:1], target_opset=OPSET)
    return model


def _branch(name: str, node: NodeProto) -> GraphProto:
    return helper.make_graph([node], name, [], [value(node.output[0], [1, 3])])


def if_model() -> ModelProto:
    """`positive` chooses between doubling and negating an outer value."""
    then_branch = _branch("then", helper.make_node("Add", ["x", "x"], ["doubled"]))
    else_branch = _branch("else", helper.make_node("Neg", ["x"], ["negated"]))
    nodes = [helper.make_node("If", ["positive"], ["y"], then_branch=then_branch, else_branch=else_branch)]
    inputs = [value("x", [1, 3]), value("positive", [], TensorProto.BOOL)]
    return make_model(nodes, inputs, [value("y", [1, 3])])


def choosing() -> ModelProto:
    """A matrix product, then a choice by its sum: adding or multiplying a weight that only the branches read."""
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["product"]),
        helper.make_node("ReduceSum", ["product"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["positive"]),
        helper.make_node(
            "If",
            ["positive"],
            ["chosen"],
            then_branch=_branch("then", helper.make_node("Add", ["product", "shift"], ["moved"])),
            else_branch=_branch("else", helper.make_node("Mul", ["product", "shift"], ["scaled"])),
        ),
        helper.make_node("MatMul", ["chosen", "last"], ["y"]),
    ]
    initializers = (
        tensor("first", weights(3, 3)),
        tensor("zero", np.array(0, np.float32)),
        tensor("shift", weights(3, seed=1)),
        tensor("last", weights(3, 3, seed=2)),
    )
    return make_model(nodes, [value("x", [1, 3])], [value("y", [1, 3])], initializers)


def branch_weights(*, size: int = 512) -> ModelProto:
    """`positive` chooses one of two weights, which lie in the branches themselves, as exports of Silero have them."""
    graphs = [
        helper.make_graph(
            [helper.make_node(operator, ["x", name], [f"{name}_result"])],
            name,
            [],
            [value(f"{name}_result", [1, size])],
            [tensor(name, weights(size, seed=seed))],
        )
        for seed, (operator, name) in enumerate((("Add", "shift"), ("Mul", "scale")))
    ]
    nodes = [
        helper.make_node("If", ["positive"], ["chosen"], then_branch=graphs[0], else_branch=graphs[1]),
        helper.make_node("Add", ["chosen", "last"], ["y"]),
    ]
    inputs = [value("x", [1, size]), value("positive", [], TensorProto.BOOL)]
    return make_model(nodes, inputs, [value("y", [1, size])], (tensor("last", weights(size, seed=2)),))


def loop_model(*, trips: int = 3) -> ModelProto:
    """Adds x to itself a fixed number of times."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["carried", "x"], ["next"]),
            helper.make_node("Identity", ["again"], ["still"]),
        ],
        "body",
        [
            value("turn", [], TensorProto.INT64),
            value("again", [], TensorProto.BOOL),
            value("carried", [1, 3]),
        ],
        [value("still", [], TensorProto.BOOL), value("next", [1, 3])],
    )
    nodes = [helper.make_node("Loop", ["trips", "go", "x"], ["y"], body=body)]
    initializers = (tensor("trips", np.array(trips, np.int64)), tensor("go", np.array(True)))
    return make_model(nodes, [value("x", [1, 3])], [value("y", [1, 3])], initializers)


def contrib() -> ModelProto:
    """An operator of ONNX Runtime's own domain, which the ONNX standard does not know."""
    nodes = [helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")]
    return make_model(nodes, [value("x", [1, 3])], [value("y", [1, 3])], domains=(("com.microsoft", 1),))


def unknown_domain() -> ModelProto:
    """An operator that only somebody's own library has."""
    nodes = [helper.make_node("Sparkle", ["x"], ["y"], domain="com.example.custom")]
    return make_model(nodes, [value("x", [1, 3])], [value("y", [1, 3])], domains=(("com.example.custom", 1),))


def unknown_operator() -> ModelProto:
    """A misspelled standard operator."""
    nodes = [helper.make_node("Relux", ["x"], ["y"])]
    return make_model(nodes, [value("x", [1, 3])], [value("y", [1, 3])])


def local_function() -> ModelProto:
    """A model-local function in a domain of its own, which is no foreign operator."""
    body = [helper.make_node("Add", ["a", "a"], ["b"]), helper.make_node("Relu", ["b"], ["c"])]
    function = helper.make_function("local", "TwiceRelu", ["a"], ["c"], body, [helper.make_opsetid("", OPSET)])
    nodes = [helper.make_node("TwiceRelu", ["x"], ["y"], domain="local")]
    model = make_model(nodes, [value("x", [1, 3])], [value("y", [1, 3])], domains=(("local", 1),))
    model.functions.append(function)
    return model


def newer_opset(version: int = 99) -> ModelProto:
    """An operator set from the future."""
    model = identity()
    model.opset_import[0].version = version
    return model


def newer_ir(version: int = 99) -> ModelProto:
    """A file format from the future."""
    model = identity()
    model.ir_version = version
    return model


def cyclic() -> ModelProto:
    """Two nodes that wait for each other."""
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    return make_model(nodes, [value("x", [1, 3])], [value("b", [1, 3])])


def duplicate_names() -> ModelProto:
    """Two nodes make the same value."""
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"])]
    return make_model(nodes, [value("x", [1, 3])], [value("y", [1, 3])])


def random_model(*, seeded: bool = False) -> ModelProto:
    """`noise` differs on each run, `steady` does not."""
    attributes: dict[str, Any] = {"seed": 1.0} if seeded else {}
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["r"], dtype=FLOAT, **attributes),
        helper.make_node("Add", ["x", "r"], ["noise"]),
        helper.make_node("Relu", ["x"], ["steady"]),
    ]
    return make_model(nodes, [value("x", [2, 3])], [value("noise", [2, 3]), value("steady", [2, 3])])


def nan_output() -> ModelProto:
    """Logarithm of what may be negative: NaN for some inputs, infinity never."""
    nodes = [helper.make_node("Log", ["x"], ["y"])]
    return make_model(nodes, [value("x", [2, 8])], [value("y", [2, 8])])


def infinite_output() -> ModelProto:
    """Division by zero: infinity of both signs."""
    nodes = [helper.make_node("Div", ["x", "zero"], ["y"])]
    return make_model(nodes, [value("x", [2, 8])], [value("y", [2, 8])], (tensor("zero", np.zeros(1, np.float32)),))


def passing(element: int, shape: list[Any] | None = None) -> ModelProto:
    """An Identity over any element type."""
    shape = [2, 3] if shape is None else shape
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    return make_model(nodes, [value("x", shape, element)], [value("y", shape, element)], opset=21, ir_version=10)


def bfloat16_model() -> ModelProto:
    """float32 in, bfloat16 out: a type that NumPy does not have."""
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)]
    return make_model(nodes, [value("x", [2, 3])], [value("y", [2, 3], TensorProto.BFLOAT16)], opset=19, ir_version=9)


def unnamed_dimensions() -> ModelProto:
    """A convolution whose batch, height and width have neither size nor name."""
    nodes = [helper.make_node("Conv", ["image", "w"], ["y"], kernel_shape=[3, 3])]
    initializers = (tensor("w", weights(2, 3, 3, 3)),)
    shape = [None, 3, None, None]
    return make_model(nodes, [value("image", shape)], [value("y", [None, 2, None, None])], initializers)


def redundant() -> ModelProto:
    """Foldable constants, an identity, a dead branch: what a simplifier removes."""
    nodes = [
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Add", ["two", "three"], ["five"]),
        helper.make_node("Mul", ["same", "five"], ["scaled"]),
        helper.make_node("Relu", ["scaled"], ["y"]),
        helper.make_node("Neg", ["scaled"], ["unused"]),
    ]
    initializers = (tensor("two", np.array([2], np.float32)), tensor("three", np.array([3], np.float32)))
    return make_model(nodes, [value("x", ["batch", 3])], [value("y", ["batch", 3])], initializers)


def big_external(folder: Path, *, megabytes: int, layers: int = 6) -> Path:
    """A chain of square matrix products whose weights (float32, about `megabytes` in all) stand in one external file.

    Written piece by piece, so that making it needs little memory.
    """
    folder.mkdir(parents=True, exist_ok=True)
    side = int((megabytes * 1_000_000 / 4 / layers) ** 0.5) // 64 * 64
    nodes, initializers, previous = [], [], "x"
    length = side * side * 4
    generator = np.random.default_rng(0)
    with (folder / "weights.bin").open("wb") as stream:
        for index in range(layers):
            for start in range(0, side, 64):
                rows = generator.standard_normal((min(64, side - start), side), dtype=np.float32)
                stream.write((rows / np.float32(side**0.5)).tobytes())
            initializers.append(_external(f"w{index}", [side, side], "weights.bin", index * length, length))
            nodes.append(helper.make_node("MatMul", [previous, f"w{index}"], [f"m{index}"]))
            previous = f"m{index}"
    nodes.append(helper.make_node("Relu", [previous], ["y"]))
    model = make_model(nodes, [value("x", ["batch", side])], [value("y", ["batch", side])], tuple(initializers))
    return save(model, folder)


def _external(name: str, shape: list[int], location: str, offset: int, length: int) -> TensorProto:
    result = TensorProto(name=name, data_type=FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, text in (("location", location), ("offset", str(offset)), ("length", str(length))):
        result.external_data.add(key=key, value=text)
    return result


def external_at(location: str) -> ModelProto:
    """A model that says its weights stand at `location`, wherever that is."""
    initializer = _external("w", [1, 3], location, 0, 12)
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    return make_model(nodes, [value("x", [1, 3])], [value("y", [1, 3])], (initializer,))
