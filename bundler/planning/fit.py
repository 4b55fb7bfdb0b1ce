"""Whether a model is compatible with a variant's devices. Pure, like all planning."""

from __future__ import annotations

from fnmatch import fnmatchcase

from bundler.model.errors import OpenSizesError, UsageError
from bundler.model.facts import ModelFacts
from bundler.model.free_dimensions import tensor_type, unnamed_labels
from bundler.model.open_sizes import Asker, explain_command
from bundler.planning.precision import CALIBRATION_HINT
from bundler.planning.traits import judge_free_sizes
from bundler.profiles.asked import as_texts, is_compiled_here
from bundler.profiles.methods import Loss
from bundler.profiles.schema import Variant
from bundler.providers.registry import find_provider

_CLASSICAL = "ai.onnx.ml."


def check_operators(variant: Variant, facts: ModelFacts) -> None:
    """Raise `UsageError` when a compiler would get operators of ai.onnx.ml alone, which no accelerator has, or when the
    model has what the provider's builds of the runtime lack.
    """
    _check_builds(variant, facts)
    if is_compiled_here(variant) and all(name.startswith(_CLASSICAL) for name in facts.operators):
        title = find_provider(variant.providers[0].name).title
        raise UsageError(
            f"variant {variant.name} is compiled for {title}, which has no operator of ai.onnx.ml",
            details=(f"the model has only {', '.join(facts.operators)}",),
            hint="models of ai.onnx.ml run on the CPU alone: choose a target of the CPU (`bundler targets list`)",
        )


def _check_builds(variant: Variant, facts: ModelFacts) -> None:
    known = find_provider(variant.providers[0].name)
    lacks = known.graph.lacks
    if lacks is None:
        return
    names = [name for name in facts.operators if any(fnmatchcase(name, pattern) for pattern in lacks.operators)]
    ports = (*facts.signature.inputs, *facts.signature.outputs)
    texts = [repr(port.name) for port in ports if lacks.strings and tensor_type(port.type).element_type == "str"]
    details = (
        *((f"the model has {', '.join(names)}",) if names else ()),
        *((f"strings: {', '.join(texts)}",) if texts else ()),
    )
    if details:
        raise UsageError(
            f"variant {variant.name}: the builds of the runtime with {known.title} lack what this model requires",
            details=details,
            hint=lacks.instead,
        )


def check_shapes(variant: Variant, facts: ModelFacts, asker: Asker) -> None:
    """Raise `UsageError` when the provider requires fixed sizes and the model has dynamic ones."""
    if judge_free_sizes(variant) != "fixed":
        return
    known = find_provider(variant.providers[0].name)
    details = find_free_sizes(facts)
    if details:
        raise OpenSizesError(
            f"variant {variant.name} runs on {known.title}, which requires fixed sizes",
            details=details,
            hint=f"fix them{explain_command(facts.signature, asker)}",
        )


def check_numbers(variant: Variant, facts: ModelFacts, loss: Loss) -> None:
    """Raise `UsageError` when the device requires a quantised model, and this one is not and will not be."""
    known = find_provider(variant.providers[0].name)
    if known.numerics.wants_integers is None or facts.quantized or loss not in ("none", "half", "bfloat16"):
        return
    reason = known.numerics.wants_integers(as_texts(variant.providers[0]))
    if reason:
        raise UsageError(
            f"variant {variant.name} requires a quantised model ({reason})",
            details=(f"{facts.name} is in floating point",),
            hint=CALIBRATION_HINT,
        )


def find_free_sizes(facts: ModelFacts) -> tuple[str, ...]:
    """A sentence for each dynamic size of an input."""
    named = [f"dimension {name!r} is dynamic" for name in facts.signature.symbols]
    ranks = [
        f"input {port.name!r} has unknown rank"
        for port in facts.signature.inputs
        if tensor_type(port.type).shape is None
    ]
    unnamed = unnamed_labels(facts.signature)
    sizes = [f"{', '.join(unnamed)} {'is' if len(unnamed) == 1 else 'are'} dynamic and unnamed"] if unnamed else []
    return (*named, *sizes, *ranks)
