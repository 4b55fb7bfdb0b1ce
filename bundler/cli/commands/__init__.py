"""The commands: one file each, imported when it is called.

A command's module has a function `run`, whose parameters are its options. Its help is the line here, and then the
module's `DETAILS` and `EPILOG`, where it has them.
"""

from __future__ import annotations

from collections.abc import Mapping

Commands = Mapping[str, "str | tuple[str, Commands]"]
"""By name the line that says what a command does; for a group with its own commands."""

COMMANDS: Commands = {
    "build": "Build a verified bundle of each model for each target.",
    "plan": "Show what a build would run, what is cached, and why a step is stale.",
    "inspect": "Show signature, operators, opsets, size, dynamic dimensions, and which targets fit.",
    "verify": "Check a bundle's digests, then run its golden set in its own runtime.",
    "diff": (
        "Show what changed most between two bundles, then all that differs: versions, files, operators, options, "
        "accuracy, proof."
    ),
    "bench": "Measure opening and latency of bundles in their own runtime, side by side, and throughput when asked.",
    "serve": "Serve a web bundle's demo on this machine, with the headers that it needs, until Ctrl-C.",
    "init": "Write a project file, so that `bundler build` alone builds everything (docs/project.md has all its keys).",
    "lock": "Pin every version and digest that builds of this project download, in bundler.lock.",
    "doctor": "Show which tools and environments are here, and how to get the rest.",
    "targets": (
        "List, show, check and write target profiles.",
        {
            "list": "List all targets by group.",
            "recommend": "Pick targets for a model, and explain them.",
            "show": "Show a resolved profile as TOML, and which file each value comes from.",
            "validate": "Check profiles and tell everything that is wrong with them.",
            "schema": "Print the JSON Schema of a profile, for editors.",
            "methods": "List the precision methods: what each makes, and whether it needs calibration data.",
            "providers": "List the execution providers: which packages have them, and how bundles prepare their work.",
            "new": "Write a commented profile to start from. It is valid as written.",
        },
    ),
    "cache": (
        "Show, trim and clear the cache of finished steps.",
        {
            "show": "Show where the cache is and what it holds.",
            "trim": "Remove what was not used for the longest time.",
            "clear": "Remove the whole cache; it must bear our tag.",
        },
    ),
}
