"""Node assignment of each variant's accelerator, the reasons for nodes that it lacks, and what is compiled where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from bundler.model.open_sizes import Asker, suggest_options
from bundler.model.placement import Gain, PlacementFacts, read_placement
from bundler.model.plan import VariantPlan
from bundler.model.signature import Signature
from bundler.reporting.data import ComponentReport
from bundler.reporting.page import LeftRow, Placement, Segment, StackedBar
from bundler.support.text import format_bytes

_ASSIGNED, _OTHERS = 0, 5
"""Colours of the page: the accelerator's, and a plain one."""
_COLOURS = 6
"""Number of series colours in the style sheet."""


def chart_placements(part: ComponentReport) -> tuple[Placement, ...]:
    """A placement for each variant for which a step reported one, something is generated on the device, or a minimum
    share is required; empty where every variant runs on a provider that supports every node.
    """
    found = ((variant, find_placement(part, variant)) for variant in part.plan.variants)
    return tuple(
        _chart(part, variant, facts)
        for variant, facts in found
        if facts is not None or variant.prepare is not None or variant.least_share
    )


def describe_unassigned(part: ComponentReport, unassigned: str) -> str:
    """Why there is no count of nodes by provider, where the bundle says `unassigned`."""
    if any(find_placement(part, variant) for variant in part.plan.variants):
        return "no runtime counted them in a run; see the compiled or estimated assignment above"
    return unassigned


def describe_shortfalls(part: ComponentReport) -> tuple[tuple[str, str], ...]:
    """The variants with fewer assigned nodes than required, each with a sentence on it."""
    found = ((variant, find_placement(part, variant)) for variant in part.plan.variants)
    return tuple(
        (variant.name, _describe_verdict(part, variant, facts)) for variant, facts in found if _is_short(variant, facts)
    )


def _is_short(variant: VariantPlan, facts: PlacementFacts | None) -> bool:
    return facts is not None and facts.share < variant.least_share


def find_placement(part: ComponentReport, variant: VariantPlan) -> PlacementFacts | None:
    """The placement of a variant: from its last compiling step, otherwise from its proof, otherwise an estimate."""
    own = {step.id for step in part.plan.steps if step.variant == variant.name}
    read = [read_placement(outcome.facts) for outcome in part.outcomes if outcome.step in own]
    known = [facts for facts in read if facts is not None]
    certain = [facts for facts in known if not facts.estimated]
    return next(iter((*reversed(certain), *filter(None, [_read_proof(part, variant)]), *reversed(known))), None)


def _read_proof(part: ComponentReport, variant: VariantPlan) -> PlacementFacts | None:
    """The assignment that the runtime reported in the proof of a variant with a minimum share; None without one."""
    counts = part.assignments.get(variant.name)
    if not counts or not variant.least_share:
        return None
    provider = variant.providers[0].name
    assigned = counts.get(provider, 0)
    return PlacementFacts(provider=provider, assigned=assigned, left=sum(counts.values()) - assigned)


def _chart(part: ComponentReport, variant: VariantPlan, facts: PlacementFacts | None) -> Placement:
    return Placement(
        variant=variant.name,
        segments=()
        if facts is None
        else _stack([(facts.provider, facts.assigned, _ASSIGNED), ("others", facts.left, _OTHERS)]),
        total="" if facts is None else f"{facts.assigned + facts.left:,} nodes",
        gate=round(100 * variant.least_share, 2) if variant.least_share else None,
        verdict=_describe_verdict(part, variant, facts),
        tone="plain" if facts is None or not variant.least_share else "bad" if _is_short(variant, facts) else "good",
        facts=_describe_making(variant, facts),
        left=() if facts is None else tuple(_left_row(row) for row in facts.left_nodes),
        left_text="" if facts is None else _describe_left(facts),
    )


def stack_providers(part: ComponentReport) -> tuple[StackedBar, ...]:
    """Nodes by provider, one bar for each variant; a provider has the same colour in all bars."""
    names = sorted({name for counts in part.assignments.values() for name in counts})
    series = {name: number % _COLOURS for number, name in enumerate(names)}
    return tuple(
        StackedBar(
            label=variant,
            total=f"{sum(counts.values()):,} nodes",
            segments=_stack(
                (name, count, series[name])
                for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            ),
        )
        for variant, counts in part.assignments.items()
        if sum(counts.values()) > 0
    )


def _stack(counts: Iterable[tuple[str, int, int]]) -> tuple[Segment, ...]:
    """Label, nodes and colour of each part, side by side; parts without nodes are left out."""
    parts = [part for part in counts if part[1]]
    total, start, segments = sum(count for _, count, _ in parts), 0, []
    for label, count, series in parts:
        segments.append(
            Segment(
                label=label,
                start=round(100 * start / total, 2),
                width=round(100 * count / total, 2),
                value=f"{count:,} ({count / total:.0%})",
                series=series,
            )
        )
        start += count
    return tuple(segments)


def describe_gain(gain: Gain, signature: Signature, asker: Asker) -> str:
    """What fixed sizes would gain, with those of the user's data, which the step that estimated it has not seen."""
    return replace(gain, options=suggest_options(signature, asker)).describe(asker.project)


def _describe_verdict(part: ComponentReport, variant: VariantPlan, facts: PlacementFacts | None) -> str:
    if facts is None:
        return "The assignment of nodes is only known on the device" + _describe_threshold(variant)
    by = f" by {facts.estimated_by}" if facts.estimated_by else ""
    estimated = f" (estimated{by})" if facts.estimated else ""
    text = f"{_percent(facts.share)} of the nodes assigned to {facts.provider}{estimated}"
    gain = "" if facts.gain is None else f"; {describe_gain(facts.gain, part.facts.signature, part.asker)}"
    if _is_short(variant, facts):
        passed = ", which the profile tolerates" if variant.tolerates_shortfall else ""
        return f"{text}: fewer than the required {_percent(variant.least_share)}{passed}{gain}"
    return text + _describe_threshold(variant) + gain


def _describe_threshold(variant: VariantPlan) -> str:
    return f" (min {_percent(variant.least_share)})" if variant.least_share else ""


def _percent(share: float) -> str:
    """At most 99.9 % unless it is all of them."""
    return f"{min(share, 0.999) if share < 1 else share:.1%}".replace(".0%", "%")


def _describe_making(variant: VariantPlan, facts: PlacementFacts | None) -> tuple[tuple[str, str], ...]:
    """What was compiled here and what is generated on the device, as terms and their values."""
    rows = [] if facts is None else _describe_compiled(facts)
    if variant.prepare is not None:
        once = "at install or at the first start; until then the next variant runs"
        rows.append(("Generated on the device", f"the {variant.prepare.thing}, {once}"))
    return tuple(rows)


def _describe_compiled(facts: PlacementFacts) -> list[tuple[str, str]]:
    rows = [
        ("Compiled for", f"{', '.join(facts.devices)} (the compiler's names of devices)" if facts.devices else ""),
        ("Version of the compiler", facts.sdk),
        ("Compiled parts", f"{facts.contexts:,}" if facts.contexts else ""),
        ("Compiled size", format_bytes(facts.size) if facts.size else ""),
    ]
    return [(term, value) for term, value in rows if value]


def _describe_left(facts: PlacementFacts) -> str:
    listed = len(facts.left_nodes)
    if not listed:
        return ""
    which = f"The first {listed} of {facts.left:,}" if listed < facts.left else f"The {listed:,}"
    return f"{which} nodes on other providers{' (estimated)' if facts.estimated else ''}"


def _left_row(row: Mapping[str, Any]) -> LeftRow:
    return LeftRow(
        name=str(row.get("name") or "(no name)"),
        operator=str(row.get("operator") or ""),
        reason=str(row.get("reason") or "no reason given"),
    )
