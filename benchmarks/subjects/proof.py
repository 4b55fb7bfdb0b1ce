"""What it costs to prove a bundle in its own runtime, beside starting it by hand."""

from __future__ import annotations

import os
import subprocess

from document import Section, Table
from models import Ready, measure_each
from pairs import alternate, judge, show_ratio, show_seconds
from processes import BUNDLER, PYTHON, run_timed
from workplace import Built, Workplace, build_bundle

BAR = 1.5
MODELS = ("rapidocr_cls", "rapidocr_det", "magika", "encoder_90mb", "skl_regression")


def measure(workplace: Workplace) -> Section:
    rows, failures = measure_each(workplace, MODELS, _measure)
    columns = ("model", "`bundler verify`", "self-test by hand", "ratio", "bar", "", "the first verify on this machine")
    return Section(
        name="proof",
        title="the proof in the bundle's own runtime",
        method=(
            "`bundler verify BUNDLE` beside `python -m PACKAGE self-test` in an environment that was made from the "
            "bundle's wheels before; whole processes."
        ),
        tables=(Table(columns=columns, rows=tuple(rows.values())),),
        notes=("The first verify makes the environment of the bundle's wheels; later ones find it.", *failures),
    )


def _measure(workplace: Workplace, model: Ready) -> tuple[str, ...]:
    built = build_bundle(workplace, model.path, workplace.empty("out"), model.samples)
    python = _make_environment(workplace, built)
    verify = [BUNDLER, "verify", str(built.folder), "--cache", str(workplace.cache)]
    by_hand = [python, "-m", built.package, "self-test"]
    first = run_timed(verify).seconds
    pairs = alternate(
        lambda: run_timed(verify).seconds,
        lambda: run_timed(by_hand, {"PYTHONPATH": str(built.folder)}).seconds,
        workplace.pick(3, 9),
    )
    verdict = (f"{BAR:g} times", judge(pairs.ratio, BAR))
    return (
        model.name,
        show_seconds(pairs.ours),
        show_seconds(pairs.theirs),
        show_ratio(pairs),
        *verdict,
        f"{first:.2f} s",
    )


def _make_environment(workplace: Workplace, built: Built) -> str:
    """As the bundle's README says: its wheels alone, with no index."""
    place = workplace.empty("environment")
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(place)], check=True)
    python = str(place / "bin" / "python")
    source = ["--no-index", "--offline", "--find-links", str(built.folder / "wheels"), "--quiet"]
    lock = str(built.folder / "requirements.lock")
    command = [PYTHON, "-m", "uv", "pip", "install", *source, "--python", python, "--require-hashes", "-r", lock]
    subprocess.run(command, check=True, env={**os.environ, "UV_NO_CONFIG": "1"})
    return python
