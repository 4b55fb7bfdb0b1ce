"""How long the command line takes to answer."""

from __future__ import annotations

import time

import networks
from bars import Bar, set_bar
from document import Section, Table
from pairs import Measure, Pairs, alternate, show_ratio, show_seconds
from processes import BUNDLER, CHILDREN, PYTHON, run_timed
from workplace import TARGET, Workplace, build_bundle

HELP_BAR = 2.0
ANSWER_BAR_SECONDS = 0.15
SETTLING_SECONDS = 0.2
"""What was written a moment ago is not trusted, and a command that is run keeps the answer of the next."""


def measure(workplace: Workplace) -> Section:
    count = workplace.pick(5, 25)
    empty = [PYTHON, str(CHILDREN / "empty_typer.py"), "--help"]
    help_ = alternate(_timed([BUNDLER, "--help"]), _timed(empty), count)
    idle = alternate(_timed([BUNDLER, "--help"]), _timed(empty[:-1]), count)
    answers = _time_answers(workplace, count)
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
        *(_show_answer(name, pairs, cpu) for name, (pairs, cpu) in answers.items()),
    )
    return Section(
        name="start",
        title="time of the command line",
        method=f"Whole processes, {count} pairs each.",
        tables=(Table(columns=("command", "time", "beside it", "ratio", "bar", ""), rows=rows),),
        figures={
            "help": [help_.ours, help_.theirs],
            **{name: [pairs.ours, pairs.theirs] for name, (pairs, _) in answers.items()},
        },
    )


def _time_answers(workplace: Workplace, count: int) -> dict[str, tuple[Pairs, list[float]]]:
    """Commands with nothing changed since they were run, beside an empty program; and their processor time."""
    model = workplace.folder / "models" / "encoder_5mb" / "model.onnx"
    if not model.exists():
        model.parent.mkdir(parents=True, exist_ok=True)
        networks.make_small_encoder(model)
    build_bundle(workplace, model, workplace.empty("out"))
    commands = {
        "plan": [BUNDLER, "plan", str(model), "--target", TARGET],
        "targets list": [BUNDLER, "targets", "list"],
    }
    environment = {"BUNDLER_CACHE": str(workplace.cache)}
    found = {}
    for name, command in commands.items():
        time.sleep(SETTLING_SECONDS)
        run_timed(command, environment)
        cpu: list[float] = []

        def ask(command: list[str] = command, cpu: list[float] = cpu) -> float:
            ran = run_timed(command, environment)
            cpu.append(ran.cpu_seconds)
            return ran.seconds

        found[name] = (alternate(ask, _timed([PYTHON, "-c", "pass"]), count), cpu)
    return found


def _show_answer(name: str, pairs: Pairs, cpu: list[float]) -> tuple[str | Bar, ...]:
    return (
        f"`bundler {name}` again, {show_seconds(cpu)} of processor time",
        show_seconds(pairs.ours),
        f"empty Python program: {show_seconds(pairs.theirs)}",
        show_ratio(pairs),
        f"{ANSWER_BAR_SECONDS:g} s",
        set_bar(name, pairs.ours, ANSWER_BAR_SECONDS, unit="s"),
    )


def _timed(command: list[str]) -> Measure:
    return lambda: run_timed(command).seconds
