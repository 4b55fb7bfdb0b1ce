"""Whether a model fits the devices of a variant. Pure, as all planning."""

from __future__ import annotations

from bundler.model.errors import UsageError
from bundler.model.facts import ModelFacts
from bundler.model.free_dimensions import tensor_type, unnamed_labels
from bundler.model.open_sizes import Asker, explain_command
from bundler.planning.precision import CALIBRATION_HINT
from bundler.planning.traits import judge_free_sizes
from bundler.profiles.asked import as_texts
from bundler.profiles.methods import Loss
from bundler.profiles.schema import Variant
from bundler.providers.registry import find_provider


def check_shapes(variant: Variant, facts: ModelFacts, asker: Asker) -> None:
    """Raise `UsageError` when the provider takes fixed sizes only, and the model has others."""
    if judge_free_sizes(variant) != "refused":
        return
    known = find_provider(variant.providers[0].name)
    details = find_free_sizes(facts)
    if details:
        raise UsageError(
            f"variant {variant.name} runs on {known.title}, which takes fixed sizes only",
            details=details,
            hint=f"fix them{explain_command(facts.signature, asker)}",
        )


def check_numbers(variant: Variant, facts: ModelFacts, loss: Loss) -> None:
    """Raise `UsageError` when the device takes quantised models alone, and this one is not and will not be."""
    known = find_provider(variant.providers[0].name)
    if known.numerics.wants_integers is None or facts.quantized or loss not in ("none", "half", "bfloat16"):
        return
    reason = known.numerics.wants_integers(as_texts(variant.providers[0]))
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
