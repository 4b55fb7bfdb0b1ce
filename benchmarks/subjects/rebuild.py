"""What building again costs: with nothing changed, and with one key of the profile changed."""

from __future__ import annotations

import statistics
from pathlib import Path

import networks
from bars import set_bar
from document import Section, Table
from pairs import show_seconds
from workplace import Built, Workplace, build_bundle

BAR_SECONDS = 0.7
SIZE_GIGABYTES = 0.1
CHANGES = (
    "accuracy.relative=0.002",
    "bundle.fallback=strict",
    "variants.0.session.intra_op_num_threads=1",
    "optimization.level=basic",
    "optimization.format=ort",
)
"""One key each, from what touches no step to what touches most."""


def measure(workplace: Workplace) -> Section:
    model = workplace.folder / "models" / "large_100mb" / "model.onnx"
    if not model.exists():
        model.parent.mkdir(parents=True, exist_ok=True)
        networks.make_large(model, SIZE_GIGABYTES)
    output = workplace.empty("out")
    workplace.forget_steps()
    first = build_bundle(workplace, model, output)
    again = [build_bundle(workplace, model, output) for _ in range(workplace.pick(5, 21))]
    kept = [built for built in again if built.answer["up_to_date"]]
    if not kept:
        raise SystemExit("no rebuild found its bundle unchanged: bundler's own files change all the time")
    seconds = [built.ran.seconds for built in kept]
    whole = (
        show_seconds(seconds),
        f"{statistics.median(built.ran.cpu_seconds for built in kept):.2f} s",
        f"{first.ran.seconds:.2f} s",
        f"{BAR_SECONDS:g} s",
        set_bar("nothing changed", seconds, BAR_SECONDS, unit="s"),
    )
    return Section(
        name="rebuild",
        title="building again",
        method="`bundler build --no-prove` of a model with 100 MB of external weights; whole processes.",
        tables=(
            Table(
                title=f"Nothing changed ({len(kept)} rebuilds)",
                columns=("rebuild", "processor time", "the first build", "bar", ""),
                rows=(whole,),
            ),
            Table(
                title="One key of the profile changed",
                columns=("`--set`", "steps that ran again", "steps from the cache", "time"),
                rows=tuple(_change(workplace, model, output, key) for key in CHANGES),
            ),
        ),
        figures={"rebuild": seconds, "first": first.ran.seconds},
    )


def _change(workplace: Workplace, model: Path, output: Path, key: str) -> tuple[str, ...]:
    build_bundle(workplace, model, output)
    built = build_bundle(workplace, model, output, arguments=("--no-prove", "--set", key))
    ran, cached = (_names(built, cached=cached) for cached in (False, True))
    return (f"`{key}`", ran, cached, f"{built.ran.seconds:.2f} s")


def _names(built: Built, *, cached: bool) -> str:
    names = [step["step"] for step in built.timings["steps"] if step["cached"] is cached]
    return ", ".join(names) or "none"
