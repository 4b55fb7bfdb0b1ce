"""Settles a target's profile for one build: the only place that changes a resolved profile. Pure, like all planning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bundler.model.errors import ProfileError, UsageError
from bundler.model.facts import ModelFacts
from bundler.model.fixing import Fixing, fix_signature, split_sizes
from bundler.model.plan import Decision
from bundler.model.requirements import FixedSize
from bundler.model.stage import Note
from bundler.model.state import StateLink
from bundler.planning.compile import plan_compilation
from bundler.planning.fit import find_free_sizes
from bundler.planning.growth import check_growth, explain_static
from bundler.planning.presets import PRESETS
from bundler.planning.ranges import apply_ranges
from bundler.planning.request import PlanRequest
from bundler.planning.shapes import name_inputs
from bundler.planning.sizes import GivenSizes, settle_sizes, size_decisions, size_notes
from bundler.planning.traits import wants_ranges
from bundler.profiles.asked import shipped_variants
from bundler.profiles.methods import NONE
from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.registry import find_provider
from bundler.providers.rules import HERE

LEFT_OUT = "left out"
"""The choice in the decision on a variant that is not built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledProfile:
    """A target's profile as one build of one model uses it.

    `profile` has the variants that are built, with precision, ranges and place of compilation for this model, and its
    preset expanded. `left_out` has the variants that are not built, with reasons. `facts` are the model's with the
    sizes in `fixed`; `fixing` has those sizes and the ranges of others as options of stages; `size_decisions` and
    `notes` explain them.
    """

    profile: TargetProfile
    left_out: tuple[Decision, ...]
    facts: ModelFacts
    fixed: tuple[FixedSize, ...]
    fixing: Fixing
    size_decisions: tuple[Decision, ...]
    notes: tuple[Note, ...]

    def only(self, variant: Variant) -> SettledProfile:
        """With this variant only, as automatic precision tries it."""
        return replace(self, profile=self.profile.model_copy(update={"variants": (variant,)}))

    def at_level(self, level: Literal["none", "basic", "extended"]) -> SettledProfile:
        """Optimised ahead of time at this level, where a build found out that a higher one changes the outputs."""
        optimization = self.profile.optimization.model_copy(update={"level": level})
        return replace(self, profile=self.profile.model_copy(update={"optimization": optimization}))


def settle_profile(profile: TargetProfile, facts: ModelFacts, request: PlanRequest) -> SettledProfile:
    """Settle the resolved `profile` for a build of this model.

    Raises `ProfileError` if no variant is left, and `UsageError` for dimensions that the model lacks, for
    incompatible shapes, for ranges that no provider supports, and for states that grow where no variant can.
    """
    profile, left_out = leave_out(profile)
    profile, static = _leave_static_out(profile, request.state)
    if request.calibration is not None and not facts.quantized:
        profile = _apply_recipe(profile)
    profile = _apply_preset(profile)
    given = GivenSizes(
        dimensions=request.dimensions,
        shapes=name_inputs(facts, request.shapes),
        own_dimensions=request.own_dimensions,
        own_shapes=request.own_shapes,
    )
    sizes = settle_sizes(facts, profile, given, request.asker)
    check_growth(request.state, sizes.fixed)
    fixed_facts = replace(facts, signature=fix_signature(facts.signature, sizes.fixed))
    profile = apply_ranges(profile, fixed_facts.signature, sizes.ranges)
    variants = tuple(_settle_layout(_settle_compile(variant, fixed_facts), facts) for variant in profile.variants)
    layout_notes = tuple(_describe_layout(pair, facts) for pair in zip(profile.variants, variants, strict=True))
    return SettledProfile(
        profile=profile.model_copy(update={"variants": variants}),
        left_out=(*left_out, *static),
        facts=fixed_facts,
        fixed=sizes.fixed,
        fixing=replace(split_sizes(facts.signature, sizes.fixed), ranges=sizes.ranges),
        size_decisions=size_decisions(facts.signature, sizes),
        notes=(
            *size_notes(
                fixed_facts,
                profile,
                sizes.fixed,
                given.shapes,
                request.asker,
                grows=any(link.grows is not None for link in request.state),
            ),
            *filter(None, layout_notes),
        ),
    )


def _settle_layout(variant: Variant, facts: ModelFacts) -> Variant:
    """The variant with the options without which its providers compute this model wrong, except where the profile has
    them.
    """
    if not facts.uneven_convolutions:
        return variant
    providers = tuple(
        entry.model_copy(update={"options": {**find_provider(entry.name).uneven_options, **entry.options}})
        for entry in variant.providers
    )
    return variant.model_copy(update={"providers": providers})


def _describe_layout(pair: tuple[Variant, Variant], facts: ModelFacts) -> Note | None:
    before, after = pair
    known = find_provider(after.providers[0].name)
    if before.providers[0].options == after.providers[0].options:
        return None
    options = ", ".join(f"{key}={value}" for key, value in known.uneven_options.items())
    return Note(
        text=f"variant {after.name}: {options}, because {known.title} computed {facts.uneven_convolutions} "
        "convolutions of this kind wrong in its default memory layout where it was measured"
    )


def foresee_profile(profile: TargetProfile) -> TargetProfile:
    """The resolved `profile` as any build uses it, as far as is known without the model.

    Raises `ProfileError` where no variant is left.
    """
    return _apply_preset(leave_out(profile)[0])


def leave_out(profile: TargetProfile) -> tuple[TargetProfile, tuple[Decision, ...]]:
    """`profile` without the variants that require a custom build of ONNX Runtime, and a decision for each.

    Raises `ProfileError` when none is left.
    """
    kept = shipped_variants(profile)
    gone = [variant for variant in profile.variants if variant not in kept]
    if not kept:
        raise ProfileError(
            f"{profile.id} requires a custom build of ONNX Runtime",
            details=tuple(f"{variant.name}: {explain_left_out(variant)}" for variant in gone),
            hint="if you have one, build with --set runtime.custom_build=true",
        )
    decisions = tuple(
        Decision(subject=f"variant {variant.name}", choice=LEFT_OUT, reason=explain_left_out(variant))
        for variant in gone
    )
    return profile.model_copy(update={"variants": kept}), decisions


def _leave_static_out(profile: TargetProfile, state: Sequence[StateLink]) -> tuple[TargetProfile, tuple[Decision, ...]]:
    """`profile` without the variants that cannot run states that grow, and a decision for each."""
    reasons = {variant.name: explain_static(variant, state) for variant in profile.variants}
    decisions = tuple(
        Decision(subject=f"variant {name}", choice=LEFT_OUT, reason=reason)
        for name, reason in reasons.items()
        if reason
    )
    if len(decisions) == len(profile.variants):
        raise UsageError(
            f"no variant of {profile.id} can run a state that grows",
            details=tuple(f"{name}: {reason}" for name, reason in reasons.items()),
            hint="choose a target that supports dynamic sizes, or a model with a state of fixed size, such as a window",
        )
    kept = tuple(variant for variant in profile.variants if not reasons[variant.name])
    return (profile.model_copy(update={"variants": kept}) if decisions else profile), decisions


def explain_left_out(variant: Variant) -> str:
    """Why a variant is not built, and what to use instead."""
    first = find_provider(variant.providers[0].name)
    sentences = ["it requires a custom build of ONNX Runtime (if you have one, set runtime.custom_build)"]
    sentences += [first.presence.gone.rstrip(".")] if first.presence.gone else []
    sentences += [f"Replacement: {first.presence.instead.rstrip('.')}"] if first.presence.instead else []
    return ". ".join(sentences)


def _apply_recipe(profile: TargetProfile) -> TargetProfile:
    """`profile` with its method for calibration data, unless another was set."""
    if "method" in profile.precision.model_fields_set or profile.optimization.preset != NONE:
        return profile
    variants = tuple(
        variant.model_copy(update={"precision": variant.calibrated or profile.precision.calibrated})
        if variant.precision is None
        else variant
        for variant in profile.variants
    )
    return profile.model_copy(update={"variants": variants})


def _apply_preset(profile: TargetProfile) -> TargetProfile:
    """`profile` with its preset expanded; settings of the profile take precedence."""
    preset = PRESETS.get(profile.optimization.preset)
    if preset is None:
        return profile
    optimization, fusion, precision = profile.optimization, profile.fusion, profile.precision
    if optimization.level == "auto":
        optimization = optimization.model_copy(update={"level": preset.level})
    if fusion.model_type == NONE and preset.fuses:
        disabled = (*fusion.disabled, *preset.disabled)
        update = {"model_type": "auto", "gelu_approximation": preset.gelu_approximation, "disabled": disabled}
        fusion = fusion.model_copy(update=update)
    if precision.method == NONE and preset.precision != NONE:
        precision = precision.model_copy(update={"method": preset.precision})
    return profile.model_copy(update={"optimization": optimization, "fusion": fusion, "precision": precision})


def _settle_compile(variant: Variant, facts: ModelFacts) -> Variant:
    """The variant with its place of compilation: without ranges that its compiler requires for dynamic sizes, it is
    compiled on the device.
    """
    if plan_compilation(variant) is None or not wants_ranges(variant) or not find_free_sizes(facts):
        return variant
    return variant.model_copy(update={"compile": {**variant.compile, HERE.key: False}})
