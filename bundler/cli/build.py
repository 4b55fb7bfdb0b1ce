"""`bundler build`, `bundler plan` and `bundler inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bundler.cli.options import (
    Cache,
    CacheReadonly,
    Calibration,
    Dimensions,
    Golden,
    Jobs,
    Json,
    On,
    Only,
    Overrides,
    Preprocessing,
    Progress,
    Samples,
    Sandbox,
    Shapes,
    TrustTarget,
)
from bundler.cli.printing import echo_lines, print_json
from bundler.model.cache import CacheChoice

BUILD_EPILOG = """Examples:

  bundler build model.onnx --target linux-x64

  bundler build model.onnx -t linux-x64 -t raspberry-pi-5 --samples samples/ -o out

  bundler build model.onnx -t linux-x64 --dim batch=1 --set accuracy.absolute=1e-5 --format wheel

  bundler build model.onnx -t snapdragon-8g3 --shape x=1,3,48,192

  bundler build model.onnx -t linux-x64 --calibration images/ --set precision.method=auto

  bundler build            (all that bundler.toml names)

  bundler build --only 'raspberry-*' --only detector-linux-x64"""

PLAN_EPILOG = """Examples:

  bundler plan model.onnx --target linux-x64

  bundler plan             (all that bundler.toml names)"""


def register(app: typer.Typer) -> None:
    """Add the commands of this file to `app`."""
    app.command(name="build", epilog=BUILD_EPILOG)(build)
    app.command(name="plan", epilog=PLAN_EPILOG)(plan)
    app.command(name="inspect", epilog="Example:\n\n  bundler inspect model.onnx --json")(inspect)


Targets = Annotated[
    list[str] | None,
    typer.Option("--target", "-t", help="Target id (`bundler targets list`) or a profile's path; may be repeated."),
]


Format = Annotated[
    str | None,
    typer.Option("--format", "-f", help="Python: dir, wheel, pex; web: dir, tgz; any target: files, ortpackage."),
]


def build(
    models: Annotated[
        list[Path] | None,
        typer.Argument(
            help="ONNX files, or models of the Transformers library as hf:FOLDER or hf:NAME; without any, what the "
            "project file names.",
            metavar="MODEL",
        ),
    ] = None,
    *,
    target: Targets = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder for the bundles [dist].")] = None,
    samples: Samples = None,
    golden: Golden = None,
    calibration: Calibration = None,
    preprocessing: Preprocessing = None,
    dim: Dimensions = None,
    shape: Shapes = None,
    overrides: Overrides = None,
    bundle_format: Format = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the bundle [the file's].")] = None,
    version: Annotated[str, typer.Option("--version", help="Version of the emitted package.")] = "1.0.0",
    package_name: Annotated[
        str | None,
        typer.Option(
            "--package-name",
            help="Name of the emitted package, {model} and {target} in it for the bundle's name and the target "
            "[made from the bundle's name].",
        ),
    ] = None,
    no_prove: Annotated[
        bool, typer.Option("--no-prove", help="Do not run the bundle; its manifest then claims no proof.")
    ] = False,
    on: On = None,
    locked: Annotated[bool, typer.Option("--locked", help="Refuse to change bundler.lock.")] = False,
    only: Only = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of synthetic inputs.")] = 0,
    trust_target: TrustTarget = False,
    sandbox: Sandbox = False,
    cache: Cache = None,
    cache_readonly: CacheReadonly = False,
    jobs: Jobs = 2,
    json: Json = False,
    progress: Progress = "auto",
) -> None:
    """Build a verified bundle of each model for each target."""
    from bundler.cli.building import BuildArguments, run_builds  # noqa: PLC0415 - keeps --help quick

    arguments = BuildArguments(
        models=tuple(models or ()),
        targets=tuple(target or ()),
        output=output,
        samples=samples,
        golden=golden,
        calibration=calibration,
        preprocessing=preprocessing,
        dimensions=tuple(dim or ()),
        shapes=tuple(shape or ()),
        overrides=tuple(overrides or ()),
        format=bundle_format,
        name=name,
        version=version,
        package_name=package_name,
        prove=not no_prove,
        on=on,
        locked=locked,
        seed=seed,
        only=tuple(only or ()),
        trust_target=trust_target,
        sandbox=sandbox,
    )
    run_builds(arguments, cache=CacheChoice(cache, cache_readonly), jobs=jobs, as_json=json, progress=progress)


def plan(
    model: Annotated[
        Path | None,
        typer.Argument(help="An ONNX file, or hf:FOLDER or hf:NAME; without one, what the project file names."),
    ] = None,
    *,
    target: Targets = None,
    samples: Samples = None,
    golden: Golden = None,
    calibration: Calibration = None,
    preprocessing: Preprocessing = None,
    dim: Dimensions = None,
    shape: Shapes = None,
    overrides: Overrides = None,
    bundle_format: Format = None,
    only: Only = None,
    trust_target: TrustTarget = False,
    sandbox: Sandbox = False,
    cache: Cache = None,
    cache_readonly: CacheReadonly = False,
    json: Json = False,
) -> None:
    """Show what a build would run, what is cached, and why a step is stale."""
    from bundler.cli.building import BuildArguments  # noqa: PLC0415 - keeps --help quick
    from bundler.cli.planning import run_plan  # noqa: PLC0415

    arguments = BuildArguments(
        models=(model,) if model else (),
        targets=tuple(target or ()),
        samples=samples,
        golden=golden or "samples",
        calibration=calibration,
        preprocessing=preprocessing,
        dimensions=tuple(dim or ()),
        shapes=tuple(shape or ()),
        overrides=tuple(overrides or ()),
        format=bundle_format,
        only=tuple(only or ()),
        trust_target=trust_target,
        sandbox=sandbox,
    )
    run_plan(arguments, cache=CacheChoice(cache, cache_readonly), as_json=json)


def inspect(
    model: Annotated[Path, typer.Argument(help="An ONNX file, or hf:FOLDER or hf:NAME.")],
    *,
    sandbox: Sandbox = False,
    cache: Cache = None,
    cache_readonly: CacheReadonly = False,
    json: Json = False,
) -> None:
    """Show signature, operators, opsets, size, dynamic dimensions, and which targets fit."""
    from bundler.api.inspect import inspect_model  # noqa: PLC0415 - keeps --help quick
    from bundler.cli.inspection import inspection_lines  # noqa: PLC0415
    from bundler.model.events import ignore  # noqa: PLC0415
    from bundler.pipeline.workshop import open_workshop  # noqa: PLC0415

    with open_workshop(CacheChoice(cache, cache_readonly), 1, sandbox=sandbox) as workshop:
        result = inspect_model(model, workshop, ignore)
    if json:
        print_json(result)
        return
    echo_lines(inspection_lines(result))
