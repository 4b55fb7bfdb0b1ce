"""`bundler targets providers`."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import typer

from bundler.catalogue.provider_listing import (
    OptionSummary,
    Place,
    ProviderDetails,
    ProviderSummary,
    describe_provider,
    list_providers,
)
from bundler.cli.options import Json
from bundler.cli.printing import echo, echo_lines, print_json, printable

EPILOG = "Examples:\n\n  bundler targets providers\n\n  bundler targets providers coreml --json"
_WIDTH = 110
_OWN_BUILD = "no package: a custom build of ONNX Runtime"
_HEADS = ("Provider", "Runs on", "Prepared", "Found in")
_PROOFS = {
    "context": "nodes that hold the compiled model",
    "engine": "the engine file",
    "nodes": "nodes assigned to it",
    "compatibility": "the compiler's output in the model",
}


def run(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One provider: details, with its options.")] = None,
    *,
    json: Json = False,
) -> None:
    """List all providers, or show the details of one. Raises `ProfileError` for an unknown name."""
    if name is None:
        _print_list(list_providers(), as_json=json)
        return
    details = describe_provider(name)
    if json:
        print_json(details)
    else:
        echo_lines(_detail_lines(details))


def _print_list(found: Sequence[ProviderSummary], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    if sys.stdout.isatty():
        _print_table(found)
    else:
        echo_lines(_list_lines(found))
    lines = list(_gone_lines(found))
    if lines:
        echo()
        echo("Removed or deprecated:")
        echo_lines(lines)
    echo()
    echo(f"Details of one, with its options: bundler targets providers {found[0].name}")


def _cells(summary: ProviderSummary) -> tuple[str, str, str, str]:
    packages = ", ".join(dict.fromkeys(_name_place(place) for place in summary.places)) or _OWN_BUILD
    return summary.name, summary.title, summary.prepared, packages


def _name_place(place: Place) -> str:
    versions = f" {place.versions}" if place.versions else ""
    return f"{place.package}{versions}{' (plugin)' if place.plugin else ''}"


def _list_lines(found: Sequence[ProviderSummary]) -> Iterator[str]:
    rows = [_HEADS, *(_cells(summary) for summary in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        padded = (f"{printable(cell):<{width}}" for cell, width in zip(row[:3], widths, strict=True))
        yield "  ".join((*padded, printable(row[3])))


def _print_table(found: Sequence[ProviderSummary]) -> None:
    from rich.console import Console  # noqa: PLC0415 - only for a terminal
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in _HEADS:
        table.add_column(head, no_wrap=head == _HEADS[0])
    for summary in found:
        style = "" if summary.published else "dim"
        table.add_row(*(Text(printable(cell), style=style) for cell in _cells(summary)))
    Console().print(table)


def _gone_lines(found: Sequence[ProviderSummary]) -> Iterator[str]:
    for summary in found:
        if summary.gone:
            yield from _wrap(f"{summary.name}: {summary.gone}. Replacement: {summary.instead}.", "  ", "    ")


def _detail_lines(details: ProviderDetails) -> Iterator[str]:
    summary = details.summary
    yield f"{printable(summary.name)}: {printable(summary.title)}, {printable(summary.runtime_name)} of the runtime"
    yield from _facts(details)
    yield "found in"
    yield from (line for place in summary.places for line in _place_lines(place))
    if not summary.places:
        yield f"  {_OWN_BUILD} (set runtime.custom_build)"
    yield from _option_lines("options", details.options, "  none; the session options tune it")
    if details.compile_options:
        yield from _option_lines("compile options (under a variant's `compile`)", details.compile_options, "")
    yield from _replaced_lines(details.replaced)


def _facts(details: ProviderDetails) -> Iterator[str]:
    summary = details.summary
    yield from _fact("prepared", summary.prepared)
    yield from _fact("", f"generated: the {summary.thing}" if summary.thing else "")
    if details.cache_option:
        yield from _fact("", f"where: in the folder that the loader sets as {details.cache_option}")
    if details.executes:
        yield from _fact("", "the compiled model can be run on the building machine, for the accuracy gate")
    yield from _fact("checked by", ", ".join(_PROOFS[proof] for proof in details.proofs))
    yield from _facts_of("sizes", details.sizes)
    yield from _facts_of("on device", details.needs)
    tried = {*details.tries}
    methods = (f"{name} (tried by auto)" if name in tried else name for name in details.precisions)
    yield from _fact("precision", ", ".join(methods) or "the model's own only")
    yield from _fact("state", f"{summary.gone}." if summary.gone else "")
    yield from _fact("instead" if summary.gone else "elsewhere", f"{summary.instead}." if summary.instead else "")


def _facts_of(head: str, texts: Sequence[str]) -> Iterator[str]:
    for position, text in enumerate(texts):
        yield from _fact("" if position else head, text)


def _fact(head: str, text: str) -> Iterator[str]:
    if text:
        yield from _wrap(text, f"{head:<12}", " " * 12)


def _place_lines(place: Place) -> Iterator[str]:
    where = f" on {', '.join(place.platforms)}" if place.platforms else ""
    beside = f", next to {place.beside}" if place.beside else ""
    yield from _wrap(f"{_name_place(place)}{where}{beside}", "  ", "    ")
    if place.source:
        yield from _wrap(f"seen: {place.source}", "    ", "    ")


def _option_lines(head: str, options: Sequence[OptionSummary], none: str) -> Iterator[str]:
    yield head
    if not options:
        yield none
    for option in options:
        default = f"; default {option.default}" if option.default else ""
        yield from _wrap(f"{option.key}: {option.values}{default}", "  ", "      ")
        yield from _wrap(option.meaning, "      ", "      ")
        if option.decided:
            yield from _wrap(f"Not for a profile: {option.decided}.", "      ", "      ")


def _replaced_lines(replaced: Mapping[str, str]) -> Iterator[str]:
    if replaced:
        yield "replaced option names, and what to use instead"
    for key, text in sorted(replaced.items()):
        yield from _wrap(f"{key}: {text}", "  ", "      ")


def _wrap(text: str, first: str, rest: str) -> Iterator[str]:
    yield from textwrap.wrap(
        printable(text, 2000), _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
