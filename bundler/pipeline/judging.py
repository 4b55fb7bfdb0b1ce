"""Which steps of a plan broke the accuracy gate: the comparisons, and the user's own metric."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bundler.model.gates import GateFailure, check_gate, describe_failures
from bundler.model.plan import ComponentPlan, Step
from bundler.model.results import Comparison, StepOutcome
from bundler.profiles.schema import TargetProfile
from bundler.stages.measure_metric.spec import SPEC as METRIC
from bundler.stages.measure_metric.spec import Facts as MetricFacts
from bundler.stages.record_golden.spec import Facts as GoldenFacts
from bundler.verification.metric import MetricGate, check_metric

METRIC_STAGE = METRIC.name

_SETTINGS = {"error": "absolute"}
"""Names of limits that differ from their figure's."""
_MAX_SETTINGS = 3
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _quote(name: str) -> str:
    """A name as a key of TOML."""
    return name if _BARE.fullmatch(name) else json.dumps(name)


_NOISE_DB: Final = 3.0
"""Half of the signal is noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A step whose figures miss the gate, and a line for each thing that does; `failures` are those of a comparison, of
    `several` outputs or one.
    """

    step: Step
    lines: tuple[str, ...]
    failures: tuple[GateFailure, ...] = ()
    several: bool = False

    @property
    def is_metric(self) -> bool:
        """Whether the user's own metric says so."""
        return self.step.stage == METRIC_STAGE

    @property
    def is_noise(self) -> bool:
        """Whether errors are about as large as an output's values: no rounding does that."""
        worst = [item.worst for item in self.failures if item.figure == "sqnr_db" and item.worst is not None]
        return any(ratio < _NOISE_DB for ratio in worst)

    @property
    def setting(self) -> str:
        """The settings of a profile that widen the limits that were missed, as they follow `--set`."""
        if self.is_metric:
            return "accuracy.metric.drop=… or accuracy.metric.least=…"
        failure = self.failures[0]
        if failure.figure == "mismatch":
            return f"accuracy.outputs.{json.dumps(failure.output)}.judged=false, and judge with accuracy.metric"
        names = dict.fromkeys(self._name(item) for item in self.failures if item.figure != "mismatch")
        return " --set ".join(f"{name}=…" for name in itertools.islice(names, _MAX_SETTINGS))

    def _name(self, failure: GateFailure) -> str:
        """For one output of several, where the same number would be a lower limit for outputs with larger values."""
        name = _SETTINGS.get(failure.figure, failure.figure)
        if name != "absolute" or not self.several:
            return f"accuracy.{name}"
        return f"accuracy.outputs.{shlex.quote(_quote(failure.output))}.{name}"

    @property
    def judged(self) -> str:
        """The id of the step whose model was judged."""
        return self.step.inputs["model"]


def judge_plan(plan: ComponentPlan, profile: TargetProfile, outcomes: Mapping[str, StepOutcome]) -> tuple[Verdict, ...]:
    """Every step that misses its gate, in the order of the plan; empty when all is well."""
    unstable = outcomes[plan.golden].read_facts(GoldenFacts).unstable_outputs
    verdicts = []
    for step in plan.steps:
        lines: tuple[str, ...] = ()
        failures: tuple[GateFailure, ...] = ()
        several = False
        if step.id in plan.gates:
            comparison = outcomes[step.id].read_facts(Comparison)
            failures = check_gate(comparison, plan.gates[step.id], unstable)
            lines = describe_failures(comparison, failures)
            several = len(comparison.outputs) > 1
        elif step.stage == METRIC_STAGE and profile.accuracy.metric is not None:
            metric = profile.accuracy.metric
            # The metric's name without its folder: decisions in the manifest repeat it.
            gate = MetricGate(least=metric.least, drop=metric.drop)
            lines = check_metric(f"metric {metric.name}", outcomes[step.id].read_facts(MetricFacts), gate)
        if lines:
            verdicts.append(Verdict(step=step, lines=lines, failures=failures, several=several))
    return tuple(verdicts)
