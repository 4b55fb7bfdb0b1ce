"""What building again costs: with nothing changed, and with one key of the profile changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import networks
from bars import Bar, set_bar
from document import Section, Table
from pairs import show_seconds
from processes import Ran
from workplace import Built, Workplace, build_bundle

BAR_SECONDS = 0.15
SETTLING_SECONDS = 0.2
"""What was written a moment ago is not trusted, and a rebuild that is run keeps the answer of the next."""
MODELS: Mapping[str, Callable[[Path], None]] = {
    "encoder_5mb": networks.make_small_encoder,
    "encoder_90mb": networks.make_encoder,
    "large_100mb": lambda path: networks.make_large(path, 0.1),
}
"""The last has its weights in a file of their own."""
CHANGES = (
    "accuracy.relative=0.002",
    "bundle.fallback=strict",
    "variants.0.session.intra_op_num_threads=1",
    "optimization.level=basic",
    "optimization.format=ort",
)
"""One key each, from what touches no step to what touches most."""


def measure(workplace: Workplace) -> Section:
    output = workplace.empty("out")
    workplace.forget_steps()
    models = {name: _make_ready(workplace, name) for name in MODELS}
    times = {name: _time_rebuilds(workplace, name, model, output) for name, model in models.items()}
    return Section(
        name="rebuild",
        title="building again",
        method="`bundler build --no-prove`; whole processes. large_100mb has its weights in an external file.",
        tables=(
            Table(
                title="Nothing changed",
                columns=("model", "rebuild", "processor time", "in full", "the first build", "bar", ""),
                rows=tuple(_show(name, found) for name, found in times.items()),
            ),
            Table(
                title="One key of the profile changed (large_100mb)",
                columns=("`--set`", "steps that ran again", "steps from the cache", "time"),
                rows=tuple(_change(workplace, models["large_100mb"], output, key) for key in CHANGES),
            ),
        ),
        figures={
            name: {"rebuild": [ran.seconds for ran in found.again], "first": found.first.seconds}
            for name, found in times.items()
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """The first build, one with nothing changed that is run in full, and those that are answered."""

    first: Ran
    full: Ran
    again: tuple[Ran, ...]


def _make_ready(workplace: Workplace, name: str) -> Path:
    model = workplace.folder / "models" / name / "model.onnx"
    if not model.exists():
        model.parent.mkdir(parents=True, exist_ok=True)
        MODELS[name](model)
    return model


def _time_rebuilds(workplace: Workplace, name: str, model: Path, output: Path) -> _Times:
    def build() -> Built:
        return build_bundle(workplace, model, output, arguments=("--no-prove", "--name", name))

    first = build().ran
    time.sleep(SETTLING_SECONDS)
    full = build()
    again = [build() for _ in range(workplace.pick(5, 21))]
    if not all(built.answer["up_to_date"] for built in (full, *again)):
        raise SystemExit("a rebuild did not find its bundle unchanged: bundler's own files change all the time")
    return _Times(first=first, full=full.ran, again=tuple(built.ran for built in again))


def _show(name: str, times: _Times) -> tuple[str | Bar, ...]:
    seconds = [ran.seconds for ran in times.again]
    return (
        name,
        show_seconds(seconds),
        show_seconds([ran.cpu_seconds for ran in times.again]),
        show_seconds([times.full.seconds]),
        show_seconds([times.first.seconds]),
        f"{BAR_SECONDS:g} s",
        set_bar(f"nothing changed: {name}", seconds, BAR_SECONDS, unit="s"),
    )


def _change(workplace: Workplace, model: Path, output: Path, key: str) -> tuple[str, ...]:
    build_bundle(workplace, model, output)
    built = build_bundle(workplace, model, output, arguments=("--no-prove", "--set", key))
    ran, cached = (_names(built, cached=cached) for cached in (False, True))
    return (f"`{key}`", ran, cached, f"{built.ran.seconds:.2f} s")


def _names(built: Built, *, cached: bool) -> str:
    names = [step["step"] for step in built.timings["steps"] if step["cached"] is cached]
    return ", ".join(names) or "none"
