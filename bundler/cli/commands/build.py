"""`bundler build`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import api
from bundler.api import BuildRequest, Settings
from bundler.cli.answers import keep_answer
from bundler.cli.console import open_console, open_quiet
from bundler.cli.options import Given, Json, Only, OptionsOf, Progress, Quiet, Strict, Targets
from bundler.cli.printing import echo_lines, print_json
from bundler.cli.requests import make_requests
from bundler.cli.strict import find_unverified, require_verified
from bundler.cli.summary import describe_finished, print_summary
from bundler.model.errors import UsageError

if TYPE_CHECKING:
    from bundler.api import BuildResult, Failure

EPILOG = """Examples:

  bundler build model.onnx --target linux-x64

  bundler build model.onnx -t linux-x64 -t raspberry-pi-5 --samples samples/ -o out

  bundler build model.onnx -t linux-x64 --dim batch=1 --set accuracy.absolute=1e-5 --format wheel

  bundler build model.onnx -t snapdragon-8g3 --shape x=1,3,48,192

  bundler build model.onnx -t linux-x64 --calibration images/ --set precision.method=auto

  bundler build detect=det.onnx read=rec.onnx --bundle ocr -t web-webgpu

  bundler build --quiet   # one line for each bundle

  bundler build --strict   # for CI: a variant that was not verified is an error

  bundler build   # everything in bundler.toml

  bundler build --only 'raspberry-*' --only detector-linux-x64"""


def run(
    models: Annotated[
        list[Path] | None,
        typer.Argument(
            help="ONNX files or Transformers models (hf:FOLDER, hf:NAME); without any, the project file's. NAME=MODEL "
            "for each makes one bundle of all.",
            metavar="MODEL",
        ),
    ] = None,
    *,
    target: Targets = None,
    given: Annotated[Given, OptionsOf(BuildRequest)],
    locked: Annotated[bool, typer.Option("--locked", help="Refuse to change bundler.lock.")] = False,
    only: Only = None,
    settings: Settings,
    json: Json = False,
    progress: Progress = "auto",
    quiet: Quiet = False,
    strict: Strict = False,
) -> None:
    """Build all and print the results; exits with the code of the first failure."""
    if strict and not given.get("prove", True):
        raise UsageError("--strict cannot be used with --no-prove", hint="remove one of the two options")
    if quiet and progress != "auto":
        raise UsageError("--quiet cannot be used with --progress", hint="remove one of the two options")
    if models and locked:
        raise UsageError("--locked requires a project file", hint="`bundler init` writes one, `bundler lock` its lock")
    names, picked = target or (), only or ()
    try:
        with open_quiet() if quiet else open_console(progress, as_json=json) as listener:
            if models:
                finished = api.build_all(make_requests(models, names, given, picked), settings, listener)
            else:
                finished = api.build_project(
                    targets=names, only=picked, given=given, locked=locked, settings=settings, listener=listener
                )
    except api.BuildsInterruptedError as error:
        echo_lines(describe_finished(error.finished, error.total), err=True)
        raise
    _print(finished, as_json=json, quiet=quiet, strict=strict)


def _print(finished: Sequence[BuildResult | Failure], *, as_json: bool, quiet: bool, strict: bool) -> None:
    failures = [item for item in finished if isinstance(item, api.Failure)]
    if len(finished) == 1 and failures:
        raise failures[0].located_error
    results = [item for item in finished if not isinstance(item, api.Failure)]
    if as_json:
        print_json({"bundles": results, "failures": [item.to_json() for item in failures]})
    else:
        print_summary(results, failures, quiet=quiet)
    if failures:
        raise typer.Exit(failures[0].error.exit_code)
    if strict:
        require_verified({result.bundle: find_unverified(result.proofs, result.unproven) for result in results})
    if all(result.up_to_date for result in results):
        keep_answer([result.bundle.parent for result in results], [item.seconds for item in results if as_json])
