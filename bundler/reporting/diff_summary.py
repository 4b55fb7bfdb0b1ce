"""The first sentences of `bundler diff`: what is equal, and the largest changes in size, accuracy, placement, speed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bundler.model.manifest import CheckRecord, ComponentRecord, Manifest
from bundler.model.placement import PlacementFacts, read_placement
from bundler.reporting.claims import compare_medians
from bundler.reporting.data import Spread
from bundler.reporting.figures import show_percent
from bundler.reporting.pairing import Pair, list_unpaired, pair_components
from bundler.reporting.timings import Timed, Timings
from bundler.support.text import format_bytes

LEAST_SHARE = 0.01
"""Sizes that differ by a smaller share are reported as equal: a version number in a README changes as much."""

MANY = 10
"""From this ratio of two sizes on, the ratio is shown instead of a percentage."""

LEAST_DB = 1.0
"""Signal-to-noise ratios that differ by less are reported as equal: another order of summation changes as much."""


def summarize_difference(a: Manifest, b: Manifest, timed: tuple[Timings, Timings] = ({}, {})) -> tuple[str, ...]:
    """One sentence on what the bundles A and B have in common, and one on how B differs from A. `timed` are the
    measurements of each build.
    """
    pairs = pair_components(a, b)
    changes = [*_describe_components(a, b, pairs), *_describe_variants(pairs), *_describe_growth("is", a.size, b.size)]
    changes += [*_describe_models(pairs), *_describe_accuracy(pairs), *_describe_placement(pairs)]
    speed = _describe_speed(pairs, timed)
    changes += [speed] if speed.startswith(_CHANGED) else []
    equal = "" if changes else "Size, accuracy and placement are equal"
    summary = f"B {_join(changes)}" if changes else equal
    rest = "" if speed.startswith(_CHANGED) else f"; {speed}"
    return (_describe_origin(a, b, pairs), f"{summary}{rest}.")


_FILES = " (its files, or their names)"
"""A model's digest covers its files and their names."""


def _describe_origin(a: Manifest, b: Manifest, pairs: Sequence[Pair]) -> str:
    """What is equal and what differs: `Equal: model, target, runtime. Different: version of bundler.`."""
    models = {
        f"model of {pair.label}" if pair.label else "model": (pair.before.model.digest, pair.after.model.digest)
        for pair in pairs
    }
    traits: dict[str, tuple[object, object]] = {
        **models,
        "target": (a.target.id, b.target.id),
        "runtime": (a.runtime, b.runtime),
        "format": ((a.ecosystem, a.format), (b.ecosystem, b.format)),
        "version of bundler": (a.bundler, b.bundler),
    }
    equal = [name for name, (one, two) in traits.items() if one == two]
    different = [name + _FILES if name in models else name for name in traits if name not in equal]
    if a.target.id == b.target.id and a.target.profile_digest != b.target.profile_digest:
        different.append("profile of the target")
    parts = {"Equal": equal, "Different": different}
    return " ".join(f"{word}: {', '.join(names)}." for word, names in parts.items() if names)


def _describe_components(a: Manifest, b: Manifest, pairs: tuple[Pair, ...]) -> Iterator[str]:
    lone = list(list_unpaired(a, b, pairs))
    lost = [f"component {name}" for name, _, after in lone if after is None]
    new = [f"component {name}" for name, before, _ in lone if before is None]
    yield from _describe_exchange(lost, new)
    renamed = [pair for pair in pairs if pair.label and pair.before.name != pair.after.name]
    for pair in renamed:
        yield f"calls {pair.before.name} {pair.after.name}"


def _describe_variants(pairs: Sequence[Pair]) -> Iterator[str]:
    before = [pair.name(variant.name) for pair in pairs for variant in pair.before.variants]
    after = [pair.name(variant.name) for pair in pairs for variant in pair.after.variants]
    lost, new = ([name for name in one if name not in other] for one, other in ((before, after), (after, before)))
    yield from _describe_exchange(lost, new)


def _describe_exchange(lost: list[str], new: list[str]) -> Iterator[str]:
    if lost:
        yield f"lacks {_join(lost)}"
    if new:
        yield f"has {_join(new)} in addition" if not lost else f"has {_join(new)} instead"


def _describe_models(pairs: Sequence[Pair]) -> Iterator[str]:
    """The model whose size changed most."""
    changes = []
    for pair in pairs:
        sizes = {variant.name: variant.size for variant in pair.before.variants}
        whose = f"a model {pair.label}" if pair.label else "a model"
        changes += [(sizes[v.name], v.size, whose) for v in pair.after.variants if v.name in sizes]
    most = max(changes, key=lambda change: abs(math.log(max(change[1], 1) / max(change[0], 1))), default=None)
    if most is not None:
        yield from _describe_growth(f"has {most[2]} that is", *most[:2])


def _describe_growth(verb: str, before: int, after: int) -> Iterator[str]:
    if before and after and abs(after / before - 1) >= LEAST_SHARE:
        word, ratio = ("larger", after / before) if after > before else ("smaller", before / after)
        share = f"{ratio:.0f} times" if ratio >= MANY else show_percent(after, before)[1:]
        yield f"{verb} {share} {word} ({format_bytes(before)} → {format_bytes(after)})"


def _describe_accuracy(pairs: Sequence[Pair]) -> Iterator[str]:
    """Among the variants that both have, the one whose worst output changed most."""
    before = {pair.name(name): worst for pair in pairs for name, worst in _find_worst(pair.before).items()}
    after = {pair.name(name): worst for pair in pairs for name, worst in _find_worst(pair.after).items()}
    moves = {name: after[name] - before[name] for name in before if name in after and after[name] != before[name]}
    if not moves:
        return
    name = max(moves, key=lambda variant: abs(moves[variant]))
    if abs(moves[name]) >= LEAST_DB:
        word = "closer to" if moves[name] > 0 else "further from"
        yield f"is {word} the original model ({name}: {_show_db(before[name])} → {_show_db(after[name])})"


def _find_worst(component: ComponentRecord) -> dict[str, float]:
    """By variant the lowest SQNR in dB of its judged outputs, after its last step."""
    last: dict[str, CheckRecord] = {}
    for check in component.checks:
        for variant in component.variants:
            if check.variant in (None, variant.name):
                last[variant.name] = check
    worst = {}
    for name, check in last.items():
        judged = [output for output in check.outputs if not output.unjudged]
        ratios = [math.inf if output.equal else output.sqnr_db for output in judged]
        known = [ratio for ratio in ratios if ratio is not None]
        if known:
            worst[name] = min(known)
    return worst


def _show_db(ratio: float) -> str:
    return "bit-identical" if math.isinf(ratio) else f"SQNR {ratio:.1f} dB"


def _describe_placement(pairs: Sequence[Pair]) -> Iterator[str]:
    for pair in pairs:
        before = _find_placements(pair.before)
        for name, found in _find_placements(pair.after).items():
            known = before.get(name)
            if known is not None and (known.assigned, known.left) != (found.assigned, found.left):
                nodes = f"{_show_nodes(found)} of {pair.name(name)}"
                yield f"assigns {nodes} to {found.provider} instead of {_show_nodes(known)}"


def _find_placements(component: ComponentRecord) -> dict[str, PlacementFacts]:
    found = ((stage.variant, read_placement(stage.facts)) for stage in component.stages)
    return {variant: facts for variant, facts in found if variant is not None and facts is not None}


def _show_nodes(found: PlacementFacts) -> str:
    return f"{found.assigned} of {found.assigned + found.left} nodes"


_CHANGED = "is "


def _describe_speed(pairs: Sequence[Pair], timed: tuple[Timings, Timings]) -> str:
    """Each is compared with a default session that was timed in turn with it, since the machines may differ."""
    equal = [pair for pair in pairs if pair.before.model.digest == pair.after.model.digest]
    if not equal:
        return "speed cannot be compared: the models, or the names of their files, differ"
    verdicts = [verdict for pair in equal for verdict in _compare_times(pair, timed)]
    if not verdicts:
        return "speed cannot be compared: the reports of the two bundles do not both have times"
    claims = [(name, verdict) for name, verdict, tone in verdicts if tone != "plain"]
    if not claims:
        name, verdict, _ = verdicts[0]
        return f"speed of {name}: {verdict}"
    return _CHANGED + " and ".join(f"{verdict} ({name}, relative to the original model)" for name, verdict in claims)


def _compare_times(pair: Pair, timed: tuple[Timings, Timings]) -> Iterator[tuple[str, str, str]]:
    """Each variant that was timed on both sides, with the verdict and its tone."""
    before, after = (
        {variant: found for (name, variant), found in times.items() if name == component.name}
        for times, component in zip(timed, (pair.before, pair.after), strict=True)
    )
    for variant in before:
        if variant in after:
            yield (pair.name(variant), *_compare_speed(before[variant], after[variant]))


def _compare_speed(before: Timed, after: Timed) -> tuple[str, str]:
    known = [others for others in (before.others, after.others) if others is not None]
    return compare_medians(_beside(before), _beside(after), max(known, default=None))


def _beside(timed: Timed) -> Spread:
    """The latency in units of the default session's; the count is the smaller of both."""
    unit = timed.baseline.median
    return replace(
        timed.latency,
        median=timed.latency.median / unit,
        low=timed.latency.low / unit,
        high=timed.latency.high / unit,
        count=min(timed.latency.count, timed.baseline.count),
    )


def _join(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
