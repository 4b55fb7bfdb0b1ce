"""Where data goes in a plan: what the golden set is recorded from, what judges precision, and what calibrates it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bundler.model.facts import ModelFacts
from bundler.model.fixing import Fixing
from bundler.model.golden_inputs import GoldenKind
from bundler.model.plan import HOST, MODEL, Step
from bundler.model.signature import Dimension
from bundler.model.stage import Note
from bundler.profiles.schema import TargetProfile

GOLDEN = "record_golden"
EVALUATION = "record_evaluation"
CALIBRATED = "prepare_calibration"

EVALUATION_BYTES = 256_000_000
EVALUATION_LEAST, EVALUATION_MOST = 16, 512
"""How many samples judge a precision: as many as fit into so many bytes of inputs, within these bounds. They stay in
the cache and never travel in a bundle."""

UNKNOWN_SIZE = 128
"""What a dynamic dimension counts as, where the bytes of a sample are estimated."""

_ELEMENT_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRequest:
    """Data that a user gave. `inputs` are the sources of the stage `prepare_data` by its roles, `options` its options.

    `plain` is the source of data that is read as it stands (arrays by the names of the inputs); empty for what must be
    prepared first. `synthetic` data is made up; `volatile` data may differ although no file did (a function gives it).
    `environment` is the one that prepares it. `shapes` are those of the first sample by input, where they were read.
    """

    inputs: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    plain: str = ""
    synthetic: bool = False
    volatile: bool = False
    environment: str = HOST
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def find_picture(*requests: DataRequest | None) -> tuple[int, ...]:
    """The height and the width that a declared preprocessing gives pictures; empty where none does."""
    declared = (request.options.get("preprocessing", {}) for request in requests if request is not None)
    sizes = (found.get("size") for found in declared if found.get("kind") == "image")
    return next((tuple(size) for size in sizes if size), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPlan:
    """The steps that make data ready. `evaluation` is the id of the set that judges (the golden set itself where there
    are no samples: of samples, those that judge bear the names of their files and stay here), `calibration` that of the
    calibration set, or None without data for it. `reproduces` says that the golden set holds other samples than judge,
    so that it has limits of its own; `notes` are what a person should hear.
    """

    steps: tuple[Step, ...]
    evaluation: str
    calibration: str | None
    reproduces: bool = False
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeds:
    """Seeded inputs for the golden set, where there are no samples."""

    seed: int
    count: int


def share_samples(
    samples: DataRequest | None, calibration: DataRequest | None
) -> tuple[DataRequest | None, DataRequest | None]:
    """(samples, calibration data) for methods that need the latter: where there are samples only, most of them
    calibrate, and a share is held out.
    """
    return (None, samples) if calibration is None else (samples, calibration)


def plan_data(
    facts: ModelFacts,
    profile: TargetProfile,
    fixing: Fixing,
    seeds: Seeds,
    *,
    samples: DataRequest | None,
    calibration: DataRequest | None,
    rounds: bool,
    calibrates: bool,
    golden: GoldenKind = "samples",
) -> DataPlan:
    """The steps for one plan, of a model whose `facts` have the fixed sizes. `rounds`: some variant's precision is
    judged; `calibrates`: some method needs data; `golden`: what ships of samples.
    """
    steps: list[Step] = []
    held_out = samples or _held_out(calibration, profile)
    source = None
    limit = _evaluation_samples(facts) if rounds else EVALUATION_LEAST
    if held_out is not None:
        source, made = _prepare_samples(held_out, fixing, limit)
        steps += made
    if source is None:
        evaluation = GOLDEN
        steps.append(_record_seeded(fixing, seeds))
    else:
        evaluation = EVALUATION
        steps.append(_record_samples(source, fixing, limit))
        steps.append(_take_golden(fixing) if golden == "samples" else _make_alike(fixing, seeds))
    calibrated = calibration if calibrates else None
    if calibrated is not None:
        steps.append(_prepare_calibration(calibrated, profile, fixing, evaluation, split=samples is None))
    return DataPlan(
        steps=tuple(steps),
        evaluation=evaluation,
        calibration=None if calibrated is None else CALIBRATED,
        reproduces=source is not None and (golden == "synthetic" or limit > EVALUATION_LEAST),
        notes=_describe_golden(golden, given=source is not None),
    )


def _held_out(calibration: DataRequest | None, profile: TargetProfile) -> DataRequest | None:
    """Without samples, a share of the calibration data is kept apart and judges the result."""
    if calibration is None or calibration.synthetic:
        return None
    options = {**calibration.options, "part": "held-out", "every": profile.calibration.held_out_every}
    return replace(calibration, options=options, plain="")


def _evaluation_samples(facts: ModelFacts) -> int:
    """How many fit. The first axis counts the items of a call where its size is open: one, in most samples."""
    sample = sum(
        math.prod(map(_size, shape[1:])) * _first(shape) * _ELEMENT_BYTES
        for shape in (port.type.shape or () for port in facts.signature.inputs)
    )
    return max(EVALUATION_LEAST, min(EVALUATION_MOST, EVALUATION_BYTES // max(sample, 1)))


def _first(shape: Sequence[Dimension]) -> int:
    return shape[0] if shape and isinstance(shape[0], int) else 1


def _size(size: Dimension) -> int:
    return size if isinstance(size, int) else UNKNOWN_SIZE


def _prepare_samples(request: DataRequest, fixing: Fixing, limit: int) -> tuple[str, tuple[Step, ...]]:
    """The source of samples for recording, and the step that makes it, where one is needed."""
    if request.plain:
        return request.plain, ()
    # Blank samples give no range to calibrate with, and are as good as others to compare answers on.
    options = {"part": "all", **request.options, **fixing.options(), "limit": limit, "allow_constant": True}
    step = Step(
        id="prepare_samples",
        stage="prepare_data",
        inputs={"model": MODEL, **request.inputs},
        options=options,
        environment=request.environment,
        volatile=request.volatile,
        reason="samples that the models' answers are judged on",
        title="Prepare the samples",
    )
    return step.id, (step,)


def _record_seeded(fixing: Fixing, seeds: Seeds) -> Step:
    return Step(
        id=GOLDEN,
        stage="record_golden",
        inputs={"model": MODEL},
        options={**fixing.options(), "seed": seeds.seed, "count": seeds.count},
        reason="reference outputs of the original model",
    )


def _record_samples(source: str, fixing: Fixing, limit: int) -> Step:
    return Step(
        id=EVALUATION,
        stage="record_golden",
        inputs={"model": MODEL, "samples": source},
        options={**fixing.options(), "max_samples": limit, "travels": False},
        reason="what the original model answers to the samples that judge",
        title="Record the held-out samples",
    )


def _take_golden(fixing: Fixing) -> Step:
    """The golden set, out of the samples that judge: as many as a bundle carries, with numbers for names."""
    return Step(
        id=GOLDEN,
        stage="record_golden",
        inputs={"model": MODEL, "recorded": EVALUATION},
        options=fixing.options(),
        reason="reference outputs of the original model",
    )


def _make_alike(fixing: Fixing, seeds: Seeds) -> Step:
    """A golden set that may be seen by anybody."""
    return Step(
        id=GOLDEN,
        stage="record_golden",
        inputs={"model": MODEL, "recorded": EVALUATION},
        options={**fixing.options(), "alike": True, "seed": seeds.seed},
        reason="seeded inputs ship in place of the samples, as asked",
    )


_NOTES: Mapping[GoldenKind, Note] = {
    "samples": Note(
        text=f"up to {EVALUATION_LEAST} of the samples ship in the bundle's golden set, their files' names do not: "
        "whoever gets the bundle can read them (--golden synthetic ships seeded inputs in their place)"
    ),
    "synthetic": Note(text="the samples judge the build and do not ship: the golden set holds seeded inputs like them"),
}
_NOTHING_KEPT_BACK = Note(
    text="--golden synthetic has no effect: no samples were given, and the golden set holds seeded inputs without it"
)


def _describe_golden(golden: GoldenKind, *, given: bool) -> tuple[Note, ...]:
    if given:
        return (_NOTES[golden],)
    return (_NOTHING_KEPT_BACK,) if golden == "synthetic" else ()


def _prepare_calibration(
    request: DataRequest, profile: TargetProfile, fixing: Fixing, evaluation: str, *, split: bool
) -> Step:
    """Calibration data; nothing that judges the result is among it."""
    inputs = {"model": MODEL, **request.inputs}
    options: dict[str, Any] = {**request.options, **fixing.options(), "limit": profile.calibration.limit}
    options |= {"part": "all"}
    if not request.synthetic:
        inputs["held_out"] = evaluation
        if split:
            options |= {"part": "calibration", "every": profile.calibration.held_out_every}
    return Step(
        id=CALIBRATED,
        stage="prepare_data",
        inputs=inputs,
        options=options,
        environment=request.environment,
        volatile=request.volatile,
        reason="ranges are found from calibration data",
        title="Prepare the calibration data",
    )
