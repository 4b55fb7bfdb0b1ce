"""`bundler targets recommend` for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from bundler.api.recommend import Recommendation, Recommendations
from bundler.cli.inspection import describe_dynamic
from bundler.cli.printing import echo_lines, print_json, printable
from bundler.model.cache import CacheChoice
from bundler.support.text import format_bytes

_WIDTH = 110
_LONGEST = 2000
"""Characters of a command: a path is no longer."""


def run_recommend(model: Path, *, device: str | None, sandbox: bool, cache: CacheChoice, as_json: bool) -> None:
    """Pick targets for the model and print why."""
    from bundler.api.recommend import recommend_targets  # noqa: PLC0415 - heavy
    from bundler.model.events import ignore  # noqa: PLC0415
    from bundler.pipeline.workshop import open_workshop  # noqa: PLC0415

    with open_workshop(cache, 1, sandbox=sandbox) as workshop:
        found = recommend_targets(model, device, workshop, ignore)
    if as_json:
        print_json(found)
    else:
        echo_lines(recommendation_lines(found))


def recommendation_lines(found: Recommendations) -> Iterator[str]:
    """The lines of the page, top to bottom."""
    facts = found.facts
    kind = "quantised" if facts.quantized else "in floating point"
    dynamic = describe_dynamic(facts.signature) or "none"
    yield f"{printable(facts.name)}: {format_bytes(facts.total_bytes)}, {kind}, dynamic dimensions: {dynamic}"
    for occasion, picks in groupby(found.picks, key=lambda pick: pick.occasion):
        yield ""
        yield f"For {printable(occasion)}:"
        for pick in picks:
            yield from _pick_lines(pick)


def _pick_lines(pick: Recommendation) -> Iterator[str]:
    found = f", {printable(pick.matched, 1000)}" if pick.matched else ""
    head = f"{pick.target}: {printable(pick.title) or 'not valid'}{found}"
    yield from textwrap.wrap(head, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    if not pick.fits:
        yield from _bullets([f"does not fit: {obstacle}" for obstacle in pick.obstacles])
        return
    yield from _bullets(pick.reasons)
    yield f"    {printable(pick.shell, _LONGEST)}"


def _bullets(lines: tuple[str, ...] | list[str]) -> Iterator[str]:
    for line in lines:
        yield from textwrap.wrap(printable(line, 1000), _WIDTH, initial_indent="    - ", subsequent_indent="      ")
