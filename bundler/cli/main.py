"""The program's entry: the application, and what becomes of an error."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Annotated, NoReturn

import click
import typer

from bundler import __version__
from bundler.cli import build, cache, doctor, project, targets, verify
from bundler.cli.failures import report_defect, report_error, report_interrupt
from bundler.model.errors import BundlerError, UsageError

EPILOG = (
    "Exit codes: 0 done, 2 usage, 3 bad model, 4 bad profile, 5 tool or environment missing, 6 a stage failed, "
    "7 accuracy or size gate not met, 8 verification failed, 1 a defect of bundler, 130 interrupted."
)

app = typer.Typer(
    name="bundler",
    help="Turn a trained ONNX model into a verified, self-contained bundle for a device.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
build.register(app)
verify.register(app)
project.register(app)
doctor.register(app)
app.add_typer(targets.app, name="targets", help="List, show, check and write target profiles.")
app.add_typer(cache.app, name="cache", help="Show, trim and clear the cache of finished steps.")


def _print_version(value: bool) -> None:  # noqa: FBT001 - click's callback signature
    if value:
        typer.echo(f"bundler {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Turn a trained ONNX model into a verified, self-contained bundle for a device."""


def main() -> NoReturn:
    """Run the command line and exit with its documented code."""
    signal.signal(signal.SIGTERM, _terminate)
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    sys.exit(_run())


def _run() -> int:  # noqa: PLR0911 - one return for each kind of end
    try:
        code = app(standalone_mode=False)
    except click.UsageError as error:
        return _report_click(error)
    except click.ClickException as error:
        return report_error(UsageError(error.format_message()))
    except (KeyboardInterrupt, click.Abort):
        return report_interrupt()
    except BrokenPipeError:
        # The reader of our output went away (`bundler … | head`): no error, and nothing more to say.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - lives until the process ends
        return 0
    except BundlerError as error:
        return report_error(error)
    except Exception as error:  # noqa: BLE001 - the edge: anything else is a defect of ours, reported as one
        return report_defect(error)
    return code if isinstance(code, int) else 0


def _report_click(error: click.UsageError) -> int:
    command = error.ctx.command_path if error.ctx else "bundler"
    return report_error(UsageError(error.format_message().rstrip("."), hint=f"`{command} --help` shows the options"))


def _terminate(_signum: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
