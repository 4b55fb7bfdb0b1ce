"""Data in a plan: for the golden set, for judging precision, and for calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bundler.model.codec import encode
from bundler.model.errors import UsageError
from bundler.model.facts import ModelFacts
from bundler.model.fixing import Fixing
from bundler.model.golden_inputs import GoldenKind
from bundler.model.plan import HOST, MODEL, ORIGINAL, Step
from bundler.model.signature import Dimension
from bundler.model.stage import Note
from bundler.model.state import StateLink
from bundler.profiles.schema import TargetProfile

GOLDEN = "record_golden"
EVALUATION = "record_evaluation"
CALIBRATED = "prepare_calibration"

EVALUATION_BYTES = 256_000_000
EVALUATION_LEAST, EVALUATION_MOST = 16, 512
"""Number of samples that judge a precision: as many as fit into `EVALUATION_BYTES` of inputs, within these bounds. They
stay in the cache and are never part of a bundle."""

UNKNOWN_SIZE = 128
"""The size assumed for a dynamic dimension when a sample's bytes are estimated."""

_ELEMENT_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRequest:
    """Data given by the user. `inputs` are the sources of the stage `prepare_data` by role, `options` its options.

    `plain` is the source of data that needs no preparation (arrays by input name); empty otherwise. `synthetic` data
    is generated; `volatile` data comes from a function and may change although no file did. `environment` prepares it.
    `shapes` are those of the first sample by input, if they were read.
    """

    inputs: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    plain: str = ""
    synthetic: bool = False
    volatile: bool = False
    environment: str = HOST
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def find_picture(*requests: DataRequest | None) -> tuple[int, ...]:
    """Height and width of images after a declared preprocessing; empty if none is declared."""
    declared = (request.options.get("preprocessing", {}) for request in requests if request is not None)
    sizes = (found.get("size") for found in declared if found.get("kind") == "image")
    return next((tuple(size) for size in sizes if size), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPlan:
    """The steps that prepare data. `evaluation` is the id of the set that judges (without samples, the golden set);
    it names the user's files and is never shipped. `calibration` is the id of the calibration set, None without one.
    `reproduces`: the golden set differs from the evaluation set, so that it has its own limits. `notes` are for the
    user.
    """

    steps: tuple[Step, ...]
    evaluation: str
    calibration: str | None
    reproduces: bool = False
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeds:
    """Seeded inputs for the golden set, used without samples. `rounds`: a method loses precision."""

    seed: int
    count: int
    rounds: bool = False


def share_samples(
    samples: DataRequest | None, calibration: DataRequest | None
) -> tuple[DataRequest | None, DataRequest | None]:
    """(samples, calibration data) for methods that require calibration: samples alone are split into calibration data
    and a held-out share.
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
    state: tuple[StateLink, ...] = (),
) -> DataPlan:
    """The data steps of one plan; `facts` are those of the model with fixed sizes. `rounds`: some variant's precision
    is judged; `calibrates`: some method requires data; `golden`: whether samples or synthetic inputs ship.
    """
    if state:
        used = (calibration or samples) if calibrates else None
        return _plan_stream(fixing, seeds, state, samples=samples, calibration=used, golden=golden)
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


def record_original(plan: DataPlan, names: Mapping[str, str]) -> DataPlan:
    """The plan for a model that got new names: outputs are recorded from the original model."""
    if not names:
        return plan
    steps = (
        replace(
            step,
            inputs={**step.inputs, "original": ORIGINAL},
            options={**step.options, "renamed": dict(names)},
        )
        if step.stage == "record_golden"
        else step
        for step in plan.steps
    )
    return replace(plan, steps=tuple(steps))


STREAM_STEPS = 256
"""Steps of a stream that are recorded and judged, at most; `record_golden` bounds their bytes."""
SYNTHETIC_STEPS = 16
"""Synthetic steps: enough to see an error that grows."""


def _plan_stream(
    fixing: Fixing,
    seeds: Seeds,
    state: tuple[StateLink, ...],
    *,
    samples: DataRequest | None,
    calibration: DataRequest | None,
    golden: GoldenKind,
) -> DataPlan:
    """The samples of a model with state are the steps of one stream: all of them are recorded, judge, and ship.
    Calibration data are recorded as a stream of their own, so that they hold the states that occur. Without them the
    samples calibrate, too: a stream cannot be split as samples are.
    """
    if golden == "synthetic" and samples is not None:
        raise UsageError(
            "--golden synthetic cannot be used with --state: seeded steps would not follow from each other",
            hint="ship the steps with --golden samples, or remove --samples",
        )
    for given in (samples, calibration):
        if given is not None and not given.plain and not given.synthetic:
            raise UsageError(
                "samples of a model with state must be arrays",
                hint="give a folder of .npz files, one for each step in order, or one .npz with a leading step axis",
            )
    options = {**fixing.options(), "state": encode(state)}
    steps = [_record_stream(GOLDEN, samples, state, options, seeds)]
    notes = _STREAM if samples is not None else ()
    if calibration is not None and calibration is samples:
        notes = (*notes, _SAME_STEPS)
    if calibration is not None:
        made = _record_stream(CALIBRATED, calibration, state, options, replace(seeds, seed=seeds.seed + 1))
        reason = "quantisation ranges are computed from a stream and its states"
        steps.append(replace(made, title="Record the calibration data", reason=reason))
    return DataPlan(
        steps=tuple(steps),
        evaluation=GOLDEN,
        calibration=None if calibration is None else CALIBRATED,
        notes=notes,
    )


_SAME_STEPS = Note(
    text="the steps that judge the model also calibrate it: a separate stream (--calibration) judges more strictly",
    level="warning",
)
_STREAM = (Note(text="the samples are the steps of one stream, in order; they ship in the bundle's golden set"),)


def _record_stream(
    step: str, given: DataRequest | None, state: Sequence[StateLink], options: Mapping[str, Any], seeds: Seeds
) -> Step:
    plain = given.plain if given is not None else ""
    amount = {"max_samples": STREAM_STEPS} if plain else {"seed": seeds.seed, "count": SYNTHETIC_STEPS}
    return Step(
        id=step,
        stage="record_golden",
        inputs={
            "model": MODEL,
            **({"samples": plain} if plain else {}),
            **{link.file: link.file for link in state if link.initial == "file"},
        },
        options={**options, **amount},
        reason="reference outputs of the original model",
    )


def _held_out(calibration: DataRequest | None, profile: TargetProfile) -> DataRequest | None:
    """Without samples, a share of the calibration data is held out to judge the result."""
    if calibration is None or calibration.synthetic:
        return None
    options = {**calibration.options, "part": "held-out", "every": profile.calibration.held_out_every}
    return replace(calibration, options=options, plain="")


def _evaluation_samples(facts: ModelFacts) -> int:
    """How many samples fit. A dynamic first axis is the batch and counts as one."""
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
    """The source of samples for recording, and the step that prepares it, if required."""
    if request.plain:
        return request.plain, ()
    # Constant samples are useless for calibration, but valid for comparing outputs.
    options = {"part": "all", **request.options, **fixing.options(), "limit": limit, "allow_constant": True}
    step = Step(
        id="prepare_samples",
        stage="prepare_data",
        inputs={"model": MODEL, **request.inputs},
        options=options,
        environment=request.environment,
        volatile=request.volatile,
        reason="samples for judging the models",
        title="Prepare the samples",
    )
    return step.id, (step,)


def _record_seeded(fixing: Fixing, seeds: Seeds) -> Step:
    return Step(
        id=GOLDEN,
        stage="record_golden",
        inputs={"model": MODEL},
        options={
            **fixing.options(),
            "seed": seeds.seed,
            "count": seeds.count,
            **({"rounds": True} if seeds.rounds else {}),
        },
        reason="reference outputs of the original model",
    )


def _record_samples(source: str, fixing: Fixing, limit: int) -> Step:
    return Step(
        id=EVALUATION,
        stage="record_golden",
        inputs={"model": MODEL, "samples": source},
        options={**fixing.options(), "max_samples": limit, "travels": False},
        reason="outputs of the original model for the held-out samples",
        title="Record the held-out samples",
    )


def _take_golden(fixing: Fixing) -> Step:
    """The golden set from the evaluation samples: as many as a bundle contains, numbered instead of named."""
    return Step(
        id=GOLDEN,
        stage="record_golden",
        inputs={"model": MODEL, "recorded": EVALUATION},
        options=fixing.options(),
        reason="reference outputs of the original model",
    )


def _make_alike(fixing: Fixing, seeds: Seeds) -> Step:
    """A golden set without the user's samples."""
    return Step(
        id=GOLDEN,
        stage="record_golden",
        inputs={"model": MODEL, "recorded": EVALUATION},
        options={**fixing.options(), "alike": True, "seed": seeds.seed},
        reason="seeded inputs ship instead of the samples, as requested",
    )


_NOTES: Mapping[GoldenKind, Note] = {
    "samples": Note(
        text=f"up to {EVALUATION_LEAST} of the samples ship in the bundle's golden set, without their file names: "
        "everyone with the bundle can read them (--golden synthetic ships seeded inputs instead)"
    ),
    "synthetic": Note(text="the samples judge the build and do not ship: the golden set holds seeded inputs like them"),
}
_GOLDEN_HAS_NO_EFFECT = Note(
    text="--golden synthetic has no effect: no samples were given, and the golden set holds seeded inputs without it"
)


def _describe_golden(golden: GoldenKind, *, given: bool) -> tuple[Note, ...]:
    if given:
        return (_NOTES[golden],)
    return (_GOLDEN_HAS_NO_EFFECT,) if golden == "synthetic" else ()


def _prepare_calibration(
    request: DataRequest, profile: TargetProfile, fixing: Fixing, evaluation: str, *, split: bool
) -> Step:
    """Calibration data, without the samples that judge the result."""
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
        reason="quantisation ranges are computed from calibration data",
        title="Prepare the calibration data",
    )
