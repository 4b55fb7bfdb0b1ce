"""The commands of `python -m <package>` and their options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .command import name_command

Action = Callable[[Any, Any], int]
"""Runs a command on the chosen models of the package, with its options. Returns the exit code."""

EXIT_CODES = """\
exit codes: 0 done; 1 the model, or what was generated on the device, does not reproduce the golden set;
2 wrong usage or inputs; 3 the bundle was altered, or cannot run here; 130 interrupted"""


def make_parser(package: str, actions: Mapping[str, Action], components: Sequence[str]) -> argparse.ArgumentParser:
    """The parser; `actions` are the commands' functions by name. One of several `components` can be chosen."""
    parser = argparse.ArgumentParser(
        prog=name_command(package),
        description="Run, test and time the model of this package.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (_add_info, _add_prewarm, _add_self_test, _add_run, _add_bench):
        command = add(commands, actions)
        if len(components) > 1:
            command.add_argument("--component", choices=components, help="only this one of the bundle's models")
    return parser


def _add_command(commands: Any, actions: Mapping[str, Action], name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(action=actions[name])
    return parser


def _add_info(commands: Any, actions: Mapping[str, Action]) -> argparse.ArgumentParser:
    parser = _add_command(commands, actions, "info", "Show inputs, outputs, variants, and which of them runs here.")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def _add_prewarm(commands: Any, actions: Mapping[str, Action]) -> argparse.ArgumentParser:
    text = "Generate what variants require on this device, verify it, and keep it for later starts."
    parser = _add_command(commands, actions, "prewarm", text)
    parser.add_argument("--variant", default=None, help="a variant's name (default: all that can run here)")
    parser.add_argument("--force", action="store_true", help="generate it again even if it exists")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def _add_self_test(commands: Any, actions: Mapping[str, Action]) -> argparse.ArgumentParser:
    text = "Reproduce the golden set that was recorded from the original model."
    parser = _add_command(commands, actions, "self-test", text)
    parser.add_argument("--variant", default=None, help="a variant's name, or `each` for all of them in turn")
    parser.add_argument("--strict", action="store_true", help="fail when the preferred variant cannot run here")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def _add_run(commands: Any, actions: Mapping[str, Action]) -> argparse.ArgumentParser:
    parser = _add_command(commands, actions, "run", "Run the model once on arrays from files.")
    parser.add_argument(
        "files",
        nargs="+",
        metavar="INPUT",
        help="an .npz file with one array for each input, or NAME=FILE.npy for each input",
    )
    parser.add_argument("-o", "--output", metavar="FILE.npz", help="write the outputs there (default: print them)")
    _add_choice(parser)
    return parser


def _add_bench(commands: Any, actions: Mapping[str, Action]) -> argparse.ArgumentParser:
    parser = _add_command(commands, actions, "bench", "Time loading, first inference and steady-state latency.")
    parser.add_argument("-n", "--runs", type=_positive, default=100, help="timed calls (default: %(default)s)")
    parser.add_argument("--openings", type=_positive, default=15, help="timed loads (default: %(default)s)")
    parser.add_argument("--warm-up", type=int, default=10, help="warm-up calls (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="approximate duration (default: %(default)s)")
    parser.add_argument("--batch", type=_positive, help="rows per call (default: those of the golden sample)")
    parser.add_argument("--threads", type=_positive, help="threads inside one call (default: the bundle's own number)")
    parser.add_argument(
        "--spinning",
        action=argparse.BooleanOptionalAction,
        help="whether idle threads spin instead of sleeping (default: the bundle's own choice)",
    )
    parser.add_argument(
        "--callers",
        type=_counts,
        default=[],
        metavar="N,N",
        help="also count calls per second with these numbers of concurrent callers (1,2,4)",
    )
    parser.add_argument("--compare", metavar="MODEL.onnx", help="compare with a default session on this model")
    parser.add_argument("--json", action="store_true", help="print one JSON document; times are in seconds")
    _add_choice(parser)
    return parser


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--variant", default=None, help="run this variant (default: the first that can run here)")
    parser.add_argument("--strict", action="store_true", help="fail when the preferred variant cannot run here")
    parser.add_argument("--prewarm", action="store_true", help="first generate what is missing, as `prewarm` does")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def _counts(text: str) -> list[int]:
    """`1,2,4`, each once."""
    return list(dict.fromkeys(_positive(part) for part in text.split(",")))
