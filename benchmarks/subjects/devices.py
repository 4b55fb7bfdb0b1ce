"""What compiling for devices costs: beside the compiler's own call, and for ten targets beside one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bars import set_bar
from document import Row, Section, Table
from models import Ready, measure_each
from pairs import Pairs, alternate, show_ratio, show_seconds
from processes import BUNDLER, CHILDREN, run_timed
from workplace import Built, Workplace, build_bundle

from bundler.environments.registry import Environments
from bundler.profiles.resolve import resolve_target

COMPILE_BAR = 1.3
TARGETS_BAR = 2.5
MODELS = ("squeezenet", "resnet50", "encoder_5mb")
MANY = ("encoder_5mb",)
"""Chips without half precision refuse int8 pooling, so few picture networks go everywhere."""
TARGET = "snapdragon-8g3"
TEN = (
    "snapdragon-8g3",
    "snapdragon-8g2",
    "snapdragon-8g1",
    "snapdragon-8-elite",
    "snapdragon-8-elite-g5",
    "snapdragon-8sg3",
    "snapdragon-888",
    "snapdragon-x-elite",
    "snapdragon-x2-elite",
    "qcs6490",
)
STAGE = "compile_context"
FILES = ("--format", "files", "--no-prove")
PLAIN = ("--set", "variants.htp.compile={here=false}", *FILES)
"""The same steps, but for compiling."""
QUANTISED = ("--calibration", "synthetic")
"""So that the oldest chips, which have no half precision, take the model, too."""


def measure(workplace: Workplace) -> Section:
    compiled, failures = measure_each(workplace, MODELS, _measure_compiling)
    many, others = measure_each(workplace, MANY, _measure_targets)
    return Section(
        name="devices",
        title="contexts compiled before shipping",
        method=(
            f"Seconds of the stage `{STAGE}` in a build for {TARGET} whose other steps are cached (a worker starts, "
            "loads the runtime, compiles, counts what was taken and checks) beside a script that loads the runtime and "
            "compiles (`children/bare_compile.py`, same model, same options, whole process); and a build for ten "
            "targets in one command beside a build for one of them, whole processes, no proof, empty step cache."
        ),
        tables=(
            Table(
                title="Compiling a context",
                columns=("model", "stage", "script", "ratio", "bar", "", "the call alone"),
                rows=tuple(
                    (*_row(f"compiling: {name}", found.pairs, COMPILE_BAR), show_seconds(found.calls))
                    for name, found in compiled.items()
                ),
            ),
            Table(
                title="Ten targets of one model",
                columns=("model", "ten", "one", "ratio", "bar", ""),
                rows=tuple(_row(f"ten targets: {name}", pairs, TARGETS_BAR) for name, pairs in many.items()),
            ),
        ),
        notes=(f"The ten: {', '.join(TEN)}.", *failures, *others),
        figures={
            "compiling": {
                name: {"ours": found.pairs.ours, "theirs": found.pairs.theirs, "calls": found.calls}
                for name, found in compiled.items()
            },
            "targets": {name: {"ours": pairs.ours, "theirs": pairs.theirs} for name, pairs in many.items()},
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiling:
    """The stage beside a script that compiles, whole; `calls` are the seconds of the compiler's call in that script."""

    pairs: Pairs
    calls: tuple[float, ...]


def _measure_compiling(workplace: Workplace, model: Ready) -> Compiling:
    _build(workplace, model, "reference")
    python = Environments(workplace.cache).resolve("qnn").python
    options = workplace.empty("bare-options") / "options.json"
    options.write_text(json.dumps(_provider_options()), encoding="utf-8")
    source = _find_source(workplace, model)
    calls: list[float] = []

    def ours() -> float:
        workplace.forget_steps()
        _build(workplace, model, "plain", PLAIN)  # so that no other step runs beside the one that is timed
        return _stage_seconds(_build(workplace, model, "out"))

    def theirs() -> float:
        child = (str(python), str(CHILDREN / "bare_compile.py"), str(source), str(options))
        ran = run_timed([*child, str(workplace.empty("bare"))])
        calls.append(float(json.loads(ran.output.strip().splitlines()[-1])["seconds"]))
        return ran.seconds

    return Compiling(pairs=alternate(ours, theirs, workplace.pick(3, 7)), calls=tuple(calls[1:]))


def _find_source(workplace: Workplace, model: Ready) -> Path:
    """What the stage compiles: the model as it is optimised, which a bundle that compiles nothing ships."""
    built = _build(workplace, model, "plain", PLAIN)
    return next((built.folder / "models" / "htp").glob("*.onnx"))


def _provider_options() -> dict[str, str]:
    first = resolve_target(TARGET).variants[0].providers[0]
    return {key: str(value) for key, value in first.options.items()}


def _stage_seconds(built: Built) -> float:
    steps: list[dict[str, Any]] = built.timings["steps"]
    return float(sum(step["seconds"] for step in steps if step["stage"] == STAGE))


def _build(workplace: Workplace, model: Ready, name: str, arguments: tuple[str, ...] = FILES) -> Built:
    return build_bundle(workplace, model.path, workplace.empty(name), model.samples, arguments=arguments, target=TARGET)


def _measure_targets(workplace: Workplace, model: Ready) -> Pairs:
    def build(targets: tuple[str, ...]) -> float:
        workplace.forget_steps()
        command = [BUNDLER, "build", str(model.path), "--output", str(workplace.empty("many")), "--progress", "none"]
        command += ["--cache", str(workplace.cache), *FILES, *QUANTISED]
        command += [*(part for name in targets for part in ("--target", name))]
        return run_timed(command).seconds

    return alternate(lambda: build(TEN), lambda: build(TEN[:1]), workplace.pick(2, 5))


def _row(name: str, pairs: Pairs, bar: float) -> Row:
    shown = show_seconds(pairs.ours), show_seconds(pairs.theirs), show_ratio(pairs)
    return (name.split(": ")[1], *shown, f"{bar:g} times", set_bar(name, pairs.ratios, bar))
