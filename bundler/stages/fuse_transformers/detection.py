"""Find the library's model types that may fit a graph, from its operators, names and producer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

from bundler.onnxkit.structure import integer_attribute, read_constant

_BETWEEN: Final = frozenset(
    {"Add", "Sub", "Mul", "Div", "Where", "Cast", "Reshape", "Max", "Min", "Dropout", "IsNaN", "Identity", "Clip"}
)
"""Operators between a softmax and the two products of an attention: scale, mask, a guard against NaN."""
_MAX_STEPS: Final = 8
_QUICK_GELU: Final = 1.702
_IMAGE_RANK: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A model type that may fit the graph, and the reason."""

    model_type: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traits:
    producer: str
    inputs: frozenset[str]
    operators: Counter[str]
    image: bool
    rotary: bool
    root_mean_square: bool
    quick_gelu: bool
    depthwise: bool

    def takes(self, *parts: str) -> bool:
        return any(part in name for name in self.inputs for part in parts)

    def has(self, *operators: str) -> bool:
        return any(self.operators[name] for name in operators)


def count_attentions(model: ModelProto) -> int:
    """Softmax nodes between two matrix products: unfused attentions."""
    makers = {name: node for node in model.graph.node for name in node.output}
    readers: dict[str, list[NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)

    def back(node: NodeProto) -> Iterator[NodeProto]:
        return (makers[name] for name in node.input if name in makers)

    def forth(node: NodeProto) -> Iterator[NodeProto]:
        return (reader for name in node.output for reader in readers.get(name, ()))

    return sum(
        _reaches_product(node, back) and _reaches_product(node, forth)
        for node in model.graph.node
        if node.op_type == "Softmax"
    )


def _reaches_product(node: NodeProto, step: Callable[[NodeProto], Iterator[NodeProto]]) -> bool:
    """Whether a matrix product of two computed values is near."""
    edge = [node]
    for _ in range(_MAX_STEPS):
        found = [other for item in edge for other in step(item)]
        if any(other.op_type in ("MatMul", "FusedMatMul", "Einsum", "Gemm") for other in found):
            return True
        edge = list({id(other): other for other in found if other.op_type in _BETWEEN}.values())
    return False


def find_candidates(model: ModelProto) -> tuple[Candidate, ...]:
    """Types that may fit the graph, the likeliest first, three at most. For models with attentions."""
    found = {item.model_type: item for item in reversed([*_rules(_traits(model))])}
    return tuple(reversed(found.values()))[:3]


def _rules(traits: _Traits) -> Iterator[Candidate]:
    yield from _converted(traits)
    yield from _diffusion(traits)
    yield from _pictures(traits)
    yield from _texts(traits)
    yield Candidate(model_type="bert", reason="attention over tokens, as in an encoder")


def _converted(traits: _Traits) -> Iterator[Candidate]:
    if traits.producer.startswith("tf2onnx"):
        decoder = traits.takes("past")
        yield Candidate(model_type="gpt2_tf" if decoder else "bert_tf", reason="its producer is tf2onnx")
    if traits.producer.startswith("keras2onnx"):
        yield Candidate(model_type="bert_keras", reason="its producer is keras2onnx")


def _diffusion(traits: _Traits) -> Iterator[Candidate]:
    if traits.has("GroupNormalization", "InstanceNormalization") and traits.has("Conv"):
        conditioned = traits.takes("timestep", "encoder_hidden_states")
        reason = "convolutions with group normalisation" + (" and a time step" if conditioned else " and no time step")
        yield Candidate(model_type="unet" if conditioned else "vae", reason=reason)
    elif traits.takes("timestep", "pooled_projections"):
        yield Candidate(model_type="mmdit", reason="attention with a time step and without group normalisation")


def _pictures(traits: _Traits) -> Iterator[Candidate]:
    if traits.takes("image_embed", "point_coords", "point_labels", "high_res_feats", "backbone_fpn"):
        yield Candidate(model_type="sam2", reason="inputs of a segmentation model: image embeddings, points")
    if traits.quick_gelu:
        yield Candidate(model_type="clip", reason="x * sigmoid(1.702 x), the activation of CLIP")
    if traits.image and traits.has("Conv"):
        yield Candidate(model_type="vit", reason="an image goes through a convolution into attention")
        yield Candidate(model_type="swin", reason="an image goes through a convolution into attention")
    if traits.depthwise and not traits.image:
        yield Candidate(model_type="conformer", reason="depthwise convolutions between attentions, and no image")


def _texts(traits: _Traits) -> Iterator[Candidate]:
    if traits.rotary:
        if traits.root_mean_square:
            yield Candidate(model_type="qwen3", reason="rotary positions with RMS normalisation")
            yield Candidate(model_type="gpt2", reason="rotary positions with RMS normalisation")
        else:
            yield Candidate(model_type="phi", reason="rotary positions with layer normalisation")
            yield Candidate(model_type="gpt_neox", reason="rotary positions with layer normalisation")
    elif traits.root_mean_square:
        yield Candidate(model_type="t5", reason="RMS normalisation without rotary positions")
    if traits.takes("encoder_hidden_states", "decoder_input_ids"):
        yield Candidate(model_type="bart", reason="a decoder that reads an encoder's states")
    if traits.takes("past") or traits.has("Trilu"):
        yield Candidate(model_type="gpt2", reason="past keys and values, or a causal mask")


def _traits(model: ModelProto) -> _Traits:
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [item for item in model.graph.input if item.name not in weights]
    return _Traits(
        producer=model.producer_name.lower(),
        inputs=frozenset(item.name.lower() for item in inputs),
        operators=Counter(node.op_type for node in model.graph.node),
        image=any(_is_image(item) for item in inputs),
        rotary=_has_rotary(model),
        root_mean_square=_has_root_mean_square(model),
        quick_gelu=_has_number(model, _QUICK_GELU),
        depthwise=any(node.op_type == "Conv" and integer_attribute(node, "group", 1) > 1 for node in model.graph.node),
    )


def _is_image(item: ValueInfoProto) -> bool:
    tensor = item.type.tensor_type
    floats = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
    return tensor.elem_type in floats and len(tensor.shape.dim) == _IMAGE_RANK


def _has_rotary(model: ModelProto) -> bool:
    """Whether half of a vector is negated and put before the other half, as in rotary positions."""
    negated = {name for node in model.graph.node if node.op_type == "Neg" for name in node.output}
    return any(node.op_type == "Concat" and negated.intersection(node.input) for node in model.graph.node)


def _has_root_mean_square(model: ModelProto) -> bool:
    """Whether there is a mean of squares without a subtracted mean."""
    names = {"SimplifiedLayerNormalization", "RMSNormalization", "SkipSimplifiedLayerNormalization"}
    makers = {name: node for node in model.graph.node for name in node.output}

    def squares(name: str) -> bool:
        node = makers.get(name)
        if node is None or node.op_type not in ("Pow", "Mul"):
            return False
        same = node.op_type == "Pow" or len(set(node.input)) == 1
        source = makers.get(node.input[0])
        return same and (source is None or source.op_type != "Sub")

    means = (node for node in model.graph.node if node.op_type == "ReduceMean")
    return any(node.op_type in names for node in model.graph.node) or any(squares(node.input[0]) for node in means)


def _has_number(model: ModelProto, number: float) -> bool:
    constants = (item.t for node in model.graph.node if node.op_type == "Constant" for item in node.attribute)
    return any(_is_number(tensor, number) for tensor in (*model.graph.initializer, *constants))


def _is_number(tensor: TensorProto, number: float) -> bool:
    if tensor.data_type != TensorProto.FLOAT or any(size != 1 for size in tensor.dims):
        return False
    values = read_constant(tensor)
    return values is not None and bool(abs(float(values.ravel()[0]) - number) < 1e-3)  # noqa: PLR2004 (float16 has that)
