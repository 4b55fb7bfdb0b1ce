"""How long the command line takes to answer."""

from __future__ import annotations

from bars import set_bar
from document import Section, Table
from pairs import Measure, alternate, show_ratio, show_seconds
from processes import BUNDLER, CHILDREN, PYTHON, run_timed
from workplace import Workplace

HELP_BAR = 2.0
LIST_BAR_SECONDS = 0.5


def measure(workplace: Workplace) -> Section:
    count = workplace.pick(5, 25)
    empty = [PYTHON, str(CHILDREN / "empty_typer.py"), "--help"]
    help_ = alternate(_timed([BUNDLER, "--help"]), _timed(empty), count)
    idle = alternate(_timed([BUNDLER, "--help"]), _timed(empty[:-1]), count)
    listing = alternate(_timed([BUNDLER, "targets", "list"]), _timed([PYTHON, "-c", "pass"]), count)
    rows = (
        (
            "`bundler --help`",
            show_seconds(help_.ours),
            f"empty typer program, `--help`: {show_seconds(help_.theirs)}",
            show_ratio(help_),
            f"{HELP_BAR:g} times",
            set_bar("--help beside --help", help_.ratios, HELP_BAR),
        ),
        (
            "`bundler --help`",
            show_seconds(idle.ours),
            f"empty typer program that runs: {show_seconds(idle.theirs)}",
            show_ratio(idle),
            f"{HELP_BAR:g} times",
            set_bar("--help beside a run", idle.ratios, HELP_BAR),
        ),
        (
            "`bundler targets list`",
            show_seconds(listing.ours),
            f"empty Python program: {show_seconds(listing.theirs)}",
            show_ratio(listing),
            f"{LIST_BAR_SECONDS:g} s",
            set_bar("targets list", listing.ours, LIST_BAR_SECONDS, unit="s"),
        ),
    )
    return Section(
        name="start",
        title="time of the command line",
        method=f"Whole processes, {count} pairs each.",
        tables=(Table(columns=("command", "time", "beside it", "ratio", "bar", ""), rows=rows),),
        figures={"help": [help_.ours, help_.theirs], "list": [listing.ours, listing.theirs]},
    )


def _timed(command: list[str]) -> Measure:
    return lambda: run_timed(command).seconds
