"""Components that belong together, compiled into one file: graphs of equal weights hold them there once.

Each component has been compiled alone before, and compared. The file that ships has the same graphs from the same
compiler and options; nothing here can open it (Qualcomm's library for x86 crashes), and the proof says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatch

from bundler.execution.sources import Source, source_of
from bundler.model.artifacts import make_artifact
from bundler.model.errors import StageError
from bundler.model.events import Reporter
from bundler.model.plan import Step, VariantPlan
from bundler.model.results import StepOutcome
from bundler.pipeline.built import BuiltPart
from bundler.pipeline.workspace import Workspace
from bundler.providers.registry import find_by_runtime_name
from bundler.support.text import format_bytes

MOST_SHARE = 0.9
"""Of the bytes of the files compiled alone: one file that saves less is not worth a variant that runs nowhere here."""

PARTNERS = 2
"""Models that the stage compiles into one file."""


def share_contexts(
    parts: Sequence[BuiltPart], together: Sequence[str], workspace: Workspace, reporter: Reporter
) -> list[BuiltPart]:
    """The components, those `together` with one compiled file for each variant where that is smaller. Where they
    cannot have one, a message says why, and each keeps its own.
    """
    found = {part.prepared.plan.name: part for part in parts}
    for name in _list_compiled([found[component] for component in together]):
        pair = [found[component] for component in together]
        made = _compile(pair, name, workspace, reporter)
        if isinstance(made, str):
            reporter.say(f"variant {name} of {' and '.join(together)} keeps a file for each component: {made}")
        else:
            found |= {part.prepared.plan.name: part for part in made}
    return list(found.values())


def _list_compiled(parts: Sequence[BuiltPart]) -> Iterator[str]:
    """Names of variants that all have, compiled here by a compiler that can take several models."""
    for variant in parts[0].prepared.plan.variants:
        if all(any(_can_share(part, other) for other in _named(part, variant.name)) for part in parts):
            yield variant.name


def _named(part: BuiltPart, name: str) -> Iterator[VariantPlan]:
    return (variant for variant in part.prepared.plan.variants if variant.name == name)


def _can_share(part: BuiltPart, variant: VariantPlan) -> bool:
    if not variant.compiled:
        return False
    known = find_by_runtime_name(str(part.prepared.plan.step(variant.compiled).options.get("provider", "")))
    return known is not None and known.compiler is not None and bool(known.compiler.shared_config)


def _compile(
    pair: Sequence[BuiltPart], name: str, workspace: Workspace, reporter: Reporter
) -> tuple[BuiltPart, ...] | str:
    """The components with the file that they share, or why they have none."""
    steps = [part.prepared.plan.step(next(_named(part, name)).compiled) for part in pair]
    obstacle = _find_obstacle(steps)
    if obstacle is not None:
        return obstacle
    alone = [part.outcomes[step.id] for part, step in zip(pair, steps, strict=True)]
    try:
        outcome = _run(pair, steps, name, workspace, reporter)
    except StageError as error:
        return f"compiling them together failed: {error.message}"
    placed = [outcome.facts, outcome.facts.get("partner", {})]
    if [facts.get("share") for facts in placed] != [each.facts.get("share") for each in alone]:
        return "compiled together, different nodes are assigned to the device"
    before, after = sum(map(_count_bytes, alone)), _count_bytes(outcome)
    if after > MOST_SHARE * before:
        return f"one shared file has {format_bytes(after)}, two files have {format_bytes(before)}"
    reporter.say(
        f"variant {name} of {' and '.join(part.prepared.plan.name for part in pair)} share one compiled file: "
        f"{format_bytes(after)} instead of {format_bytes(before)}"
    )
    names = tuple(part.prepared.plan.name for part in pair)
    return tuple(
        part.taking({name: _pick(outcome, entry)}, outcome, partners={name: names})
        for part, entry in zip(pair, ("model.onnx", "partner.onnx"), strict=True)
    )


def _find_obstacle(steps: Sequence[Step]) -> str | None:
    if len(steps) != PARTNERS:
        return f"the compiler takes {PARTNERS} models at once, not {len(steps)}"
    first, second = steps
    if (first.options, first.environment) != (second.options, second.environment):
        return "they are compiled with different options"
    return "the compiled part is embedded in each model" if first.options.get("embed") else None


def _run(
    pair: Sequence[BuiltPart], steps: Sequence[Step], name: str, workspace: Workspace, reporter: Reporter
) -> StepOutcome:
    labels = [f"{part.prepared.plan.name}/{step.inputs['model']}" for part, step in zip(pair, steps, strict=True)]
    sources = {
        label: _find_source(part, step.inputs["model"]) for label, part, step in zip(labels, pair, steps, strict=True)
    }
    step = Step(
        id=f"together/{name}",
        stage=steps[0].stage,
        inputs={"model": labels[0], "partner": labels[1]},
        options=steps[0].options,
        environment=steps[0].environment,
        title=f"Compile {' and '.join(part.prepared.plan.name for part in pair)} into one file",
        reason="they belong together, and may hold equal weights",
    )
    return workspace.executor.execute((step,), sources, reporter)[step.id]


def _find_source(part: BuiltPart, name: str) -> Source:
    return source_of(part.outcomes[name]) if name in part.outcomes else part.prepared.sources[name]


def _count_bytes(outcome: StepOutcome) -> int:
    return outcome.artifact.size if outcome.artifact else 0


def _pick(outcome: StepOutcome, entry: str) -> StepOutcome:
    """The file with one of the graphs' models. Raises `StageError` for a result without it."""
    files = outcome.artifact.files if outcome.artifact else ()
    kept = tuple(file for file in files if file.path == entry or not fnmatch(file.path, "*.onnx"))
    if entry not in {file.path for file in kept}:
        raise StageError(f"{outcome.step} did not write {entry}")
    return replace(outcome, artifact=make_artifact(kept), entry=entry)
