"""Resolve options and flavour to one recipe: the arguments of the reference's quantiser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from bundler.model.errors import StageError
from bundler.onnxkit.quantization.extra_options import check_extra
from bundler.onnxkit.quantization.provider_rules import find_rules
from bundler.onnxkit.quantization.reference import TYPES, own_errors
from bundler.onnxkit.quantization.selection import STATIC_OPERATORS
from bundler.stages.quantize_static.spec import Options

PER_CHANNEL_OPSET: Final = 13
"""Opset from which Q/DQ pairs have an axis. Below it, the reference writes per-channel models that do not load."""
WIDE_OPSET: Final = 21
"""Opset from which they support 16 bits."""
WIDE: Final = frozenset({"uint16", "int16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One call of the quantiser. Empty `only_nodes` means all."""

    format: str
    activation_type: str
    weight_type: str
    per_channel: bool
    reduce_range: bool
    operators: list[str]
    exclude_nodes: tuple[str, ...] = ()
    only_nodes: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def wide(self) -> bool:
        """Whether a 16-bit type is requested."""
        return bool(WIDE.intersection((self.activation_type, self.weight_type)))

    @property
    def least_opset(self) -> int:
        """The opset that the format requires; 16-bit types can also use ONNX Runtime's own operators."""
        return PER_CHANNEL_OPSET if self.per_channel and self.format == "qdq" else 0


def make_recipe(options: Options, operators: list[str] | None) -> Recipe:
    """The recipe for `options`. Raises `StageError` for incompatible options."""
    extra = check_extra(options.extra, static=True)
    for name, value in (
        ("ActivationSymmetric", options.symmetric_activations),
        ("WeightSymmetric", options.symmetric_weights),
        ("CalibPercentile", options.percentile),
    ):
        if value is not None:
            extra[name] = value
    recipe = Recipe(
        format=options.format,
        activation_type=options.activation_type,
        weight_type=options.weight_type,
        per_channel=options.per_channel,
        reduce_range=options.reduce_range,
        operators=operators or list(STATIC_OPERATORS),
        extra=extra,
    )
    _check(recipe, options)
    return recipe


def _check(recipe: Recipe, options: Options) -> None:
    types = f"{recipe.activation_type} activations with {recipe.weight_type} weights"
    if recipe.format == "qoperator" and (recipe.wide or options.rules):
        what = "16-bit types" if recipe.wide else f"the rules of {options.rules}"
        raise StageError(f"the QOperator format does not support {what}", hint="use format = 'qdq'")
    if recipe.activation_type == "int8" and recipe.weight_type == "uint8":
        raise StageError(f"ONNX Runtime does not support {types}", hint="use int8 weights, or uint8 activations")
    if options.percentile is not None and not 0 <= options.percentile <= 100:  # noqa: PLR2004 - a share of a hundred
        raise StageError(f"{options.percentile:g} is not a percentile", hint="give one from 0 to 100, such as 99.999")


def for_provider(
    recipe: Recipe, model: Path, options: Options, operators: list[str] | None, excluded: tuple[str, ...]
) -> Recipe:
    """The recipe with the additions of the reference's rules for one provider and this prepared model."""
    overrides = recipe.extra.get("TensorQuantOverrides")
    rules = find_rules(options.rules)
    with own_errors(f"the configuration for {options.rules} cannot be created for this model"):
        config = rules.configure(
            model,
            None,
            activation_type=TYPES[recipe.activation_type],
            weight_type=TYPES[recipe.weight_type],
            per_channel=recipe.per_channel,
            init_overrides=overrides,
            activation_symmetric=bool(options.symmetric_activations),
            weight_symmetric=options.symmetric_weights,
            op_types_to_quantize=operators,
            nodes_to_exclude=list(excluded) or None,
        )
    given = {name: value for name, value in recipe.extra.items() if name != "TensorQuantOverrides"}
    return replace(recipe, operators=list(config.op_types_to_quantize), extra=config.extra_options | given)
