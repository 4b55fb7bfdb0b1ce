"""`bundler targets`: the devices that bundles are built for, and profiles of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bundler.cli.options import Cache, CacheReadonly, Json, Overrides, Sandbox
from bundler.model.cache import CacheChoice

app = typer.Typer(no_args_is_help=True)


@app.command("list", epilog="Example:\n\n  bundler targets list --group snapdragon")
def list_(
    *,
    group: Annotated[
        str, typer.Option("--group", metavar="TEXT", help="Only groups whose heading has this in it.")
    ] = "",
    json: Json = False,
) -> None:
    """List all targets by group."""
    from bundler.cli.targeting import print_list  # noqa: PLC0415 - keeps --help quick

    print_list(group, as_json=json)


@app.command(epilog='Example:\n\n  bundler targets recommend model.onnx --device "Galaxy S24 Ultra"')
def recommend(
    model: Annotated[Path, typer.Argument(help="An ONNX file, or hf:FOLDER or hf:NAME.")],
    *,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="TEXT",
            help="What the device is called: a product, a board, a part number.",
            show_default="this machine, and one of each kind",
        ),
    ] = None,
    sandbox: Sandbox = False,
    cache: Cache = None,
    cache_readonly: CacheReadonly = False,
    json: Json = False,
) -> None:
    """Pick targets for a model, and explain them."""
    from bundler.cli.recommending import run_recommend  # noqa: PLC0415 - keeps --help quick

    run_recommend(model, device=device, sandbox=sandbox, cache=CacheChoice(cache, cache_readonly), as_json=json)


@app.command(epilog="Example:\n\n  bundler targets show raspberry-pi-5 --set optimization.level=basic")
def show(
    target: Annotated[str, typer.Argument(metavar="ID|PATH", help="A target's name, or a profile's path.")],
    *,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Show a resolved profile as TOML, and which file each value comes from."""
    from bundler.cli.targeting import print_profile  # noqa: PLC0415 - keeps --help quick

    print_profile(target, overrides or (), as_json=json)


@app.command(epilog="Example:\n\n  bundler targets validate ./my-board.toml linux-x64")
def validate(
    targets: Annotated[list[str], typer.Argument(metavar="PATH|ID…", help="Profiles to check.")],
    *,
    json: Json = False,
) -> None:
    """Check profiles and tell everything that is wrong with them."""
    from bundler.cli.targeting import print_validation  # noqa: PLC0415 - keeps --help quick

    print_validation(targets, as_json=json)


@app.command(epilog="Example:\n\n  bundler targets schema > profile.schema.json")
def schema() -> None:
    """Print the JSON Schema of a profile, for editors."""
    from bundler.cli.targeting import print_schema  # noqa: PLC0415 - keeps --help quick

    print_schema()


@app.command(epilog="Example:\n\n  bundler targets methods linux-x64")
def methods(
    target: Annotated[str | None, typer.Argument(metavar="ID|PATH", help="Only those that it takes.")] = None,
    *,
    json: Json = False,
) -> None:
    """List the precision methods: what each makes, and whether it needs calibration data."""
    from bundler.cli.targeting import print_methods  # noqa: PLC0415 - keeps --help quick

    print_methods(target, as_json=json)


@app.command(epilog="Examples:\n\n  bundler targets providers\n\n  bundler targets providers coreml --json")
def providers(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One provider: all of it, with its options.")
    ] = None,
    *,
    json: Json = False,
) -> None:
    """List the execution providers: which packages have them, and how bundles prepare their work."""
    from bundler.cli.targeting_providers import print_providers  # noqa: PLC0415 - keeps --help quick

    print_providers(name, as_json=json)


@app.command(epilog="Example:\n\n  bundler targets new my-board --extends raspberry-pi-5 -o boards/my-board.toml")
def new(
    target: Annotated[str, typer.Argument(metavar="ID", help="The new target's name: lower case, digits, hyphens.")],
    *,
    extends: Annotated[str, typer.Option("--extends", metavar="BASE", help="A target, a base, or a profile's path.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write it.", show_default="ID.toml")
    ] = None,
) -> None:
    """Write a commented profile to start from. It is valid as written."""
    from bundler.cli.targeting import write_new  # noqa: PLC0415 - keeps --help quick

    write_new(target, extends, output)
