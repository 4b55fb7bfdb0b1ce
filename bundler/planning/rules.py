"""Rules for optimisation ahead of time and for the session on the device.

Each is a pure function of the model's facts and the profile, so every building machine decides the same. The figures
behind them are in benchmarks/RESULTS.md; ratios there are to a plain session on the raw model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bundler.model.facts import ModelFacts
from bundler.model.plan import Decision
from bundler.profiles.options import session_rules
from bundler.profiles.schema import TargetProfile
from bundler.providers.graph_optimizers import LAYOUT_OPTIMIZERS, OPTIMIZERS

CONVOLUTIONS = ("Conv", "QLinearConv", "ConvInteger", "com.microsoft.FusedConv")
"""Operators whose kernels want a memory layout (NCHWc, NHWC) that depends on the device's own CPU."""

EXTERNAL_WEIGHTS = 1_000_000
"""Weights of at least this many bytes are stored in a file that the runtime maps instead of parsing."""

EXTERNAL_TENSOR = 16_384
"""Smaller tensors stay in the model: the runtime maps each external tensor separately, which added a fifth to the load
time of a network with many small tensors."""

PARALLEL_PREPACKING = 8_000_000
"""From this many bytes of weights on, packing them on all threads shortens the load time."""

SEQUENTIAL_PREPACKING = 250_000_000
"""From this many bytes of weights on they are packed one after another, and each is released once it is packed. On all
threads the runtime releases none before the last: with 604 MB on two cores the peak was 2.06 instead of 1.17 times the
weights, at 1.08 times the load time; with 201 MB the load time was 0.94 times."""

TINY_NODES = 64
TINY_WEIGHTS = 65_536
TINY_MEMORY = 1_000_000
"""Nodes, bytes of weights, and bytes of weights and activations: below all three, a thread pool costs more than it
saves."""

GENERATED_SHARE = 2
"""Generated constants larger than this multiple of the file are not stored: they would dominate the bundle's size."""

ENABLE_ALL, DISABLE_ALL = "ORT_ENABLE_ALL", "ORT_DISABLE_ALL"
"""Levels by the runtime's own names, as profiles and `runtime.json` have them."""

ADDRESS_SPACE = 2**32
"""Bytes that WebAssembly addresses (the runtime is built for 32 bits), for weights and activations."""

PROTOBUF_LIMIT = 2**31 - 1
"""Bytes that one protobuf message (an ONNX file without external data) or one ORT-format file can hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizationStage:
    """One optimisation stage with its options and reason."""

    name: str
    options: Mapping[str, Any]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizationRule:
    """Optimisation ahead of time (`stages`), and the session of the result on the device."""

    stages: tuple[OptimizationStage, ...]
    session: Mapping[str, Any] = field(default_factory=dict)
    session_config: Mapping[str, str] = field(default_factory=dict)
    disabled_optimizers: tuple[str, ...] = ()
    device_cache: bool = False
    decisions: tuple[Decision, ...] = ()


def choose_optimization(facts: ModelFacts, profile: TargetProfile) -> OptimizationRule:
    """The rule for one model with fixed sizes, and one target."""
    level = choose_level(facts, profile)
    model_format = _choose_format(facts, profile)
    layout = facts.has_operator(*CONVOLUTIONS)
    opening = _choose_opening(layout=layout, optimized=level.choice != "none")
    memory = _choose_memory(facts, profile)
    threads = choose_threads(facts, layout=layout)
    packing = _choose_packing(facts, layout=layout)
    return OptimizationRule(
        stages=optimization_stages(profile, level, model_format, EXTERNAL_WEIGHTS),
        session={**opening.session, **memory.session, **threads.session},
        session_config=packing.config,
        disabled_optimizers=opening.disabled,
        device_cache=layout and level.choice != "none" and model_format.choice == "onnx",
        decisions=tuple(
            choice.decision
            for choice in (choose_simplifier(profile), level, model_format, opening, memory, threads, packing)
            if choice.decision
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One rule's choice and its session settings; `decision` explains it to people."""

    choice: str = ""
    session: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    disabled: tuple[str, ...] = ()
    decision: Decision | None = None


def choose_simplifier(profile: TargetProfile) -> Choice:
    """The simplifier to run first, if any."""
    asked = profile.optimization.simplifier
    if asked != "none":
        return Choice(decision=Decision(subject="simplifier", choice=asked, reason="set by the profile"))
    reason = "no simplifier reduced size or time of the benchmark models; none runs unless requested"
    return Choice(decision=Decision(subject="simplifier", choice="none", reason=reason))


def choose_level(facts: ModelFacts, profile: TargetProfile) -> Choice:
    """The optimisation level."""
    asked = profile.optimization.level
    if asked != "auto":
        return Choice(choice=asked, decision=Decision(subject="level", choice=asked, reason="set by the profile"))
    if facts.generated_bytes > GENERATED_SHARE * facts.total_bytes + EXTERNAL_WEIGHTS:
        megabytes = facts.generated_bytes / 1e6
        reason = (
            f"the model generates its weights at each start; stored, they would add {megabytes:.0f} MB to the bundle"
        )
        return Choice(choice="none", decision=Decision(subject="level", choice="none", reason=reason))
    reason = "the highest level that is independent of the building machine's CPU"
    return Choice(choice="extended", decision=Decision(subject="level", choice="extended", reason=reason))


_TREES = "ai.onnx.ml.TreeEnsemble"
"""The operator of opset 5, whose trees are tensors."""
_FROM_MEMORY = ("jvm", "android")
"""Ecosystems whose loaders open a model from memory."""


def _choose_format(facts: ModelFacts, profile: TargetProfile) -> Choice:
    asked = profile.optimization.format
    if asked != "auto":
        choice, reason = asked, "set by the profile"
    elif has_trees(facts) and profile.bundle.ecosystem in _FROM_MEMORY and facts.has_operator(_TREES):
        # Measured with 1.29.0 for Java: "Error Data of TensorProto … should be stored in */_ORT_MEM_ADDR_/*".
        choice, reason = "onnx", "the runtime cannot open this operator's trees in the ORT format from memory"
    elif has_trees(facts):
        choice, reason = "ort", "tree ensembles load fastest from it, and need no memory layout"
    elif facts.has_operator(*CONVOLUTIONS):
        choice, reason = "onnx", "the ORT format would lose the memory layout that convolutions require"
    else:
        choice, reason = "onnx", "above 1 MB of weights, large tensors are stored in a file that the runtime maps"
    if choice == "ort" and facts.total_bytes >= PROTOBUF_LIMIT:
        choice, reason = "onnx", "an ORT-format file cannot hold more than 2 GB"
    return Choice(choice=choice, decision=Decision(subject="format", choice=choice, reason=reason))


def has_trees(facts: ModelFacts) -> bool:
    """Whether the model has a tree ensemble."""
    return any(name.startswith("ai.onnx.ml.TreeEnsemble") for name in facts.operators)


def _choose_opening(*, layout: bool, optimized: bool) -> Choice:
    """The optimisers that run on the device: only those that choose a layout for its CPU."""
    if not optimized:
        reason = "not optimised ahead of time, so the runtime optimises at every start"
        decision = Decision(subject="optimisation on the device", choice="all", reason=reason)
        return Choice(session={"graph_optimization_level": ENABLE_ALL}, decision=decision)
    if not layout:
        reason = "fully optimised ahead of time"
        decision = Decision(subject="optimisation on the device", choice="none", reason=reason)
        return Choice(session={"graph_optimization_level": DISABLE_ALL}, decision=decision)
    reason = "convolutions use the memory layout of the device's CPU"
    decision = Decision(subject="optimisation on the device", choice="layout only", reason=reason)
    disabled = tuple(name for name in OPTIMIZERS if name not in LAYOUT_OPTIMIZERS)
    return Choice(session={"graph_optimization_level": ENABLE_ALL}, disabled=disabled, decision=decision)


def _choose_memory(facts: ModelFacts, profile: TargetProfile) -> Choice:
    """Memory reuse is off without known shapes: planning it delays every start and saves little."""
    unknown = any(not isinstance(size, int) for port in facts.signature.inputs for size in (port.type.shape or ()))
    if not unknown:
        return Choice()
    if "enable_mem_reuse" not in session_rules(profile.platform.system, profile.bundle.ecosystem):
        reason = "input sizes are unknown, so it only delays the start; the runtime's API here cannot turn it off"
        return Choice(decision=Decision(subject="planned memory reuse", choice="on", reason=reason))
    reason = "input sizes are unknown, so planning memory reuse only delays the start"
    decision = Decision(subject="planned memory reuse", choice="off", reason=reason)
    return Choice(session={"enable_mem_reuse": False}, decision=decision)


def choose_threads(facts: ModelFacts, *, layout: bool) -> Choice:
    """One thread for tiny models only; an image filter has few weights but much work, so memory counts, too."""
    weights = facts.weight_bytes + facts.generated_bytes
    memory = facts.peak_memory_bytes
    tiny = facts.node_count <= TINY_NODES and weights <= TINY_WEIGHTS and memory is not None and memory <= TINY_MEMORY
    # The number of threads changes the order of summation in tree ensembles, and so the last bits.
    if not tiny or layout or facts.control_flow or has_trees(facts):
        return Choice()
    decision = Decision(subject="threads", choice="1", reason="the model is too small to benefit from a thread pool")
    return Choice(session={"intra_op_num_threads": 1}, decision=decision)


def _choose_packing(facts: ModelFacts, *, layout: bool) -> Choice:
    if layout or facts.weight_bytes < PARALLEL_PREPACKING:
        return Choice()
    if facts.weight_bytes >= SEQUENTIAL_PREPACKING:
        reason = "packing on all threads would need twice the memory of the weights while the model loads"
        return Choice(decision=Decision(subject="weight packing", choice="sequential", reason=reason))
    reason = "packing large weights dominates the load time"
    decision = Decision(subject="weight packing", choice="parallel", reason=reason)
    return Choice(config={"session.prepack.enable_parallel": "1"}, decision=decision)


def optimization_stages(
    profile: TargetProfile, level: Choice, model_format: Choice, external_minimum: int
) -> tuple[OptimizationStage, ...]:
    """The optimisation stages; weights of at least `external_minimum` bytes are stored in an external file."""
    optimize = OptimizationStage(
        name="optimize",
        options={
            "level": level.choice,
            "external_threshold": EXTERNAL_TENSOR if model_format.choice == "onnx" else None,
            "external_minimum": external_minimum,
            # Signed 8-bit operators are native on Arm; on x86 the unsigned ones are faster. The target decides, not
            # the building machine.
            "int8_allowed": profile.platform.architecture.startswith("arm"),
        },
        reason="offline optimisation at a level that every CPU of the target supports",
    )
    if model_format.choice == "onnx":
        return (optimize,)
    decision = model_format.decision
    return (optimize, OptimizationStage(name="convert_ort", options={}, reason=decision.reason if decision else ""))


def find_obstacles(facts: ModelFacts, profile: TargetProfile) -> tuple[str, ...]:
    """Why a model is incompatible with a target; empty if it is compatible."""
    limit = profile.budget.model_mb
    found = []
    if limit is not None and facts.total_bytes > limit * 1e6:
        found.append(f"the model has {facts.total_bytes / 1e6:.0f} MB; the target's budget is {limit:g} MB")
    if profile.platform.architecture == "wasm32" and facts.total_bytes >= ADDRESS_SPACE:
        found.append(f"the model has {facts.total_bytes / 1e9:.1f} GB; WebAssembly can address 4 GB in total")
    return tuple(found)
