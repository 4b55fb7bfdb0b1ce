"""What is baked for an accelerator, and how coarsely it computes. Pure, as all planning; what differs by provider comes
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
"""From this many bytes of weights on, they go into a file of their own: one protobuf file holds two gigabytes, and no
provider that compiles a model maps it."""


_ORDER: tuple[Loss, ...] = ("none", "half", "bfloat16", "eight-bit", "four-bit")


def is_accelerated(variant: Variant) -> bool:
    """Whether its first provider is another than the CPU's kernels, and so chooses its own fusions."""
    return not find_provider(variant.providers[0].name).graph.takes_fusions


def choose_device_optimization(profile: TargetProfile, facts: ModelFacts, variant: Variant) -> OptimizationRule:
    """What is baked for an accelerator: fusions of the CPU would make operators that it lacks, and what compiles the
    model wants the graph as it was written.
    """
    level = _choose_device_level(facts, profile)
    model_format = Choice(
        choice="onnx",
        decision=Decision(subject="format", choice="onnx", reason="providers of devices read nothing else"),
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
    """The stage without these of the runtime's optimisers besides those that it leaves out already; itself where it
    uses none.
    """
    if stage.name != "optimize":
        return stage
    left_out = [*stage.options.get("disabled_optimizers", ()), *names]
    return replace(stage, options={**stage.options, "disabled_optimizers": left_out})


def _describe_opening(variant: Variant) -> Decision:
    subject = "optimisation on the device"
    if plan_compilation(variant) is not None:
        return Decision(subject=subject, choice="none", reason="it was compiled, and is opened as it is")
    return Decision(subject=subject, choice="all", reason="the device chooses its own layout and fusions")


def _choose_device_level(facts: ModelFacts, profile: TargetProfile) -> Choice:
    """Folding what is constant, above all arithmetic on shapes that were fixed, makes graphs that providers take whole:
    of a sentence encoder with fixed sizes an NPU took 140 of 368 nodes as it was exported, and all that were left of it
    after this level.
    """
    level = choose_level(facts, profile)
    if level.choice != "extended" or profile.optimization.level != "auto":
        return level
    reason = "what every provider runs; fusions of the CPU would take nodes from the device"
    return Choice(choice="basic", decision=Decision(subject="level", choice="basic", reason=reason))


def computed_loss(profile: TargetProfile, variant: Variant, loss: Loss) -> Loss:
    """How coarse the answers are on the device: of the method, or of the device where that is coarser."""
    device: Loss = judge_rounding(profile, variant)
    return max(loss, device, key=_ORDER.index)
