"""`--strict`: a bundle with a variant that is not verified ends the command with an error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer

from bundler.cli.failures import error_lines
from bundler.cli.printing import echo_lines
from bundler.model.errors import VerificationError
from bundler.model.proof import Proof


def require_verified(bundles: Mapping[Path, Mapping[str, str]]) -> None:
    """End the command with exit code 8 where `bundles` has a variant that is not verified, with the reason."""
    details = tuple(f"{path}: {name}: {why}" for path, found in bundles.items() for name, why in found.items())
    if not details:
        return
    reasons = {why for found in bundles.values() for why in found.values()}
    ways = ["build the bundle with inputs that make these outputs vary (--samples)"] if _UNCHECKED in reasons else []
    ways += ["verify the bundle where these variants run (--on)"] if reasons - {_UNCHECKED} else []
    error = VerificationError(
        "--strict: not every variant is verified",
        details=details,
        hint=f"{', '.join(ways)}, or remove --strict",
    )
    echo_lines(error_lines(error), err=True)  # standard output has the results, as text or as JSON
    raise typer.Exit(error.exit_code)


def find_unverified(levels: Mapping[str, Proof], reasons: Mapping[str, str]) -> Mapping[str, str]:
    """The variants that are not verified, each with the reason; `levels` are those that they reached."""
    if not levels:
        return {"all variants": "not run"}
    found = {name: reasons.get(name) or "not run" for name, level in levels.items() if level == "resolved"}
    return found | dict.fromkeys((name for name, level in levels.items() if level == "ran-unchecked"), _UNCHECKED)


_UNCHECKED = "not every output was checked"
