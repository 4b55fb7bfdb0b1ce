"""`bundler targets recommend`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import api
from bundler.api import Settings
from bundler.cli.commands.inspect import describe_dynamic
from bundler.cli.options import Json, OptionsOf
from bundler.cli.plain import only_safety
from bundler.cli.printing import echo_lines, print_json, printable
from bundler.support.text import format_bytes

if TYPE_CHECKING:
    from bundler.pipeline.recommend import Recommendation, Recommendations

EPILOG = 'Example:\n\n  bundler targets recommend model.onnx --device "Galaxy S24 Ultra"'
_WIDTH = 110
_LONGEST = 2000
"""Characters of a command, long enough for any path."""


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An ONNX file, or hf:FOLDER or hf:NAME.")],
    *,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="TEXT",
            help="Name of the device: a product, a board, a part number.",
            show_default="this machine, and one of each family",
        ),
    ] = None,
    settings: Annotated[Settings, OptionsOf(Settings, without=("jobs",))],
    json: Json = False,
) -> None:
    """Recommend targets for the model, with reasons."""
    found = api.recommend(model, device, settings, only_safety())
    if json:
        print_json(found)
    else:
        echo_lines(recommendation_lines(found))


def recommendation_lines(found: Recommendations) -> Iterator[str]:
    """The output's lines, top to bottom."""
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
        yield from _bullets([f"incompatible: {obstacle}" for obstacle in pick.obstacles])
        return
    yield from _bullets(pick.reasons)
    yield f"    {printable(pick.shell, _LONGEST)}"


def _bullets(lines: tuple[str, ...] | list[str]) -> Iterator[str]:
    for line in lines:
        yield from textwrap.wrap(printable(line, 1000), _WIDTH, initial_indent="    - ", subsequent_indent="      ")
