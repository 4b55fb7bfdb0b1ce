"""The accuracy after each stage, compared with the original model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bundler.model.manifest import CheckRecord, ComponentRecord, OutputCheck
from bundler.model.runtime import Tolerance
from bundler.reporting.data import ComponentReport
from bundler.reporting.drift import chart_drift, describe_drift
from bundler.reporting.figures import show_error
from bundler.reporting.models import show_tag, title_stage
from bundler.reporting.page import Accuracy, AccuracyCell, AccuracyRow, Dot
from bundler.reporting.scales import Scale, linear_scale, log_scale
from bundler.stages.measure_metric.spec import SPEC as METRIC
from bundler.stages.measure_metric.spec import Facts as MetricFacts

METRIC_STAGE = METRIC.name
NOT_JUDGED = "not judged"
_ROW_MIDDLE = 14.0


def chart_accuracy(part: ComponentReport) -> Accuracy | None:
    """Largest absolute error on a logarithmic scale and lowest SQNR in dB, by stage; None when nothing was compared."""
    checks = part.record.checks
    if not checks:
        return None
    limits = [_limits(part, check) for check in checks]
    outputs = [output for check in checks for output in judged_outputs(check)]
    errors = [output.max_absolute for output in outputs if output.max_absolute]
    error_scale = log_scale([*errors, *(limit.absolute for limit in limits if limit.absolute)] or [1.0])
    least = [limit.sqnr_db or 0.0 for limit in limits]
    sqnr_scale = linear_scale([*_decibels(outputs), *least], lambda value: f"{value:.0f} dB")
    return Accuracy(
        samples=max(check.samples for check in checks),
        error_scale=error_scale,
        sqnr_scale=sqnr_scale,
        gate_text=_join(_describe_error(limit) for limit in limits),
        sqnr_gate_text=_join("" if limit.sqnr_db is None else f"min {limit.sqnr_db:g} dB" for limit in limits),
        equal=all(check.equal and judged_outputs(check) for check in checks),
        metrics=(*_describe_metrics(part), *describe_drift(part, final_checks(part))),
        drift=chart_drift(part, final_checks(part)),
        doubts=tuple(describe_doubts(part.record)),
        rows=tuple(
            _row(part, check, limit, scales=(error_scale, sqnr_scale))
            for check, limit in zip(checks, limits, strict=True)
        ),
        table=tuple(cell for check in checks for cell in _cells(part, check)),
    )


def _describe_metrics(part: ComponentReport) -> Iterator[str]:
    """The user's own metric of each variant, beside that of the original model's outputs."""
    steps = {step.id: step for step in part.plan.steps}
    for outcome in part.outcomes:
        if outcome.stage == METRIC_STAGE and outcome.step in steps:
            facts, variant = outcome.read_facts(MetricFacts), steps[outcome.step].variant
            tag = show_tag(part, variant)
            yield (
                f"Your metric{f' of {tag}' if tag else ''}: {facts.value:.4g}, over {facts.samples} samples; "
                f"the original model has {facts.reference:.4g}."
            )


def describe_doubts(component: ComponentRecord, repeated: str = "") -> Iterator[str]:
    """What the golden set cannot show, without weaknesses of the kind `repeated`, which are reported elsewhere."""
    golden = component.golden
    if golden is None:
        return
    for name, why in golden.unjudged.items():
        yield f"output {name!r} could not be judged: {why}"
    for weakness in golden.weaknesses:
        if weakness.kind != repeated:
            yield weakness.text


def _limits(part: ComponentReport, check: CheckRecord) -> Tolerance:
    """The default tolerance of a check's gate."""
    gate = part.record.gate.gates.get(check.step)
    return gate.default if gate else Tolerance()


def _describe_error(limit: Tolerance) -> str:
    if limit.absolute is None or limit.relative is None:
        return ""
    return f"allowed: {show_error(limit.absolute)} + {show_error(limit.relative)} of the reference"


def _join(texts: Iterable[str]) -> str:
    """Every text once."""
    return "; ".join(dict.fromkeys(text for text in texts if text))


def final_checks(part: ComponentReport) -> tuple[CheckRecord, ...]:
    """The check of the model that ships, for each variant that has one."""
    shipped = {variant.model for variant in part.plan.variants}
    found = tuple(check for check in part.record.checks if check.after in shipped)
    return found or part.record.checks[-1:]


def judged_outputs(check: CheckRecord) -> tuple[OutputCheck, ...]:
    """The outputs whose comparison could have failed; the figures of others show nothing."""
    return tuple(output for output in check.outputs if not output.unjudged)


def least_decibels(outputs: Sequence[OutputCheck]) -> float | None:
    """The lowest SQNR in dB among the outputs that have one."""
    return min(_decibels(outputs), default=None)


def greatest_error(outputs: Sequence[OutputCheck]) -> float | None:
    """The largest absolute error among the outputs that have one."""
    return max((output.max_absolute for output in outputs if output.max_absolute is not None), default=None)


def _decibels(outputs: Sequence[OutputCheck]) -> list[float]:
    return [output.sqnr_db for output in outputs if output.sqnr_db is not None]


def _title(part: ComponentReport, check: CheckRecord) -> str:
    """The stage whose model was compared, and "golden set" where the other checks used a larger set."""
    stages = {step.id: step.stage for step in part.plan.steps}
    title = title_stage(stages[check.after]) if check.after in stages else check.after
    again = any(variant.reproduction == check.step for variant in part.plan.variants if variant.reproduction)
    return f"{title}, golden set" if again else title


def _row(part: ComponentReport, check: CheckRecord, limit: Tolerance, *, scales: tuple[Scale, Scale]) -> AccuracyRow:
    error_scale, sqnr_scale = scales
    judged = judged_outputs(check)
    least, equal = least_decibels(judged), bool(judged) and check.equal
    error = show_error(greatest_error(judged)) if judged else NOT_JUDGED
    return AccuracyRow(
        label=_title(part, check),
        tag=show_tag(part, check.variant),
        equal=equal,
        dots=tuple(
            Dot(
                x=error_scale.place(output.max_absolute),
                y=_ROW_MIDDLE,
                text=f"{output.name}: {show_error(output.max_absolute)}",
            )
            for output in judged
            if output.max_absolute
        ),
        error="bit-identical" if equal else error,
        sqnr=None if least is None else sqnr_scale.place(least),
        sqnr_text="bit-identical" if equal else _show_decibels(least) if judged else NOT_JUDGED,
        gate=error_scale.place(limit.absolute) if limit.absolute and limit.relative is not None else None,
        sqnr_gate=None if limit.sqnr_db is None else sqnr_scale.place(limit.sqnr_db),
    )


def _show_decibels(value: float | None) -> str:
    return "no figure" if value is None else f"{value:.1f} dB"


def _cells(part: ComponentReport, check: CheckRecord) -> list[AccuracyCell]:
    tag = show_tag(part, check.variant)
    stage = f"{_title(part, check)} ({tag})" if tag else _title(part, check)
    return [
        AccuracyCell(stage=stage, output=output.name, figures=_figures(output), remark=_remark(output))
        for output in check.outputs
    ]


def _remark(output: OutputCheck) -> str:
    return f"{NOT_JUDGED}: {output.unjudged}" if output.unjudged else output.remark or ""


def _figures(output: OutputCheck) -> tuple[str, ...]:
    """Dashes for an output that cannot be judged: an error of 0 on a trivial output would look like a good result."""
    if output.unjudged:
        return (show_error(None),) * 7
    return (
        show_error(output.max_absolute),
        show_error(output.mean_absolute),
        show_error(output.max_relative),
        show_error(None) if output.cosine is None else f"{output.cosine:.7f}",
        show_error(None) if output.sqnr_db is None else f"{output.sqnr_db:.1f}",
        show_error(None) if output.worst_sqnr_db is None else f"{output.worst_sqnr_db:.1f}",
        _show_share(output),
    )


def _show_share(output: OutputCheck) -> str:
    """Top-1 agreement for scores, share of equal values for integers and strings."""
    share = output.top1_agreement if output.scores else output.agreement
    return show_error(None) if share is None else f"{share:.0%}"
