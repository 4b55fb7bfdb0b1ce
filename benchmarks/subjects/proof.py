"""What it costs to prove a bundle in its own runtime, beside starting it by hand."""

from __future__ import annotations

import os
import subprocess

from bars import set_bar
from document import Row, Section, Table
from models import Ready, measure_each
from pairs import alternate, show_ratio, show_seconds
from processes import BUNDLER, PYTHON, run_timed
from workplace import Built, Workplace, build_bundle

BAR = 1.5
MODELS = ("rapidocr_cls", "rapidocr_det", "magika", "encoder_90mb", "skl_regression")


def measure(workplace: Workplace) -> Section:
    rows, failures = measure_each(workplace, MODELS, _measure)
    columns = (
        "model",
        "self-test by hand",
        "phase “prove”",
        "ratio",
        f"bar {BAR:g}",
        "`bundler verify`",
        "ratio",
        "first",
    )
    return Section(
        name="proof",
        title="the proof in the bundle's own runtime",
        method=(
            "The phase “prove” of a build (as `timings.json` has it), and the whole process `bundler verify BUNDLE`, "
            "each beside `python -m PACKAGE self-test` in an environment that was made from the bundle's wheels before."
        ),
        tables=(Table(columns=columns, rows=tuple(rows.values())),),
        notes=(
            "“First” is the first verify on this machine, which makes the environment; later ones find it.",
            *failures,
        ),
    )


def _measure(workplace: Workplace, model: Ready) -> Row:
    built = build_bundle(workplace, model.path, workplace.empty("out"), model.samples)
    python = _make_environment(workplace, built)
    verify = [BUNDLER, "verify", str(built.folder), "--cache", str(workplace.cache)]
    by_hand = [python, "-m", built.package, "self-test"]
    first = run_timed(verify).seconds

    def start() -> float:
        return run_timed(by_hand).seconds

    whole = alternate(lambda: run_timed(verify).seconds, start, workplace.pick(3, 9))
    phase = alternate(lambda: _prove(workplace, model), start, workplace.pick(3, 5))
    shown = show_seconds(phase.ours), show_ratio(phase), set_bar(model.name, phase.ratios, BAR)
    return (
        model.name,
        show_seconds((*whole.theirs, *phase.theirs)),
        *shown,
        show_seconds(whole.ours),
        show_ratio(whole),
        f"{first:.2f} s",
    )


def _prove(workplace: Workplace, model: Ready) -> float:
    """Seconds of the proof in a build whose steps are cached."""
    built = build_bundle(workplace, model.path, workplace.empty("proven"), model.samples, arguments=())
    seconds: float = built.timings["phases"]["prove"]
    return seconds


def _make_environment(workplace: Workplace, built: Built) -> str:
    """As the bundle's README says: the package, and its wheels alone, with no index."""
    place = workplace.empty("environment")
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(place)], check=True)
    python = str(place / "bin" / "python")
    source = ["--no-cache", "--no-index", "--offline", "--find-links", str(built.folder / "wheels"), "--quiet"]
    command = [PYTHON, "-m", "uv", "pip", "install", *source, "--python", python, str(built.folder)]
    subprocess.run(command, check=True, env={**os.environ, "UV_NO_CONFIG": "1"})
    return python
