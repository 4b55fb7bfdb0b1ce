"""The commands: one file each, imported when it is called.

A command's module has a function `run`, whose parameters are its options. Its help is the line here, then the
module's `DETAILS` and `EPILOG`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Commands = Mapping[str, "str | tuple[str, Commands]"]
"""The help line of each command by name; for a group with its own commands."""

COMMANDS: Commands = {
    "build": "Build a verified bundle of each model for each target.",
    "plan": "Show what a build would run, what is cached, and why a step is stale.",
    "inspect": "Show signature, operators, opsets, size, dynamic dimensions, and which targets fit.",
    "verify": "Check a bundle's digests, then run its golden set in its own runtime.",
    "diff": (
        "Show what changed most between two bundles, then all differences: versions, files, operators, options, "
        "accuracy, proof."
    ),
    "bench": "Measure load time and latency of bundles in their own runtime, side by side, and throughput on request.",
    "serve": "Serve a web bundle's demo on this machine, with the headers that it requires, until Ctrl-C.",
    "init": "Write a project file, so that `bundler build` alone builds everything (docs/project.md has all its keys).",
    "lock": "Pin every version and digest that builds of this project download, in bundler.lock.",
    "doctor": "Show which tools and environments are installed, and how to install the rest.",
    "targets": (
        "List, show, check and write target profiles.",
        {
            "list": "List all targets by group.",
            "recommend": "Recommend targets for a model, with reasons.",
            "show": "Show a resolved profile as TOML, and which file each value comes from.",
            "validate": "Check profiles and list every problem.",
            "schema": "Print the JSON Schema of a profile, for editors.",
            "methods": "List the precision methods: what each does, and whether it requires calibration data.",
            "providers": "List the execution providers: their packages, and how bundles prepare models for them.",
            "new": "Write a commented profile to start from. It is valid as written.",
        },
    ),
    "cache": (
        "Show, trim and clear the cache of finished steps.",
        {
            "show": "Show where the cache is and what it holds.",
            "trim": "Remove the least recently used entries.",
            "clear": "Remove the whole cache; the folder must carry bundler's tag.",
        },
    ),
}


def name_command(words: Sequence[str], table: Commands = COMMANDS) -> Iterator[str]:
    """The words at the beginning of a command line that name the command."""
    row = table.get(words[0]) if words else None
    if row is not None:
        yield words[0]
        if not isinstance(row, str):
            yield from name_command(words[1:], row[1])
