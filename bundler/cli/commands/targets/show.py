"""`bundler targets show`."""

from __future__ import annotations

from typing import Annotated

import typer

from bundler.catalogue.outlook import foresee_variants
from bundler.catalogue.presentation import describe_profile, origins_of
from bundler.cli.options import Json, complete_target
from bundler.cli.printing import echo_document, print_json
from bundler.model.options import Overrides
from bundler.profiles.resolve import resolve_layers

EPILOG = "Example:\n\n  bundler targets show raspberry-pi-5 --set optimization.level=basic"


def run(
    target: Annotated[
        str,
        typer.Argument(metavar="ID|PATH", help="A target's name, or a profile's path.", autocompletion=complete_target),
    ],
    *,
    overrides: Overrides = (),
    json: Json = False,
) -> None:
    """The resolved profile, each value with its origin."""
    resolved = resolve_layers(target, overrides)
    if not json:
        echo_document(describe_profile(resolved))
        return
    profile = resolved.profile.model_dump(mode="json")
    print_json(
        {
            "files": resolved.layered.files,
            "profile": profile,
            "origins": origins_of(resolved),
            "variants": foresee_variants(resolved.profile),
        }
    )
