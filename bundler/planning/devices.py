"""Optimisation for accelerators, and the precision that they compute in. Pure; differences between providers come
from its knowledge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bundler.model.facts import ModelFacts
from bundler.model.plan import Decision
from bundler.planning.compile import compile_decisions, plan_compilation
from bundler.planning.rules import (
    ENABLE_ALL,
    Choice,
    OptimizationRule,
    OptimizationStage,
    choose_level,
    choose_simplifier,
    optimization_stages,
)
from bundler.planning.traits import judge_rounding
from bundler.profiles.methods import Loss
from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.registry import find_provider

EXTERNAL_WEIGHTS = 1_000_000_000
"""Weights of at least this many bytes are stored in an external file: a protobuf file is limited to 2 GB, and no
compiling provider maps it."""


_ORDER: tuple[Loss, ...] = ("none", "half", "bfloat16", "eight-bit", "four-bit")


def is_accelerated(variant: Variant) -> bool:
    """Whether its first provider is not the CPU's kernels, and so chooses its own fusions."""
    return not find_provider(variant.providers[0].name).graph.takes_fusions


def choose_device_optimization(profile: TargetProfile, facts: ModelFacts, variant: Variant) -> OptimizationRule:
    """The optimisation for an accelerator. CPU fusions are excluded: they create operators that it lacks, and compilers
    expect the original operators.
    """
    level = _choose_device_level(facts, profile)
    model_format = Choice(
        choice="onnx",
        decision=Decision(subject="format", choice="onnx", reason="providers for accelerators support no other format"),
    )
    decisions = [choice.decision for choice in (choose_simplifier(profile), level, model_format) if choice.decision]
    incompatible_optimizers = find_provider(variant.providers[0].name).graph.excluded_optimizers
    stages = optimization_stages(profile, level, model_format, EXTERNAL_WEIGHTS)
    return OptimizationRule(
        stages=tuple(leave_optimizers_out(stage, incompatible_optimizers) for stage in stages)
        if incompatible_optimizers
        else stages,
        session={"graph_optimization_level": ENABLE_ALL},
        disabled_optimizers=incompatible_optimizers,
        decisions=(*decisions, _describe_opening(variant), *compile_decisions(variant)),
    )


def leave_optimizers_out(stage: OptimizationStage, names: Sequence[str]) -> OptimizationStage:
    """The stage with these optimisers of the runtime disabled as well; unchanged if it uses none."""
    if stage.name != "optimize":
        return stage
    left_out = [*stage.options.get("disabled_optimizers", ()), *names]
    return replace(stage, options={**stage.options, "disabled_optimizers": left_out})


def _describe_opening(variant: Variant) -> Decision:
    subject = "optimisation on the device"
    if plan_compilation(variant) is not None:
        return Decision(subject=subject, choice="none", reason="compiled ahead of time")
    return Decision(subject=subject, choice="all", reason="the device chooses its own layout and fusions")


def _choose_device_level(facts: ModelFacts, profile: TargetProfile) -> Choice:
    """`basic` unless the profile sets a level: constant folding, above all of shape arithmetic, lets providers take
    whole graphs (measured for a sentence encoder: 140 of 368 nodes on an NPU before, all remaining nodes after).
    """
    level = choose_level(facts, profile)
    if level.choice != "extended" or profile.optimization.level != "auto":
        return level
    reason = "operators that every provider supports; CPU fusions would move nodes off the device"
    return Choice(choice="basic", decision=Decision(subject="level", choice="basic", reason=reason))


def computed_loss(profile: TargetProfile, variant: Variant, loss: Loss) -> Loss:
    """The precision loss on the device: the greater of the method's and the device's."""
    device: Loss = judge_rounding(profile, variant)
    return max(loss, device, key=_ORDER.index)
