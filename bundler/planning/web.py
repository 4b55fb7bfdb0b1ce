"""Rules for optimisation for browsers, and for the session there.

Measured with onnxruntime-web 1.30.0 in Chromium; the figures are in benchmarks/RESULTS.md.
"""

from __future__ import annotations

from bundler.model.facts import ModelFacts
from bundler.model.plan import Decision
from bundler.planning.rules import (
    DISABLE_ALL,
    ENABLE_ALL,
    PROTOBUF_LIMIT,
    Choice,
    OptimizationRule,
    choose_level,
    choose_simplifier,
    optimization_stages,
)
from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.registry import find_provider

EXTERNAL_WEIGHTS = 64_000_000
"""Weights of at least this many bytes are stored in external files: the runtime reads them from the browser's memory,
so that its own memory, limited to 4 GB, never holds them twice."""


def choose_web_optimization(facts: ModelFacts, profile: TargetProfile, variant: Variant) -> OptimizationRule:
    """The rule for one model and one variant of a web target."""
    on_device = find_provider(variant.providers[0].name).device_memory is not None
    level = _choose_web_level(facts, profile, on_device=on_device)
    model_format = _choose_web_format(facts, profile)
    opening = _choose_web_opening(level, on_device=on_device)
    return OptimizationRule(
        stages=optimization_stages(profile, level, model_format, EXTERNAL_WEIGHTS),
        session=opening.session,
        decisions=tuple(
            choice.decision for choice in (choose_simplifier(profile), level, model_format, opening) if choice.decision
        ),
    )


def _choose_web_level(facts: ModelFacts, profile: TargetProfile, *, on_device: bool) -> Choice:
    """`basic` for a device unless the profile sets a level: CPU fusions create operators that the GPU lacks, and the
    runtime fuses for the device at load.
    """
    level = choose_level(facts, profile)
    if level.choice != "extended" or profile.optimization.level != "auto" or not on_device:
        return level
    reason = "operators that every provider supports; CPU fusions would move nodes off the device"
    return Choice(choice="basic", decision=Decision(subject="level", choice="basic", reason=reason))


def _choose_web_format(facts: ModelFacts, profile: TargetProfile) -> Choice:
    asked = profile.optimization.format
    if asked == "ort" and facts.total_bytes < PROTOBUF_LIMIT:
        decision = Decision(subject="format", choice="ort", reason="set by the profile")
        return Choice(choice="ort", decision=decision)
    reason = "smaller to download than the ORT format, with the same load time"
    return Choice(choice="onnx", decision=Decision(subject="format", choice="onnx", reason=reason))


def _choose_web_opening(level: Choice, *, on_device: bool) -> Choice:
    """The optimisation that remains for the browser: it must not fuse what a lower level leaves apart."""
    if level.choice == "extended" or (level.choice == "basic" and not on_device):
        reason = "optimised ahead of time, as far as the level allows"
        decision = Decision(subject="optimisation in the browser", choice="none", reason=reason)
        return Choice(session={"graph_optimization_level": DISABLE_ALL}, decision=decision)
    reason = "the device chooses its own layout and fusions" if on_device else "not optimised ahead of time"
    decision = Decision(subject="optimisation in the browser", choice="all", reason=reason)
    return Choice(session={"graph_optimization_level": ENABLE_ALL}, decision=decision)
