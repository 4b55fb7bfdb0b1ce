"""End a release that lacks a bundle, or that proves less than was asked for; print the digests of one that does not.

    python check_set.py dist.json TARGET=LEVEL…

`dist.json` is what `bundler build --json` printed; LEVEL is the least level of proof of the target's bundles.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LEVELS = ("resolved", "ran-unchecked", "stand-in", "emulated", "executed")
"""Levels of proof, the least first."""


def main(arguments: list[str]) -> int:
    bundles = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))["bundles"]
    wanted = dict(argument.split("=") for argument in arguments[1:])
    faults = [fault for target, level in wanted.items() if (fault := find_fault(bundles, target, level))]
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    for bundle in [] if faults else bundles:
        print(f"{bundle['digest']}  {Path(bundle['bundle']).name}/bundle.json")
    return 1 if faults else 0


def find_fault(bundles: list[dict[str, Any]], target: str, level: str) -> str:
    """What is wrong with the bundles for a target; empty where nothing is."""
    found = [bundle["proof"] for bundle in bundles if bundle["target"] == target]
    weak = [proof for proof in found if LEVELS.index(proof) < LEVELS.index(level)]
    if not found:
        return f"there is no bundle for {target}"
    return f"the bundle for {target} is {weak[0]}, not {level}" if weak else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
