"""Find convolutions that gain little from int8, by their place and shape.

Measured on an x86 CPU with VNNI and AMX, with four real networks: a depthwise convolution in int8 is slower than ONNX
Runtime's blocked one in floating point, and noisy with its few weights per channel; a squeeze-and-excite branch
computes one pixel, and its gate scales whole channels; a narrow convolution (an image's first, a few channels) costs
little time and much accuracy. Without them a network was as fast or faster, and 3 to 10 dB more accurate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from onnx import ModelProto, NodeProto, TensorProto

from bundler.onnxkit.structure import integer_attribute

Structure = Literal["depthwise", "squeeze", "narrow"]

MAX_NARROW_CHANNELS: Final = 16
"""Number of channels, in or out, up to which a convolution is narrow."""
_CONVOLUTIONS: Final = frozenset({"Conv", "ConvTranspose"})
_GATES: Final = frozenset({
    "Relu", "HardSigmoid", "Sigmoid", "HardSwish", "Add", "Mul", "Clip", "Div", "Conv", "Reshape", "Squeeze",
    "Unsqueeze",
})  # fmt: skip
_POOLS: Final = frozenset({"GlobalAveragePool", "ReduceMean", "GlobalMaxPool"})
_MAX_STEPS: Final = 8
"""Maximum number of nodes from a pooling to the last convolution of its branch."""
_WEIGHT_INPUTS: Final = 2


def find_structures(model: ModelProto, kinds: Iterable[Structure]) -> tuple[str, ...]:
    """Names of the main graph's convolutions of these kinds, in order. Kernels that are not constant are ignored."""
    wanted = set(kinds)
    kernels = {tensor.name: tensor for tensor in model.graph.initializer}
    producers = {name: node for node in model.graph.node for name in node.output}
    return tuple(
        node.name
        for node in model.graph.node
        if node.op_type in _CONVOLUTIONS and wanted.intersection(_kinds(node, kernels, producers))
    )


def _kinds(
    node: NodeProto, kernels: Mapping[str, TensorProto], producers: Mapping[str, NodeProto]
) -> Iterator[Structure]:
    kernel = kernels.get(node.input[1]) if len(node.input) >= _WEIGHT_INPUTS else None
    if kernel is not None and integer_attribute(node, "group", 1) > 1:
        if kernel.dims[1] == 1:
            yield "depthwise"
    elif kernel is not None and min(kernel.dims[:2]) <= MAX_NARROW_CHANNELS:
        yield "narrow"
    if _after_pooling(node, producers):
        yield "squeeze"


def _after_pooling(node: NodeProto, producers: Mapping[str, NodeProto]) -> bool:
    """Whether a chain of first inputs starts at a pooling over whole images."""
    for _ in range(_MAX_STEPS):
        above = producers.get(node.input[0]) if node.input else None
        if above is None:
            return False
        if above.op_type in _POOLS:
            return True
        if above.op_type not in _GATES:
            return False
        node = above
    return False
