"""Models made in code: encoders, classical pipelines, control flow, and published networks with weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
"""Networks as they are published, with generators of constants in place of weights."""
OPSET, IR = 13, 8


def save(model: ModelProto, path: Path) -> None:
    """Write the model as one file."""
    path.write_bytes(model.SerializeToString(deterministic=True))


def publish_light(name: str, path: Path) -> None:
    """A network of the onnx wheel as it is."""
    path.write_bytes((LIGHT / f"light_{name}.onnx").read_bytes())


def weigh_light(name: str, path: Path) -> None:
    """A network of the onnx wheel with seeded weights where it generates constants."""
    model = onnx.load(LIGHT / f"light_{name}.onnx")
    graph = model.graph
    given = {tensor.name: tensor for tensor in graph.initializer}
    generators = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    kept = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    positive = {
        name for node in kept if node.op_type == "BatchNormalization" for name in (node.input[1], node.input[4])
    }
    rng = np.random.default_rng(0)
    made = [_draw(rng, node.output[0], numpy_helper.to_array(given[node.input[0]]), positive) for node in generators]
    used = {name for node in kept for name in node.input}
    weights = [tensor for tensor in given.values() if tensor.name in used] + made
    names = {tensor.name for tensor in weights}
    inputs = [port for port in graph.input if port.name in used and port.name not in names]
    outputs = list(graph.output)
    whole = helper.make_graph(kept, graph.name, inputs, outputs, weights)
    save(helper.make_model(whole, opset_imports=list(model.opset_import), ir_version=IR), path)


def _draw(rng: np.random.Generator, name: str, shape: np.ndarray, positive: set[str]) -> TensorProto:
    """Weights of a trained network's magnitude, so that values neither vanish nor grow."""
    if name in positive:
        values = np.abs(rng.normal(1, 0.1, shape))
    elif len(shape) > 1:
        values = rng.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
    else:
        values = rng.normal(0, 0.1, shape)
    return numpy_helper.from_array(values.astype(np.float32), name)


class _Encoder:
    """Writes a transformer encoder as exporters do: attention, layer normalisation and Gelu in small operators."""

    def __init__(self, *, layers: int, width: int, vocabulary: int, hidden: int, heads: int, tokens: int) -> None:
        self._rng = np.random.default_rng(1)
        self._nodes: list[NodeProto] = []
        self._weights: list[TensorProto] = []
        self._width, self._hidden, self._heads, self._tokens = width, hidden, heads, tokens
        self._vocabulary, self._layers = vocabulary, layers

    def make(self) -> ModelProto:
        """ids, types and mask [batch, tokens] -> last hidden state [batch, tokens, width]."""
        self._constants()
        state, mask = self._embed(), self._mask()
        for layer in range(self._layers):
            state = self._layer(state, mask, f"layer{layer}.")
        self._nodes.append(helper.make_node("Identity", [state], ["last_hidden_state"]))
        sizes = ["batch", self._tokens]
        names = ("input_ids", "token_type_ids", "attention_mask")
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, sizes) for name in names]
        out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*sizes, self._width])
        graph = helper.make_graph(self._nodes, "encoder", inputs, [out], self._weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)

    def _constants(self) -> None:
        numbers = {"two": 2, "tiny": 1e-12, "half": 0.5, "one": 1, "root2": 2**0.5, "away": -10000}
        for name, number in {**numbers, "scale": (self._width // self._heads) ** 0.5}.items():
            self._keep(name, np.float32(number))
        self._keep("split", np.array([0, 0, self._heads, self._width // self._heads], np.int64))
        self._keep("join", np.array([0, 0, self._width], np.int64))
        self._keep("axes", np.array([1, 2], np.int64))
        self._keep("positions", np.arange(self._tokens).reshape(1, -1))

    def _keep(self, name: str, values: np.ndarray | np.float32) -> str:
        self._weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def _draw(self, name: str, *shape: int, middle: float = 0.0) -> str:
        return self._keep(name, self._rng.normal(middle, 0.02, shape).astype(np.float32))

    def _node(self, operator: str, *inputs: str, **attributes: object) -> str:
        output = f"t{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def _embed(self) -> str:
        words = self._node("Gather", self._draw("words", self._vocabulary, self._width), "input_ids")
        types = self._node("Gather", self._draw("types", 2, self._width), "token_type_ids")
        places = self._node("Gather", self._draw("places", 512, self._width), "positions")
        return self._normalise(self._node("Add", self._node("Add", words, types), places), "embedding.")

    def _mask(self) -> str:
        mask = self._node("Cast", self._node("Unsqueeze", "attention_mask", "axes"), to=TensorProto.FLOAT)
        return self._node("Mul", self._node("Sub", "one", mask), "away")

    def _normalise(self, x: str, prefix: str) -> str:
        scale, shift = self._draw(f"{prefix}scale", self._width, middle=1), self._draw(f"{prefix}shift", self._width)
        centred = self._node("Sub", x, self._node("ReduceMean", x, axes=[-1]))
        variance = self._node("ReduceMean", self._node("Pow", centred, "two"), axes=[-1])
        unit = self._node("Div", centred, self._node("Sqrt", self._node("Add", variance, "tiny")))
        return self._node("Add", self._node("Mul", unit, scale), shift)

    def _linear(self, x: str, prefix: str, size: int, out: int) -> str:
        product = self._node("MatMul", x, self._draw(f"{prefix}weight", size, out))
        return self._node("Add", product, self._draw(f"{prefix}bias", out))

    def _layer(self, x: str, mask: str, prefix: str) -> str:
        attended = self._linear(self._attend(x, mask, prefix), f"{prefix}out.", self._width, self._width)
        x = self._normalise(self._node("Add", attended, x), f"{prefix}first.")
        inner = self._gelu(self._linear(x, f"{prefix}up.", self._width, self._hidden))
        outer = self._linear(inner, f"{prefix}down.", self._hidden, self._width)
        return self._normalise(self._node("Add", outer, x), f"{prefix}second.")

    def _attend(self, x: str, mask: str, prefix: str) -> str:
        turns = {"query": [0, 2, 1, 3], "key": [0, 2, 3, 1], "value": [0, 2, 1, 3]}
        query, key, value = (
            self._node("Transpose", self._node("Reshape", self._project(x, f"{prefix}{name}."), "split"), perm=turn)
            for name, turn in turns.items()
        )
        scores = self._node("Add", self._node("Div", self._node("MatMul", query, key), "scale"), mask)
        mixed = self._node("MatMul", self._node("Softmax", scores, axis=-1), value)
        return self._node("Reshape", self._node("Transpose", mixed, perm=[0, 2, 1, 3]), "join")

    def _project(self, x: str, prefix: str) -> str:
        return self._linear(x, prefix, self._width, self._width)

    def _gelu(self, x: str) -> str:
        error = self._node("Add", self._node("Erf", self._node("Div", x, "root2")), "one")
        return self._node("Mul", self._node("Mul", x, error), "half")


def make_encoder(path: Path) -> None:
    """An encoder of 90 MB: three layers of BERT's size."""
    save(_Encoder(layers=3, width=768, vocabulary=1500, hidden=3072, heads=12, tokens=128).make(), path)


def make_small_encoder(path: Path) -> None:
    """An encoder of 5 MB."""
    save(_Encoder(layers=4, width=128, vocabulary=4000, hidden=512, heads=2, tokens=128).make(), path)


def _train() -> tuple[np.ndarray, np.ndarray]:
    features = np.random.default_rng(0).normal(size=(2000, 30)).astype(np.float32)
    return features, (features[:, 0] + features[:, 1] * features[:, 2] > 0).astype(int) + (features[:, 3] > 1)


def _export_pipeline(classifier: object, path: Path) -> None:
    from skl2onnx import to_onnx  # noqa: PLC0415 - imports for seconds
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    features, labels = _train()
    pipeline = make_pipeline(StandardScaler(), classifier).fit(features, labels)
    save(to_onnx(pipeline, features[:1], target_opset=15), path)


def make_regression(path: Path) -> None:
    """Scaler and logistic regression, with a ZipMap at the end."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    _export_pipeline(LogisticRegression(), path)


def make_forest(path: Path) -> None:
    """Scaler and a random forest of 100 trees, with a ZipMap at the end."""
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415

    _export_pipeline(RandomForestClassifier(100, random_state=0, max_depth=12), path)


def make_control(path: Path) -> None:
    """A Loop of eight turns, and an If on its result."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 64]) for name in "xy")
    branch = helper.make_node("If", ["positive"], ["y"], then_branch=_then(), else_branch=_else())
    nodes = [
        helper.make_node("Loop", ["turns", "", "x"], ["looped"], body=_body()),
        helper.make_node("ReduceSum", ["looped"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["positive"]),
        branch,
    ]
    weights = {
        "weight": np.random.default_rng(0).normal(0, 0.1, (64, 64)).astype(np.float32),
        "bias": np.full(64, 0.01, np.float32),
        "turns": np.array(8, np.int64),
        "zero": np.array(0, np.float32),
        "half": np.array(0.5, np.float32),
    }
    tensors = [numpy_helper.from_array(values, name) for name, values in weights.items()]
    graph = helper.make_graph(nodes, "control", [x], [y], tensors)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR), path)


def _body() -> GraphProto:
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("MatMul", ["state", "weight"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["sum_"]),
        helper.make_node("Tanh", ["sum_"], ["next"]),
        helper.make_node("Identity", ["go"], ["on"]),
    ]
    inputs = [value("turn", TensorProto.INT64, []), value("go", TensorProto.BOOL, [])]
    outputs = [value("on", TensorProto.BOOL, []), value("next", TensorProto.FLOAT, ["batch", 64])]
    return helper.make_graph(nodes, "body", [*inputs, value("state", TensorProto.FLOAT, ["batch", 64])], outputs)


def _then() -> GraphProto:
    out = helper.make_tensor_value_info("kept", TensorProto.FLOAT, None)
    return helper.make_graph([helper.make_node("Relu", ["looped"], ["kept"])], "then", [], [out])


def _else() -> GraphProto:
    nodes = [helper.make_node("Mul", ["looped", "half"], ["halved"]), helper.make_node("Erf", ["halved"], ["bent"])]
    return helper.make_graph(nodes, "else", [], [helper.make_tensor_value_info("bent", TensorProto.FLOAT, None)])


Make = Callable[[Path], None]


def make_large(path: Path, gigabytes: float = 1.5) -> None:
    """A chain of matrix products with `gigabytes` of weights in one external file, written tensor by tensor."""
    width = 4096
    layers = round(gigabytes * 1e9 / (width * width * 4))
    tensors, rng, data = [], np.random.default_rng(0), path.with_suffix(".data")
    with data.open("wb") as stream:
        for layer in range(layers):
            tensor = TensorProto(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=[width, width])
            tensor.data_location = TensorProto.EXTERNAL
            values = (rng.standard_normal((width, width), np.float32) / np.float32(width**0.5)).tobytes()
            for key, entry in (("location", data.name), ("offset", stream.tell()), ("length", len(values))):
                tensor.external_data.add(key=key, value=str(entry))
            stream.write(values)
            tensors.append(tensor)
    nodes = [helper.make_node("MatMul", [f"x{layer}", f"w{layer}"], [f"x{layer + 1}"]) for layer in range(layers)]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width]) for name in ("x0", f"x{layers}")]
    graph = helper.make_graph(nodes, "large", ports[:1], ports[1:], tensors)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR), path)
