"""A causal decoder with keys and values of the past, built of plain operators, with seeded weights."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, WIDTH, HEADS, POSITIONS = 50, 32, 4, 1024
DEPTH = WIDTH // HEADS


def make_decoder(*, seed: int = 7, masked: bool = False) -> onnx.ModelProto:
    """One block of attention. Inputs `tokens` [1, n], `past_k` and `past_v` [1, HEADS, past, DEPTH]; outputs `logits`
    [1, n, VOCABULARY], `present_k` and `present_v` [1, HEADS, total, DEPTH], where total is past + n. With `masked`
    there is an input `mask` [1, total], too: tokens that count are 1.
    """
    generator = np.random.default_rng(seed)

    def weight(rows: int, columns: int) -> np.ndarray:
        return (generator.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)

    values = {name: weight(WIDTH, WIDTH) for name in ("q_w", "k_w", "v_w", "o_w")}
    values |= {
        "words": weight(VOCABULARY, WIDTH) * 7,
        "places": weight(POSITIONS, WIDTH) * 32,
        "out_w": weight(WIDTH, VOCABULARY),
    }
    values |= {"split": np.array([1, -1, HEADS, DEPTH]), "join": np.array([1, -1, WIDTH])}
    values |= {"scale": np.float32(1 / np.sqrt(DEPTH)), "never": np.float32(-1e9), "one": np.array(1)}
    values |= {"first": np.array(0), "column": np.array([1]), "row": np.array([0])}
    nodes = [*_embed(), *_attend(masked=masked), *_answer()]
    keys = [_port(f"past_{kind}", 1, HEADS, "past", DEPTH) for kind in "kv"]
    graph = helper.make_graph(
        nodes,
        "decoder",
        [_integers("tokens", 1, "n"), *([_integers("mask", 1, "total")] if masked else []), *keys],
        [_port("logits", 1, "n", VOCABULARY), *(_port(f"present_{kind}", 1, HEADS, "total", DEPTH) for kind in "kv")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def make_tokens(count: int, seed: int = 11) -> np.ndarray:
    """[1, count]."""
    return np.random.default_rng(seed).integers(0, VOCABULARY, (1, count))


def _embed() -> list[onnx.NodeProto]:
    """Words and places; `index` has the places of the new tokens, `all` those of all."""
    node = helper.make_node
    return [
        node("Shape", ["past_k"], ["length"], start=2, end=3),
        node("Shape", ["tokens"], ["new"], start=1, end=2),
        node("Add", ["length", "new"], ["end"]),
        node("Squeeze", ["length"], ["begin_"]),
        node("Squeeze", ["end"], ["end_"]),
        node("Range", ["begin_", "end_", "one"], ["index"]),
        node("Range", ["first", "end_", "one"], ["all"]),
        node("Gather", ["words", "tokens"], ["word"]),
        node("Gather", ["places", "index"], ["place"]),
        node("Add", ["word", "place"], ["x"]),
    ]


def _attend(*, masked: bool) -> list[onnx.NodeProto]:
    """No token sees one after it."""
    node = helper.make_node
    nodes = []
    for name in "qkv":
        nodes += [
            node("MatMul", ["x", f"{name}_w"], [f"{name}_flat"]),
            node("Reshape", [f"{name}_flat", "split"], [f"{name}_heads"]),
            node("Transpose", [f"{name}_heads"], [f"{name}_new"], perm=[0, 2, 1, 3]),
        ]
    return [
        *nodes,
        node("Concat", ["past_k", "k_new"], ["present_k"], axis=2),
        node("Concat", ["past_v", "v_new"], ["present_v"], axis=2),
        node("Transpose", ["present_k"], ["k_turned"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q_new", "k_turned"], ["scores"]),
        node("Mul", ["scores", "scale"], ["scaled"]),
        node("Unsqueeze", ["index", "column"], ["rows"]),
        node("Unsqueeze", ["all", "row"], ["columns"]),
        node("Greater", ["columns", "rows"], ["later"]),
        *(
            [node("Equal", ["mask", "first"], ["hidden"]), node("Or", ["later", "hidden"], ["unseen"])]
            if masked
            else []
        ),
        node("Where", ["unseen" if masked else "later", "never", "scaled"], ["masked"]),
        node("Softmax", ["masked"], ["shares"], axis=-1),
        node("MatMul", ["shares", "present_v"], ["seen"]),
    ]


def _answer() -> list[onnx.NodeProto]:
    node = helper.make_node
    return [
        node("Transpose", ["seen"], ["seen_heads"], perm=[0, 2, 1, 3]),
        node("Reshape", ["seen_heads", "join"], ["joined"]),
        node("MatMul", ["joined", "o_w"], ["attended"]),
        node("Add", ["x", "attended"], ["sum"]),
        node("MatMul", ["sum", "out_w"], ["logits"]),
    ]


def _integers(name: str, *sizes: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT64, sizes)


def _port(name: str, *sizes: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)
