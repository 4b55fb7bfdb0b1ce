"""The program's entry: the application and its error handling."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from bundler import __version__
from bundler.cli.commands import name_command
from bundler.cli.ending import end_in_order
from bundler.cli.failures import INTERRUPTED, report_defect, report_error, report_interrupt
from bundler.cli.group import CommandGroup
from bundler.cli.outputs import open_outputs
from bundler.cli.printing import echo, echo_lines
from bundler.model.errors import BundlerError, UsageError

# typer gives the errors of its parser no public name, but this public one derives from them: BadParameter, a usage
# error, is an error of the parser.
_ParserFault = typer.BadParameter.__mro__[2]

EPILOG = (
    "Exit codes: 0 done, 2 usage, 3 bad model, 4 bad profile, 5 tool or environment missing, 6 a stage failed, "
    "7 accuracy or size gate not met, 8 verification failed, 1 a defect of bundler, 130 interrupted."
)

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


def main() -> NoReturn:
    """Run the command line and exit with its documented code."""
    open_outputs()
    end_in_order()
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    # We use no plugins of pydantic; looking for some would read the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    sys.exit(_run())


def _run() -> int:
    try:
        code = app(standalone_mode=False)
    except typer.Abort:
        return report_interrupt()
    except KeyboardInterrupt:
        return report_interrupt()
    except (BrokenPipeError, SystemExit) as error:
        # The parser's library exits with 1 when a pipe breaks.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        return _end_unread()
    except BundlerError as error:
        return report_error(error)
    except Exception as error:  # noqa: BLE001 - the edge: anything else is a defect of ours, reported as one
        return _report_usage(error) if isinstance(error, _ParserFault) else report_defect(error)
    # Typer turns an interruption into this code without a message.
    return report_interrupt() if code == INTERRUPTED else code if isinstance(code, int) else 0


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
    return report_error(UsageError(error.format_message().rstrip("."), hint=f"`{command} --help` shows the options"))
