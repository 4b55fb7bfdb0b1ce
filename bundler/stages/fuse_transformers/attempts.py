"""Try a model type on a model, and choose the best of several attempts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import onnx
from onnx import ModelProto

from bundler.model.errors import StageError
from bundler.onnxkit.structure import count_operators, read_structure
from bundler.stages.fuse_transformers.detection import Candidate, count_attentions, find_candidates
from bundler.stages.fuse_transformers.heads import find_heads
from bundler.stages.fuse_transformers.libraries import LIBRARY_ERRORS, Choice, fuse
from bundler.stages.fuse_transformers.preparing import choose_level, prepare_model
from bundler.stages.fuse_transformers.spec import MODEL_TYPES, TOOLS_MODEL_TYPES, Options

_DOMAIN: Final = "com.microsoft."
_ATTENTIONS: Final = frozenset(
    {"Attention", "MultiHeadAttention", "GroupQueryAttention", "PackedAttention", "PackedMultiHeadAttention"}
)
_FUSED: Final = (
    _ATTENTIONS
    | {"BiasAdd", "BiasGelu", "BiasSplitGelu", "EmbedLayerNormalization", "FastGelu", "Gelu", "GroupNorm"}
    | {"LayerNormalization", "NhwcConv", "QOrderedAttention", "QOrderedGelu", "QOrderedLayerNormalization"}
    | {"QOrderedMatMul", "QuickGelu", "RemovePadding", "RestorePadding", "RotaryEmbedding"}
    | {"SimplifiedLayerNormalization", "SkipGroupNorm", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}
)
_ENCODER: Final = Candidate(model_type="bert", reason="attention over tokens, as in an encoder")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is to be fused: the model's file, its structure, and the checked options."""

    source: Path
    structure: ModelProto
    options: Options
    disabled: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One model type tried. `fused` counts new operators by name; `problem` is why it failed."""

    candidate: Candidate
    choice: Choice
    level: str
    model: ModelProto | None = None
    fused: Mapping[str, int]
    problem: str = ""

    @property
    def attentions(self) -> int:
        """Fused attentions."""
        return sum(count for name, count in self.fused.items() if name.removeprefix(_DOMAIN) in _ATTENTIONS)

    @property
    def score(self) -> tuple[int, int]:
        """Rank of the attempt: by fused attentions, then by all fused operators."""
        return self.attentions, sum(self.fused.values())


def list_candidates(subject: Subject) -> tuple[Candidate, ...]:
    """The types to try: the given one, or those that may fit the graph. Raises `StageError` for no transformer."""
    options = subject.options
    if options.model_type != "auto":
        return (Candidate(model_type=options.model_type, reason="named by the caller"),)
    if not count_attentions(subject.structure):
        hint = "disable fusion for this model, or name its model_type"
        details = _fused_before(subject.structure)
        raise StageError("nothing was fused: the model has no unfused attention", details=details, hint=hint)
    known = TOOLS_MODEL_TYPES if options.backend == "onnxruntime-tools" else tuple(MODEL_TYPES)
    fitting = tuple(item for item in find_candidates(subject.structure) if item.model_type in known)
    return fitting or (_ENCODER,)


def attempt_fusion(subject: Subject, candidate: Candidate, folder: Path) -> Attempt:
    """Fuse as `candidate`, with scratch files in `folder`. Raises `StageError` for a model that the runtime rejects."""
    folder.mkdir()
    options = subject.options
    level = choose_level(subject.structure, options, MODEL_TYPES[candidate.model_type])
    prepared = prepare_model(subject.source, subject.structure, folder, level)
    heads, hidden = (options.heads, options.hidden_size) if options.heads else find_heads(read_structure(prepared))
    choice = Choice(model_type=candidate.model_type, heads=heads, hidden_size=hidden)
    try:
        model = fuse(onnx.load(prepared), choice, options, subject.disabled)
    except LIBRARY_ERRORS as cause:
        first = str(cause).partition("\n")[0][:300]
        problem = f"{type(cause).__name__}: {first}".rstrip(": ")
        return Attempt(candidate=candidate, choice=choice, level=level, fused={}, problem=problem)
    return Attempt(
        candidate=candidate, choice=choice, level=level, model=model, fused=count_gained(subject.structure, model)
    )


def count_gained(before: ModelProto, after: ModelProto) -> dict[str, int]:
    """Fused operators by name, without those that existed before."""
    old, new = count_operators(before), count_operators(after)
    gained = {name: count - old.get(name, 0) for name, count in new.items() if name.removeprefix(_DOMAIN) in _FUSED}
    return {name: count for name, count in gained.items() if count > 0}


def choose_best(attempts: Iterable[Attempt], subject: Subject) -> tuple[Attempt, ModelProto]:
    """The attempt that fused most, the first of equal ones, with its model. Raises `StageError` when none fused any."""
    tried = tuple(attempts)
    best = max(tried, key=lambda attempt: attempt.score)
    if best.fused and best.model is not None:
        return best, best.model
    lines = tuple(f"as {item.choice.model_type}: {item.problem or 'no pattern matched'}" for item in tried)
    hint = "disable fusion for this model, or name its model_type, heads and hidden_size"
    if subject.options.backend == "onnxruntime-tools":
        hint = "onnxruntime-tools supports models of 2021 (opset 12 and fixed shapes); use the backend `onnxruntime`"
    details = (*lines, *_fused_before(subject.structure))
    raise StageError("nothing was fused: the library recognises no pattern in this model", details=details, hint=hint)


def _fused_before(structure: ModelProto) -> tuple[str, ...]:
    counts = count_operators(structure)
    there = [f"{name} ({count})" for name, count in counts.items() if name.removeprefix(_DOMAIN) in _ATTENTIONS]
    return (f"it has fused attention already: {', '.join(there)}",) if there else ()
