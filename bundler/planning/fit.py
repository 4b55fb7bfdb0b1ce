"""What of a profile a build uses, and whether the model fits its devices. Pure, as all planning."""

from __future__ import annotations

from collections.abc import Sequence

from bundler.model.errors import ProfileError, UsageError
from bundler.model.facts import ModelFacts
from bundler.model.free_dimensions import tensor_type, unnamed_labels
from bundler.model.open_sizes import explain_command
from bundler.model.plan import Decision
from bundler.planning.precision import CALIBRATION_HINT
from bundler.profiles.methods import NONE, Loss
from bundler.profiles.outlook import as_texts, explain_left_out, judge_free_sizes
from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.registry import find_provider

LEFT_OUT = "left out"
"""What a decision says of a variant that is not built."""


def leave_out(profile: TargetProfile) -> tuple[TargetProfile, tuple[Decision, ...]]:
    """`profile` without the variants that only a runtime of one's own build can run, and a decision for each.

    Raises `ProfileError` when none is left.
    """
    if profile.runtime.custom_build:
        return profile, ()
    kept = tuple(variant for variant in profile.variants if not variant.custom_build)
    gone = [variant for variant in profile.variants if variant.custom_build]
    if not kept:
        raise ProfileError(
            f"{profile.id} runs only on a runtime of your own build",
            details=tuple(f"{variant.name}: {_explain(variant)}" for variant in gone),
            hint="with such a runtime at hand, build with --set runtime.custom_build=true",
        )
    decisions = tuple(
        Decision(subject=f"variant {variant.name}", choice=LEFT_OUT, reason=_explain(variant)) for variant in gone
    )
    return (profile.model_copy(update={"variants": kept}) if gone else profile), decisions


def _explain(variant: Variant) -> str:
    return explain_left_out(find_provider(variant.providers[0].name))


def apply_recipe(profile: TargetProfile, facts: ModelFacts, *, calibrated: bool) -> TargetProfile:
    """`profile` with the method that it names for calibration data, where there are some and nothing else was asked.

    A model that came quantised keeps its own numbers.
    """
    if not calibrated or facts.quantized or "method" in profile.precision.model_fields_set:
        return profile
    if profile.optimization.preset != NONE:
        return profile
    variants = tuple(
        variant.model_copy(update={"precision": variant.calibrated or profile.precision.calibrated})
        if variant.precision is None
        else variant
        for variant in profile.variants
    )
    return profile.model_copy(update={"variants": variants})


def check_shapes(
    variant: Variant,
    facts: ModelFacts,
    command: Sequence[str] = (),
    picture: Sequence[int] = (),
    *,
    project: str = "",
) -> None:
    """Raise `UsageError` when the provider takes fixed sizes only, and the model has others. `command` is what the user
    ran, to be said again with sizes, or `project` the file that asks; `picture` has the height and the width that
    samples are prepared to, where known.
    """
    if judge_free_sizes(variant) != "refused":
        return
    known = find_provider(variant.providers[0].name)
    details = find_free_sizes(facts)
    if details:
        raise UsageError(
            f"variant {variant.name} runs on {known.title}, which takes fixed sizes only",
            details=details,
            hint=f"fix them{explain_command(facts.signature, command, picture, project=project)}",
        )


def check_numbers(variant: Variant, facts: ModelFacts, loss: Loss) -> None:
    """Raise `UsageError` when the device takes quantised models alone, and this one is not and will not be."""
    known = find_provider(variant.providers[0].name)
    if known.wants_integers is None or facts.quantized or loss not in ("none", "half", "bfloat16"):
        return
    reason = known.wants_integers(as_texts(variant.providers[0]))
    if reason:
        raise UsageError(
            f"variant {variant.name} takes quantised models only ({reason})",
            details=(f"{facts.name} is in floating point",),
            hint=CALIBRATION_HINT,
        )


def find_free_sizes(facts: ModelFacts) -> tuple[str, ...]:
    """A sentence for each size of an input that is not fixed."""
    named = [f"dimension {name!r} is dynamic" for name in facts.signature.symbols]
    ranks = [
        f"input {port.name!r} has sizes that the model does not name, nor say how many"
        for port in facts.signature.inputs
        if tensor_type(port.type).shape is None
    ]
    unnamed = unnamed_labels(facts.signature)
    told = [f"{', '.join(unnamed)} {'is' if len(unnamed) == 1 else 'are'} dynamic, and unnamed"] if unnamed else []
    return (*named, *told, *ranks)
