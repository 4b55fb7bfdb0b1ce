"""The application and its error handling."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from bundler import __version__
from bundler.cli.commands import name_command
from bundler.cli.ending import INTERRUPTED
from bundler.cli.failures import report_defect, report_error
from bundler.cli.group import CommandGroup
from bundler.cli.printing import echo, echo_lines, explain_output, find_output_error
from bundler.model.errors import BundlerError, OutputError, UsageError

# typer gives the errors of its parser no public name, but this public one derives from them: BadParameter, a usage
# error, is an error of the parser.
_ParserFault = typer.BadParameter.__mro__[2]

EPILOG = (
    "Exit codes: 0 done, 2 usage, 3 bad model, 4 bad profile, 5 tool or environment missing, 6 a stage failed, "
    "7 accuracy or size gate not met, 8 verification failed, 1 internal error, 130 interrupted."
)

FORMER_OPTIONS = {"--browser": "--on browser:PROGRAM"}
"""What replaces options of earlier releases."""

app = typer.Typer(
    name="bundler",
    cls=CommandGroup,
    help="Turn a trained ONNX model into a verified, self-contained bundle for a device.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:  # noqa: FBT001 - click's callback signature
    if value:
        echo(f"bundler {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Turn a trained ONNX model into a verified, self-contained bundle for a device."""


def run() -> int:
    """Run the command line; returns its documented exit code. Raises `KeyboardInterrupt`."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    # We use no plugins of pydantic; looking for some would read the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    try:
        return _run()
    except OutputError as error:
        return report_error(error)


def _run() -> int:
    try:
        code = app(standalone_mode=False)
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except (BrokenPipeError, SystemExit) as error:
        # The parser's library exits with 1 when a pipe breaks.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        return _end_unread()
    except BundlerError as error:
        return report_error(error)
    except Exception as error:  # noqa: BLE001 - the edge: anything else is a defect of ours, reported as one
        return _report_usage(error) if isinstance(error, _ParserFault) else _report_other(error)
    if code == INTERRUPTED:  # typer's code for an interruption
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _report_other(error: Exception) -> int:
    """The parser's library prints help and completion itself: an output that takes none is no defect. Nor is a shell
    that stands in a folder that was removed.
    """
    cause = find_output_error(error) or _find_lost_folder(error)
    return report_error(cause) if cause else report_defect(error)


def _find_lost_folder(error: Exception) -> UsageError | None:
    if not isinstance(error, FileNotFoundError):
        return None
    try:
        os.getcwd()  # noqa: PTH109 - whether there is one
    except OSError:
        return UsageError(
            "the folder that the command was started in was removed", hint="change to one that exists, and try again"
        )
    return None


def end_unprinted(error: OSError, *, err: bool) -> int:
    """End after standard output or, with `err`, standard error took no more."""
    return _end_unread() if isinstance(error, BrokenPipeError) else report_error(explain_output(error, err=err))


def _end_unread() -> int:
    """The reader of our output closed the pipe (`bundler … | head`): no error, and no more output."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - lives until the process ends
    return 0


def _report_usage(error: Any) -> int:
    """Report the parser's error as a `UsageError`; without any arguments, print the help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        echo_lines(error.format_message().split("\n"))
        return UsageError.exit_code
    command = context.command_path if context else " ".join(("bundler", *name_command(sys.argv[1:])))
    former = FORMER_OPTIONS.get(getattr(error, "option_name", ""))
    hint = f"use {former} instead" if former else f"`{command} --help` shows the options"
    return report_error(UsageError(error.format_message().rstrip("."), hint=hint))
