"""The first sentences of `bundler diff`: what is equal, and the largest changes in size, accuracy, placement, speed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from bundler.model.manifest import CheckRecord, Manifest
from bundler.model.placement import PlacementFacts, read_placement
from bundler.reporting.claims import compare_medians
from bundler.reporting.data import Spread
from bundler.reporting.figures import show_percent
from bundler.reporting.timings import Timed
from bundler.support.text import format_bytes

LEAST_SHARE = 0.01
"""Sizes that differ by a smaller share are reported as equal: a version number in a README changes as much."""

MANY = 10
"""From this ratio of two sizes on, the ratio is shown instead of a percentage."""

LEAST_DB = 1.0
"""Signal-to-noise ratios that differ by less are reported as equal: another order of summation changes as much."""

Timings = Mapping[str, Timed]


def summarize_difference(a: Manifest, b: Manifest, timed: tuple[Timings, Timings] = ({}, {})) -> tuple[str, ...]:
    """One sentence on what the bundles A and B have in common, and one on how B differs from A. `timed` are the
    measurements of each build, by variant.
    """
    changes = [*_describe_variants(a, b), *_describe_size(a, b), *_describe_accuracy(a, b), *_describe_placement(a, b)]
    speed = _describe_speed(a, b, timed)
    changes += [speed] if speed.startswith(_CHANGED) else []
    equal = "" if changes else "Size, accuracy and placement are equal"
    summary = f"B {_join(changes)}" if changes else equal
    rest = "" if speed.startswith(_CHANGED) else f"; {speed}"
    return (_describe_origin(a, b), f"{summary}{rest}.")


_DIFFERENT = {"model": "model (its files, or their names)"}
"""A model's digest covers its files and their names."""


def _describe_origin(a: Manifest, b: Manifest) -> str:
    """What is equal and what differs: `Equal: model, target, runtime. Different: version of bundler.`."""
    pairs = {
        "model": (a.model.digest, b.model.digest),
        "target": (a.target.id, b.target.id),
        "runtime": (a.runtime, b.runtime),
        "format": ((a.ecosystem, a.format), (b.ecosystem, b.format)),
        "version of bundler": (a.bundler, b.bundler),
    }
    equal = [name for name, (one, two) in pairs.items() if one == two]
    different = [_DIFFERENT.get(name, name) for name in pairs if name not in equal]
    if a.target.id == b.target.id and a.target.profile_digest != b.target.profile_digest:
        different.append("profile of the target")
    parts = {"Equal": equal, "Different": different}
    return " ".join(f"{word}: {', '.join(names)}." for word, names in parts.items() if names)


def _describe_variants(a: Manifest, b: Manifest) -> Iterator[str]:
    before, after = ([variant.name for variant in manifest.variants] for manifest in (a, b))
    lost, new = ([name for name in one if name not in other] for one, other in ((before, after), (after, before)))
    if lost:
        yield f"lacks {_join(lost)}"
    if new:
        yield f"has {_join(new)} in addition" if not lost else f"has {_join(new)} instead"


def _describe_size(a: Manifest, b: Manifest) -> Iterator[str]:
    yield from _describe_growth("is", a.size, b.size)
    sizes = {variant.name: variant.size for variant in a.variants}
    changes = [(sizes[variant.name], variant.size) for variant in b.variants if variant.name in sizes]
    most = max(changes, key=lambda pair: abs(math.log(max(pair[1], 1) / max(pair[0], 1))), default=(0, 0))
    yield from _describe_growth("has a model that is", *most)


def _describe_growth(verb: str, before: int, after: int) -> Iterator[str]:
    if before and after and abs(after / before - 1) >= LEAST_SHARE:
        word, ratio = ("larger", after / before) if after > before else ("smaller", before / after)
        share = f"{ratio:.0f} times" if ratio >= MANY else show_percent(after, before)[1:]
        yield f"{verb} {share} {word} ({format_bytes(before)} → {format_bytes(after)})"


def _describe_accuracy(a: Manifest, b: Manifest) -> Iterator[str]:
    """Among the variants that both have, the one whose worst output changed most."""
    before, after = _find_worst(a), _find_worst(b)
    moves = {name: after[name] - before[name] for name in before if name in after and after[name] != before[name]}
    if not moves:
        return
    name = max(moves, key=lambda variant: abs(moves[variant]))
    if abs(moves[name]) >= LEAST_DB:
        word = "closer to" if moves[name] > 0 else "further from"
        yield f"is {word} the original model ({name}: {_show_db(before[name])} → {_show_db(after[name])})"


def _find_worst(manifest: Manifest) -> dict[str, float]:
    """By variant the lowest SQNR in dB of its judged outputs, after its last step."""
    last: dict[str, CheckRecord] = {}
    for check in manifest.checks:
        for variant in manifest.variants:
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
    return "bit-identical" if math.isinf(ratio) else f"{ratio:.1f} dB"


def _describe_placement(a: Manifest, b: Manifest) -> Iterator[str]:
    before, after = _find_placements(a), _find_placements(b)
    for name, found in after.items():
        known = before.get(name)
        if known is not None and (known.assigned, known.left) != (found.assigned, found.left):
            yield f"assigns {_show_nodes(found)} of {name} to {found.provider} instead of {_show_nodes(known)}"


def _find_placements(manifest: Manifest) -> dict[str, PlacementFacts]:
    found = ((stage.variant, read_placement(stage.facts)) for stage in manifest.stages)
    return {variant: facts for variant, facts in found if variant is not None and facts is not None}


def _show_nodes(found: PlacementFacts) -> str:
    return f"{found.assigned} of {found.assigned + found.left} nodes"


_CHANGED = "is "


def _describe_speed(a: Manifest, b: Manifest, timed: tuple[Timings, Timings]) -> str:
    """Each is compared with a default session that was timed in turn with it, since the machines may differ."""
    if a.model.digest != b.model.digest:
        return "speed cannot be compared: the models, or the names of their files, differ"
    before, after = timed
    common = [name for name in before if name in after]
    if not common:
        return "speed cannot be compared: the reports beside the bundles have no times for both"
    verdicts = [(name, *_compare_speed(before[name], after[name])) for name in common]
    claims = [(name, verdict) for name, verdict, tone in verdicts if tone != "plain"]
    if not claims:
        name, verdict, _ = verdicts[0]
        return f"speed of {name}: {verdict}"
    return _CHANGED + " and ".join(f"{verdict} ({name}, relative to the original model)" for name, verdict in claims)


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
