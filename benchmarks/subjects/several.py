"""Several models in one bundle beside a bundle each: the time to build them, and what they weigh."""

from __future__ import annotations

import json
from pathlib import Path

from bars import set_bar
from document import Row, Section, Table
from models import choose, make_ready
from pairs import alternate, show_number, show_ratio, show_seconds
from processes import BUNDLER, run_timed
from workplace import TARGET, Workplace, measure_folder

BAR = 0.7
PHONE, PHONE_BAR = "snapdragon-8g3", 140.0
"""A target whose variants for the GPU and the CPU hold the same weights, and the most MB for an encoder of 90."""
MODELS = {"detect": "rapidocr_det", "classify": "rapidocr_cls", "read": "rapidocr_rec"}


def measure(workplace: Workplace) -> Section:
    ready = [make_ready(model, workplace.folder / "models").path for model in choose(tuple(MODELS.values()))]
    models = dict(zip(MODELS, ready, strict=True))
    kinds = {"verified": (), "--no-prove": ("--no-prove",)}
    rows = tuple(_measure(workplace, models, kind, arguments) for kind, arguments in kinds.items())
    return Section(
        name="several",
        title="several models in one bundle",
        method=(
            f"`bundler build` of {', '.join(MODELS.values())} for {TARGET} with empty caches of steps: as components "
            "of one bundle, and one after another as three bundles, in turns; whole processes."
        ),
        tables=(
            Table(columns=("build", "one bundle", "three bundles", "one over three", "bar", ""), rows=rows),
            Table(
                columns=("on disk", "one bundle", "three bundles", "one over three"), rows=(_weigh(workplace, models),)
            ),
            Table(
                columns=("weights once", "bundle", "with each variant's own", "bar", ""),
                rows=(_weigh_shared(workplace),),
            ),
        ),
    )


def _measure(workplace: Workplace, models: dict[str, Path], kind: str, arguments: tuple[str, ...]) -> Row:
    def build_one() -> float:
        workplace.forget_steps()
        return _build(
            workplace, "one", *(f"{name}={path}" for name, path in models.items()), "--bundle", "ocr", *arguments
        )

    def build_three() -> float:
        workplace.forget_steps()
        return sum(_build(workplace, "three", str(path), *arguments) for path in models.values())

    pairs = alternate(build_one, build_three, workplace.pick(2, 5))
    bar = set_bar(kind, pairs.ratios, BAR)
    shown = show_seconds(pairs.ours), show_seconds(pairs.theirs), show_ratio(pairs)
    return (kind, *shown, f"at most {show_number(BAR)} times", bar)


def _build(workplace: Workplace, folder: str, *arguments: str) -> float:
    command = [BUNDLER, "build", *arguments, "--target", TARGET, "--output", str(workplace.folder / "several" / folder)]
    return run_timed([*command, "--progress", "none", "--cache", str(workplace.cache)]).seconds


def _weigh(workplace: Workplace, models: dict[str, Path]) -> Row:
    one, three = workplace.empty("several/one"), workplace.empty("several/three")
    _build(workplace, "one", *(f"{name}={path}" for name, path in models.items()), "--bundle", "ocr")
    for path in models.values():
        _build(workplace, "three", str(path))
    bundles = ([path for path in folder.iterdir() if path.suffix != ".report"] for folder in (one, three))
    sizes = [sum(map(measure_folder, found)) for found in bundles]
    return ("bytes", *(f"{size / 1e6:.1f} MB" for size in sizes), f"{sizes[0] / sizes[1]:.2f}")


def _weigh_shared(workplace: Workplace) -> Row:
    """A bundle whose variants share weights, beside the same with a copy for each."""
    (model,) = choose(("encoder_90mb",))
    output = workplace.empty("several/phone")
    path = make_ready(model, workplace.folder / "models").path
    command = [BUNDLER, "build", str(path), "--target", PHONE, "--output", str(output), "--no-prove"]
    run_timed([*command, "--progress", "none", "--cache", str(workplace.cache)])
    (bundle,) = (found for found in output.iterdir() if found.suffix != ".report")
    (component,) = json.loads((bundle / "runtime.json").read_bytes())["components"]
    listed = [file for variant in component["variants"] for file in variant["files"]]
    once = {file["path"]: file["size"] for file in listed}
    size = measure_folder(bundle) / 1e6
    copies = size + (sum(file["size"] for file in listed) - sum(once.values())) / 1e6
    bar = set_bar(f"weights once: {PHONE}", [size], PHONE_BAR, unit="MB")
    return (f"encoder_90mb for {PHONE}", f"{size:.1f} MB", f"{copies:.1f} MB", f"at most {PHONE_BAR:g} MB", bar)
