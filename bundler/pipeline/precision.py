"""Automatic precision: try the methods that suit the target, and keep the fastest that meets the accuracy gate."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bundler.execution.sources import Source, source_of
from bundler.model.attempts import Attempt, AttemptState, Frontier, RecordedChoice, Timing
from bundler.model.digests import digest_json
from bundler.model.errors import BundlerError, GateError, UsageError
from bundler.model.events import Event, Listener, Reporter, StepFinished
from bundler.model.plan import ComponentPlan, Step
from bundler.model.results import Comparison, OutputComparison, StepOutcome
from bundler.pipeline.accuracy import is_judged
from bundler.pipeline.judging import METRIC_STAGE, Verdict, judge_plan
from bundler.pipeline.precision_choice import (
    MEGABYTE,
    choose_method,
    describe_attempt,
    explain_choice,
    explain_loss,
    is_bound,
    order_search,
)
from bundler.pipeline.prepare import Prepared
from bundler.pipeline.requests import decision_key
from bundler.pipeline.workspace import Workspace
from bundler.planning.data import CALIBRATED, EVALUATION, GOLDEN
from bundler.planning.devices import is_accelerated
from bundler.planning.plan import make_plan
from bundler.planning.precision import CALIBRATION_HINT, asked_method, candidate_methods
from bundler.planning.sessions import session_of
from bundler.profiles.methods import AUTO, METHODS, NONE
from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.registry import find_provider
from bundler.stages.measure_metric.spec import Facts as MetricFacts
from bundler.stages.prepare_data.spec import SPEC as PREPARE_DATA
from bundler.stages.prepare_data.spec import Facts as DataFacts
from bundler.stages.record_golden.spec import SPEC as RECORD_GOLDEN
from bundler.stages.record_golden.spec import Facts as GoldenFacts
from bundler.stages.time_model.spec import Facts as TimedFacts
from bundler.support.platforms import SYSTEMS, python_machines

_TIMED = ("seconds", "ratio", "low", "high", "processor_ratio", "rounds")
"""Figures that an attempt takes over from `time_model`."""


_UNJUDGED = "no output can be judged with these samples, so its loss of accuracy is unknown"
"""Why a method that loses precision is not chosen: the gate could not have failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """One attempt with its plan and outcomes, where there are any, and the latency of the unchanged model meanwhile."""

    attempt: Attempt
    plan: ComponentPlan | None = None
    outcomes: Mapping[str, StepOutcome] = field(default_factory=dict)
    baseline_seconds: float | None = None


def settle_precision(prepared: Prepared, workspace: Workspace, reporter: Reporter) -> Prepared:
    """`prepared` with a method for every variant whose precision is chosen by trying.

    What was decided before and recorded is repeated while the question is the same. Raises `GateError` when no attempt
    meets the gate, `UsageError` when a decision is missing that must not be taken now.
    """
    profile = prepared.profile
    frontiers = {
        variant.name: _Search(prepared=prepared, variant=variant, workspace=workspace, reporter=reporter).decide()
        for variant in profile.variants
        if asked_method(profile, variant) == AUTO
    }
    request = replace(prepared.plan_request, methods={name: found.chosen for name, found in frontiers.items()})
    return replace(
        prepared,
        plan_request=request,
        plan=make_plan(prepared.settled, request),
        frontiers=tuple(frontiers.values()),
        decisions={
            variant.name: RecordedChoice(question=digest_question(prepared, variant), answer=frontiers[variant.name])
            for variant in profile.variants
            if variant.name in frontiers
        },
    )


def digest_question(prepared: Prepared, variant: Variant) -> str:
    """Digest of all that a choice depends on, but for the versions of tools: those are locked beside it."""
    profile = prepared.profile.model_dump(mode="json")
    request = prepared.plan_request
    return digest_json(
        {
            "sources": {name: source.digest for name, source in prepared.sources.items()},
            "candidates": candidate_methods(prepared.profile, variant),
            "profile": {name: profile[name] for name in ("precision", "calibration", "accuracy", "budget", "fusion")},
            "optimization": profile["optimization"],
            "variant": variant.model_dump(mode="json"),
            "sizes": prepared.settled.fixing,
            "data": {"samples": request.samples, "calibration": request.calibration},
            "seed": request.seed,
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """The choice for one variant."""

    prepared: Prepared
    variant: Variant
    workspace: Workspace
    reporter: Reporter

    def decide(self) -> Frontier:
        """The recorded answer while the question is the same, else what trying finds."""
        key = decision_key(self.prepared.bundle, self.prepared.profile.id)
        known = self.prepared.request.decisions.get(key, {}).get(self.prepared.label(self.variant.name))
        if known is not None and self._fits(known):
            return known.answer
        if self.prepared.request.locked:
            raise UsageError(
                f"{self.prepared.title}: bundler.lock holds no decision on the precision of {self.variant.name} for "
                "these inputs",
                hint="build once without --locked: the choice is measured, and recorded in the lock",
            )
        return self._try_all()

    def _fits(self, known: RecordedChoice) -> bool:
        """Whether the question is the same, and the answer, which anyone may have edited, could have been chosen."""
        methods = (NONE, *candidate_methods(self.prepared.profile, self.variant))
        same = known.question == digest_question(self.prepared, self.variant)
        return same and known.answer.variant == self.variant.name and known.answer.chosen in methods

    def _try_all(self) -> Frontier:
        profile, variant = self.prepared.profile, self.variant
        methods = (NONE, *candidate_methods(profile, variant))
        known: dict[str, _Trial] = {}
        for method in order_search(methods):
            known[method] = self._try_next(method, methods, known)
        trials = [known[method] for method in methods]
        timing, how = _describe_timing(profile, variant)
        attempts = _complete(trials)
        chosen = choose_method(attempts)
        if chosen is None:
            raise _nothing_holds(self.prepared, variant, trials)
        reason = explain_choice(attempts, chosen)
        self.reporter.say(f"precision of {variant.name}: {chosen}: {reason}")
        return Frontier(
            variant=variant.name,
            chosen=chosen,
            attempts=tuple(_mark(attempt, chosen) for attempt in attempts),
            timing=timing,
            how=how,
            held_out=_count(trials, EVALUATION) or _count(trials, GOLDEN),
            calibration=_count(trials, CALIBRATED),
            reason=reason,
        )

    def _try_next(self, method: str, methods: Sequence[str], known: Mapping[str, _Trial]) -> _Trial:
        """The method's trial, timed where its latency decides anything, or without one where it cannot be chosen."""
        reason = self._explain_skip(method, [trial.attempt for trial in known.values()])
        if reason:
            trial = _Trial(attempt=Attempt(method=method, title=METHODS[method].title, state="skipped", reason=reason))
        else:
            place = f"{len(known) + 1} of {len(methods)}"
            self.reporter.say(f"trying precision {method} for {self.variant.name} ({place})")
            trial = self._try(method)
            if trial.attempt.state == "passed" or is_bound(method, methods):
                trial = self._time(trial, known.get(NONE, trial))
        self.reporter.say(describe_attempt(trial.attempt))
        return trial

    def _explain_skip(self, method: str, before: Sequence[Attempt]) -> str:
        """Why `method` is not tried; empty where it is."""
        prepared = self.prepared
        if method == NONE:
            return ""
        data = prepared.plan_request
        if METHODS[method].needs_calibration and data.calibration is None and data.samples is None:
            return "it needs calibration data (--calibration)"
        if prepared.profile.precision.keep_float == "auto":
            return ""  # Each method then keeps nodes of its own in floating point, so none bounds another.
        return explain_loss(method, before, prepared.profile.budget.model_mb)

    def _try(self, method: str) -> _Trial:
        """One method, judged by the gate. A model that cannot be made is an attempt, too."""
        prepared = self.prepared
        title = METHODS[method].title if method != NONE else "as it is"
        attempt = Attempt(method=method, title=title, state="skipped")
        request = replace(prepared.plan_request, methods={self.variant.name: method})
        try:
            plan = make_plan(prepared.settled.only(self.variant), request)
            outcomes = self._execute(plan.steps, prepared.sources, method)
        except BundlerError as error:
            if method == NONE:
                raise
            reason = ": ".join((error.message, *error.details[:1]))
            return _Trial(attempt=replace(attempt, state="broken", reason=reason))
        return _Trial(attempt=_judge(attempt, plan, outcomes, prepared.profile), plan=plan, outcomes=outcomes)

    def _time(self, trial: _Trial, first: _Trial) -> _Trial:
        """The attempt's latency beside that of the model as it is."""
        if trial.plan is None or first.plan is None:
            return trial
        if trial is first:
            return replace(trial, attempt=replace(trial.attempt, ratio=1.0))
        if _is_estimated(self.variant):
            sizes = (trial.attempt.model_bytes or 0, first.attempt.model_bytes or 1)
            return replace(trial, attempt=replace(trial.attempt, ratio=sizes[0] / sizes[1]))
        one, two = trial.plan.variants[0], first.plan.variants[0]
        sources = {
            "model": source_of(trial.outcomes[one.model]),
            "baseline": source_of(first.outcomes[two.model]),
            "golden": source_of(trial.outcomes[trial.plan.golden]),
        }
        step = Step(
            id="time_model",
            stage="time_model",
            inputs={name: name for name in sources},
            options={"session": session_of(self.variant, one), "baseline_session": session_of(self.variant, two)},
            environment=trial.plan.step(one.model).environment,
        )
        found = self._execute((step,), sources, trial.attempt.method)[step.id].read_facts(TimedFacts)
        figures = {name: getattr(found, name) for name in _TIMED}
        return replace(trial, attempt=replace(trial.attempt, **figures), baseline_seconds=found.baseline_seconds)

    def _execute(self, steps: Sequence[Step], sources: Mapping[str, Source], method: str) -> dict[str, StepOutcome]:
        reporter = Reporter(_only_new(self.reporter.listener), f"{self.prepared.title}, {method}")
        return self.workspace.executor.execute(steps, sources, reporter)


def _only_new(listener: Listener) -> Listener:
    """Attempts share most of their steps, so a recalled step is not reported again for each."""

    def listen(event: Event) -> None:
        if not (isinstance(event, StepFinished) and event.cached):
            listener(event)

    return listen


def _complete(trials: Sequence[_Trial]) -> list[Attempt]:
    """The attempts; the unchanged model's latency is the one that another one was timed beside."""
    seconds = next((trial.baseline_seconds for trial in trials if trial.baseline_seconds is not None), None)
    return [
        replace(trial.attempt, seconds=seconds) if trial.attempt.method == NONE else trial.attempt for trial in trials
    ]


def _mark(attempt: Attempt, chosen: str) -> Attempt:
    return replace(attempt, state="chosen") if attempt.method == chosen else attempt


def _judge(
    attempt: Attempt, plan: ComponentPlan, outcomes: Mapping[str, StepOutcome], profile: TargetProfile
) -> Attempt:
    failures = _name_failures(judge_plan(plan, profile, outcomes))
    artifact = outcomes[plan.variants[0].model].artifact
    size = artifact.size if artifact else 0
    limit = profile.budget.model_mb
    if limit is not None and size > limit * MEGABYTE:
        failures.append(f"{size / MEGABYTE:.2f} MB, budget {limit:g} MB")
    last = [step for step in plan.variants[0].comparisons if step in plan.gates][-1:]
    outputs = outcomes[last[0]].read_facts(Comparison).outputs if last else ()
    figures = _worst(outputs) if last else {}
    measured = [outcomes[step.id].read_facts(MetricFacts).value for step in plan.steps if step.stage == METRIC_STAGE]
    if measured:
        figures["metric"] = measured[0]
    elif attempt.method != NONE and last and not any(is_judged(one, plan.gates[last[0]]) for one in outputs):
        failures.append(_UNJUDGED)
    state: AttemptState = "failed" if failures else "passed"
    return replace(attempt, state=state, model_bytes=size, figures=figures, reason="; ".join(failures[:2]))


def _name_failures(verdicts: Sequence[Verdict]) -> list[str]:
    """The first limit that the model that would ship misses, and the verdict of the user's own metric."""
    compared = [verdict for verdict in verdicts if not verdict.is_metric]
    own = [verdict for verdict in verdicts if verdict.is_metric]
    return [verdict.lines[0] for verdict in (*compared[-1:], *own)]


def _worst(outputs: Sequence[OutputComparison]) -> dict[str, float | None]:
    """The least favourable figure over all outputs."""
    lowest = {
        name: min((value for output in outputs if (value := getattr(output, name)) is not None), default=None)
        for name in ("sqnr_db", "cosine", "top1_agreement")
    }
    return {**lowest, "max_absolute": max((output.max_absolute for output in outputs), default=None)}


def _describe_timing(profile: TargetProfile, variant: Variant) -> tuple[Timing, str]:
    if _is_estimated(variant):
        return "estimated", "from the models' sizes: this machine cannot run the variant's device"
    here = platform.system() in SYSTEMS[profile.platform.system].systems and platform.machine() in python_machines(
        profile.platform.architecture
    )
    if here and not find_provider(variant.providers[0].name).validation_provider:
        return "measured", "on this machine, alternating with the unchanged model"
    return "estimated", f"timed on this machine's CPU ({platform.machine()}), which is not the target's"


def _is_estimated(variant: Variant) -> bool:
    """Whether the variant computes on a device whose speed this machine's CPU says nothing of."""
    return is_accelerated(variant)


def _count(trials: Sequence[_Trial], step: str) -> int:
    """Samples of the set that this step made, over all attempts the most: a method that does not round is judged on
    fewer. Calibration data are prepared, or recorded where they are a stream.
    """
    outcomes = [trial.outcomes[step] for trial in trials if step in trial.outcomes]
    kinds = {PREPARE_DATA.name: DataFacts, RECORD_GOLDEN.name: GoldenFacts}
    return max((outcome.read_facts(kinds[outcome.stage]).samples for outcome in outcomes), default=0)


def _nothing_holds(prepared: Prepared, variant: Variant, trials: Sequence[_Trial]) -> GateError:
    lines = tuple(f"{t.attempt.method}: {t.attempt.reason or t.attempt.state}" for t in trials)
    return GateError(
        f"{prepared.title}: no precision of {variant.name} meets the gate, not even the original",
        details=lines,
        hint=f"widen the gate with --set accuracy.sqnr_db=…, or the budget; {CALIBRATION_HINT}",
    )
