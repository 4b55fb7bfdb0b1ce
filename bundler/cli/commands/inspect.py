"""`bundler inspect`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import api
from bundler.api import Settings
from bundler.cli.options import Json, OptionsOf
from bundler.cli.plain import only_safety
from bundler.cli.printing import echo_lines, print_json, printable
from bundler.model.facts import metadata_bytes
from bundler.model.free_dimensions import unnamed_labels
from bundler.model.open_sizes import show_options, suggest_shapes
from bundler.model.renaming import propose_names
from bundler.model.signature import Port, Signature, describe_type
from bundler.model.state import find_state_pairs, show_state
from bundler.support.text import format_bytes, toml_string

if TYPE_CHECKING:
    from bundler.api import Inspection
    from bundler.model.facts import ModelFacts

EPILOG = "Example:\n\n  bundler inspect model.onnx --json"
SHOWN_OPERATORS = 12
SHOWN_KEYS = 12


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An ONNX file, or hf:FOLDER or hf:NAME.")],
    *,
    settings: Annotated[Settings, OptionsOf(Settings, without=("jobs",))],
    json: Json = False,
) -> None:
    """Inspect the model and print what was found."""
    result = api.inspect(model, settings, only_safety())
    if json:
        print_json(result)
    else:
        echo_lines(inspection_lines(result))


def inspection_lines(inspection: Inspection) -> Iterator[str]:
    """The output's lines, top to bottom."""
    facts = inspection.facts
    yield f"{printable(facts.name)}  sha256:{inspection.digest[:16]}"
    yield from _general(facts)
    yield from _ports("inputs", facts.signature.inputs)
    yield from _ports("outputs", facts.signature.outputs)
    yield f"dynamic     {_describe_dynamic(facts.signature)}"
    yield from _propose_names(facts.signature)
    yield from _list_state(facts.signature)
    yield from (f"note        {note}" for note in inspection.notes)
    yield "targets"
    width = max((len(fit.target) for fit in inspection.targets), default=0)
    seen: dict[tuple[str, ...], str] = {}
    for fit in inspection.targets:
        yield f"  {'fits' if fit.fits else 'NO  '}  {fit.target:<{width}}  {fit.title}"
        first = seen.setdefault(tuple(fit.obstacles), fit.target)
        obstacles = fit.obstacles if first == fit.target else (f"as for {first}",)
        yield from (f"        {printable(obstacle, 1000)}" for obstacle in obstacles if not fit.fits)


def _propose_names(signature: Signature) -> Iterator[str]:
    """`names       rename = { "unk__214" = "size" }   (for bundler.toml)`."""
    proposed = propose_names(signature)
    if proposed:
        pairs = ", ".join(f"{toml_string(old)} = {toml_string(new)}" for old, new in proposed.items())
        yield f"names       rename = {{ {pairs} }}   (for the model in bundler.toml)"


def _list_state(signature: Signature) -> Iterator[str]:
    """`state       likely h0 → hn   (--state h0=hn)`."""
    for index, pair in enumerate(find_state_pairs(signature)):
        shown = f"{printable(pair.input, 80)} → {printable(pair.output, 80)}"
        option = printable(shlex.join(("--state", *show_state([pair]))), 200)
        yield f"{'' if index else 'state':<11} likely {shown}   ({option})"


def _describe_dynamic(signature: Signature) -> str:
    """`n, m   (fix one with --dim n=1); x[0], x[2] (unnamed)   (fix them with --shape x=1,3,64,64)`."""
    symbols = ", ".join(printable(name, 40) for name in signature.symbols)
    named = [f"{symbols}   (fix one with --dim name=n)"] if symbols else []
    labels = unnamed_labels(signature)
    example = show_options(suggest_shapes(signature))
    unnamed = [f"{', '.join(labels)} (unnamed)   (fix them with, for example, {example})"] if labels else []
    return "; ".join((*named, *unnamed)) or "none"


def describe_dynamic(signature: Signature) -> str:
    """`n, m; x[0], x[2] (unnamed)`; empty if all sizes are fixed."""
    labels = unnamed_labels(signature)
    named = [", ".join(printable(name, 40) for name in signature.symbols)] if signature.symbols else []
    return "; ".join((*named, *([f"{', '.join(labels)} (unnamed)"] if labels else [])))


def _has_free_sizes(signature: Signature) -> bool:
    return any(not isinstance(size, int) for port in signature.inputs for size in port.type.shape or ())


def _general(facts: ModelFacts) -> Iterator[str]:
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in facts.opsets.items())
    producer = printable(facts.producer, 60) or "unknown"
    yield f"format      ONNX IR {facts.ir_version}, opset {opsets}, made by {producer}"
    external = f", {format_bytes(facts.external_bytes)} of it external" if facts.external_bytes else ""
    yield f"size        {format_bytes(facts.total_bytes)}{external}; {facts.parameter_count:,} parameters"
    memory = "unknown" if facts.peak_memory_bytes is None else f"about {format_bytes(facts.peak_memory_bytes)}"
    batch = " at batch size one" if facts.peak_memory_bytes is not None and _has_free_sizes(facts.signature) else ""
    yield f"memory      {memory}{batch}"
    ordered = sorted(facts.operators.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{printable(name, 60)} x{count}" for name, count in ordered[:SHOWN_OPERATORS])
    more = f" and {len(ordered) - SHOWN_OPERATORS} more" if len(ordered) > SHOWN_OPERATORS else ""
    yield f"operators   {facts.node_count} nodes: {shown}{more}"
    marks = (
        ("control flow", facts.control_flow),
        ("quantised", facts.quantized),
        (f"random ({', '.join(facts.random_operators)})", bool(facts.random_operators)),
        (f"custom domains ({', '.join(map(printable, facts.custom_domains))})", bool(facts.custom_domains)),
    )
    if facts.metadata:
        keys = sorted(facts.metadata)
        named = ", ".join(printable(key, 40) for key in keys[:SHOWN_KEYS])
        rest = f" and {len(keys) - SHOWN_KEYS} more" if len(keys) > SHOWN_KEYS else ""
        yield f"metadata    {format_bytes(metadata_bytes(facts.metadata))}: {named}{rest}"
    present = ", ".join(text for text, holds in marks if holds)
    if present:
        yield f"has         {present}"


def _ports(title: str, ports: tuple[Port, ...]) -> Iterator[str]:
    for index, port in enumerate(ports):
        head = title if index == 0 else ""
        mark = " (optional)" if port.optional else ""
        yield f"{head:<11} {printable(port.name, 80)}: {printable(describe_type(port.type), 400)}{mark}"
