"""Which targets suit a model, and why, in plain words. Pure: from facts and profiles alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bundler.model.facts import ModelFacts
from bundler.model.free_dimensions import Key, Role, Sizes, free_dimensions, shown_name
from bundler.model.open_sizes import show_options
from bundler.model.signature import Port
from bundler.planning.compile import plan_compilation, plan_preparation
from bundler.planning.traits import explain_rounding, judge_free_sizes, wants_ranges
from bundler.profiles.asked import shipped_variants
from bundler.profiles.methods import METHODS, NONE
from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.registry import find_provider

OPEN_SIZE = "N"
"""In place of the size of a dimension that only the user knows."""

_LEAST_SHOWN_BYTES = 100_000
"""Bytes below which a size in MB would be shown as 0."""
_FEW_WEIGHT_BYTES = 65_536
"""Bytes of weights up to which the transfer to an accelerator costs more than it saves, unless the model has
convolutions, which compute much with few weights.
"""

_TREES = "ai.onnx.ml.TreeEnsemble"
_STANDARD = ("ai.onnx", "ai.onnx.ml", "com.microsoft", "")
_PRODUCTS = re.compile("Conv|MatMul|Gemm|Attention|LSTM|GRU|RNN|Einsum")
"""Operators that accelerators speed up."""
_INTEGER = re.compile(r"(com\.microsoft\.)?(QLinear\w+|Q(Gemm|Attention)|\w+Integer|DynamicQuantize\w+)")
"""Integer operators; most compilers for devices expect float operators between `QuantizeLinear` and
`DequantizeLinear` instead.
"""
_BATCH = re.compile(r"n|b|batch\w*|\w*_batch|unk__0", re.IGNORECASE)
_SEQUENCE = re.compile(r"\w*(seq|token)\w*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedSizes:
    """Sizes for a command, as text: `dimensions` by name, `shapes` by input, one text for each axis."""

    dimensions: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether the user has to fill in some."""
        return OPEN_SIZE in self.dimensions.values() or any(OPEN_SIZE in shape for shape in self.shapes.values())

    def options(self) -> tuple[str, ...]:
        """The options for a command."""
        named = [word for name, size in self.dimensions.items() for word in ("--dim", f"{name}={size}")]
        shaped = [word for name, sizes in self.shapes.items() for word in ("--shape", f"{name}={','.join(sizes)}")]
        return (*named, *shaped)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A kind of device with its targets, the most general first: `accelerated` for models that an accelerator speeds
    up, `plain` for others.
    """

    title: str
    accelerated: tuple[str, ...]
    plain: tuple[str, ...] = ()


FAMILIES = (
    Family(
        title="a phone",
        accelerated=("snapdragon-8-series", "snapdragon-8g3", "android-arm64"),
        plain=("android-arm64",),
    ),
    Family(title="a browser", accelerated=("web-webgpu", "web-wasm"), plain=("web-wasm",)),
    Family(title="a server", accelerated=("linux-x64",), plain=("linux-x64",)),
    Family(title="a desktop GPU", accelerated=("rtx-4090", "rtx-4090-windows")),
)


def family_targets(family: Family, facts: ModelFacts) -> tuple[str, ...]:
    """Ids to try for a family, the one that suits the model best first."""
    return family.plain if describe_light(facts) else family.accelerated


def describe_light(facts: ModelFacts) -> str:
    """Why no accelerator makes the model faster; empty where one may."""
    if any(name.startswith(_TREES) for name in facts.operators):
        return "tree ensembles are computed by the CPU on every device"
    if not any(_PRODUCTS.search(name) for name in facts.operators):
        return "it has no convolutions and no matrix products, the operators that accelerators speed up"
    if facts.weight_bytes + facts.generated_bytes <= _FEW_WEIGHT_BYTES and not any(
        "Conv" in name for name in facts.operators
    ):
        return "it is so small that the transfer to an accelerator costs more than it saves"
    return ""


def suggest_sizes(facts: ModelFacts, profile: TargetProfile) -> SuggestedSizes:
    """Sizes for the dynamic dimensions that must be fixed for the target; `N` where only the user knows."""
    return _suggest_all(facts, profile) if _wants_static(profile) else SuggestedSizes()


def _suggest_all(facts: ModelFacts, profile: TargetProfile) -> SuggestedSizes:
    named = {name: _suggest_size(name, profile) for name in facts.signature.symbols if name not in profile.dimensions}
    ports = [port for port in facts.signature.inputs if port.name not in profile.shapes and _has_unnamed(port)]
    roles = {item.key: item.role for item in free_dimensions(facts.signature)}
    shapes = {port.name: tuple(_suggest_axis(port, axis, named, roles) for axis in _axes(port)) for port in ports}
    shaped = {size for port in ports for size in port.type.shape or () if isinstance(size, str)}
    return SuggestedSizes(
        dimensions={name: size for name, size in named.items() if name not in shaped},
        shapes=shapes,
    )


def _has_unnamed(port: Port) -> bool:
    return port.type.kind == "tensor" and None in (port.type.shape or ())


def _axes(port: Port) -> range:
    return range(len(port.type.shape or ()))


def _suggest_axis(port: Port, axis: int, named: Mapping[str, str], roles: Mapping[Key, Role]) -> str:
    """The size that the model has or the suggestion gives; `?` where the target fixes it by its name."""
    size = port.type.shape[axis] if port.type.shape else None
    if isinstance(size, int):
        return str(size)
    if isinstance(size, str):
        return named.get(size, "?")
    role = roles.get((port.name, axis))
    return str(Sizes().of(role)) if role in ("batch", "channel") else OPEN_SIZE


def explain_fit(facts: ModelFacts, profile: TargetProfile) -> Iterator[str]:
    """Why the target suits the model, and how it is prepared, one sentence a line."""
    variants = shipped_variants(profile)
    yield from _explain_budget(facts, profile)
    names = [f"{variant.name} ({_title(variant)})" for variant in variants]
    yield f"it runs as {names[0]}" + "".join(f", else as {name}" for name in names[1:])
    light = describe_light(facts)
    if light and any(not find_provider(variant.providers[0].name).graph.takes_fusions for variant in variants):
        yield light
    for variant in variants:
        texts = (*_explain_precision(facts, profile, variant), *_explain_making(facts, profile, variant))
        if texts:
            yield f"{variant.name}: {'; '.join(texts)}"
    yield from _explain_dimensions(facts, profile)
    yield from _explain_operators(facts, variants[0])


def _title(variant: Variant) -> str:
    return find_provider(variant.providers[0].name).title


def _wants_static(profile: TargetProfile) -> bool:
    return any(judge_free_sizes(variant) == "fixed" for variant in shipped_variants(profile))


def _suggest_size(name: str, profile: TargetProfile) -> str:
    if _BATCH.fullmatch(name):
        return "1"
    return str(profile.language_model.prompt_tokens) if _SEQUENCE.fullmatch(name) else OPEN_SIZE


def _explain_budget(facts: ModelFacts, profile: TargetProfile) -> Iterator[str]:
    limit = profile.budget.model_mb
    if limit is not None and facts.total_bytes <= limit * 1e6:
        size = f"{facts.total_bytes / 1e6:.1f} MB" if facts.total_bytes >= _LEAST_SHOWN_BYTES else "less than 0.1 MB"
        yield f"its size, {size}, is within the target's budget of {limit:g} MB"


def _explain_precision(facts: ModelFacts, profile: TargetProfile, variant: Variant) -> Iterator[str]:
    """The precision of the shipped model, if it differs from the original's."""
    provider = find_provider(variant.providers[0].name)
    integers = [name for name in facts.operators if _INTEGER.fullmatch(name)]
    if integers and provider.compiler is not None:
        yield (
            f"the provider may not support the model's integer operators ({', '.join(integers[:3])}): it expects "
            "QuantizeLinear and DequantizeLinear around float operators"
        )
    elif facts.quantized:
        if not provider.graph.takes_fusions:
            yield "the model is used unchanged: it is already quantised"
    else:
        yield from _explain_floats(profile, variant)


def _explain_floats(profile: TargetProfile, variant: Variant) -> Iterator[str]:
    method = variant.precision or profile.precision.method
    calibrated = variant.calibrated or profile.precision.calibrated
    if method in METHODS:
        yield f"converted to {METHODS[method].title}"
    elif rounding := explain_rounding(profile, variant):
        yield rounding
    if method == NONE and calibrated in METHODS:
        yield f"with --calibration DATA, {METHODS[calibrated].title}"


def _explain_making(facts: ModelFacts, profile: TargetProfile, variant: Variant) -> Iterator[str]:
    compilation, preparation = plan_compilation(variant), plan_preparation(variant)
    if compilation is not None and wants_ranges(variant) and _leaves_sizes(facts, profile):
        where = "where sizes are fixed (--dim, --shape), else on the device, by prewarm or at the first start"
        yield f"compiled by bundler {where}"
    elif compilation is not None:
        yield "compiled by bundler, not on the device"
    elif preparation is not None:
        yield f"the {preparation.thing} is generated on the device, at install or first start"


def _leaves_sizes(facts: ModelFacts, profile: TargetProfile) -> bool:
    """Whether inputs still have open sizes with the suggested command."""
    if _wants_static(profile):
        return False  # the suggestion fixes all
    shapes = [port.type.shape for port in facts.signature.inputs]
    unnamed = any(shape is None or None in shape for shape in shapes)
    return unnamed or any(name not in profile.dimensions for name in facts.signature.symbols)


def _explain_dimensions(facts: ModelFacts, profile: TargetProfile) -> Iterator[str]:
    fixed = {name: profile.dimensions[name] for name in facts.signature.symbols if name in profile.dimensions}
    if fixed:
        yield "the target fixes " + ", ".join(f"{name} at {size}" for name, size in fixed.items())
    yield from _explain_left(facts, profile)
    wanted = suggest_sizes(facts, profile)
    if wanted.dimensions:
        yield f"its accelerator does not support dynamic dimensions: fix {', '.join(wanted.dimensions)} with --dim"
    if wanted.shapes:
        inputs = ", ".join(map(shown_name, wanted.shapes))
        yield f"its accelerator does not support unnamed dynamic dimensions: fix the sizes of {inputs} with --shape"
    if wanted.is_open:
        yield f"replace {OPEN_SIZE} below with the sizes that you need"


def _explain_left(facts: ModelFacts, profile: TargetProfile) -> Iterator[str]:
    """What happens to open sizes if a provider accepts the model with them."""
    left = [variant.name for variant in shipped_variants(profile) if judge_free_sizes(variant) == "cpu"]
    options = _suggest_all(facts, profile).options()
    if left and options and not _wants_static(profile):
        names, words = ", ".join(left), show_options(options)
        yield f"{names}: nodes with open sizes run on the CPU; {words} assigns more of them to the accelerator"


def _explain_operators(facts: ModelFacts, variant: Variant) -> Iterator[str]:
    foreign = [name for name in facts.custom_domains if name not in _STANDARD]
    if foreign:
        yield f"operators of {', '.join(foreign)} are not standard: it only runs where the runtime has them"
    if facts.control_flow and judge_free_sizes(variant) == "fixed":
        yield f"loops and branches run on the CPU, so {_title(variant)} may get the graph in several partitions"
