"""The step of a stream, beside a hand-written loop with I/O binding."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import onnx
from bars import set_bar
from document import Section, Table
from pairs import show_number, show_seconds
from processes import run_child
from workplace import TARGET, Workplace, build_bundle

BAR = 1.03
STEPS = 5000


def measure(workplace: Workplace) -> Section:
    built = build_bundle(
        workplace, _write_model(workplace.empty("streams")), workplace.folder / "streams" / "built",
        arguments=("--no-prove", "--state", "h0=hn"),
    )  # fmt: skip
    turns = str(workplace.pick(5, 15))
    found = json.loads(run_child("stream_steps.py", built.folder / built.package, turns, str(STEPS)).output)
    pairs = zip(found["stream"], found["by hand"], strict=True)
    ratios = [ours / theirs for ours, theirs in pairs]
    shown = [show_seconds([turn / STEPS for turn in found[name]]) for name in ("stream", "by hand")]
    ratio = f"{sorted(ratios)[len(ratios) // 2]:.2f} ({min(ratios):.2f}…{max(ratios):.2f})"
    return Section(
        name="streams",
        title="a step of a stream",
        method=(
            f"CPU time of a step of a small gated recurrent unit for {TARGET}, in one thread: a stream of the bundle, "
            "and a loop written by hand with two I/O bindings that swap the state, in turns of "
            f"{STEPS} steps in one process."
        ),
        tables=(
            Table(
                columns=("stream", "by hand", "stream over it", "bar", "", "memory grown"),
                rows=(
                    (*shown, ratio, f"at most {show_number(BAR)} times", set_bar("step", ratios, BAR),
                     f"{found['grown_kb']} kB"),
                ),
            ),
        ),
        figures=found,
    )  # fmt: skip


def _write_model(folder: Path) -> Path:
    """The model of the tests."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.support.recurrent_models import make_gru  # noqa: PLC0415 - needs the path above

    path = folder / "gru.onnx"
    onnx.save(make_gru(), path)
    return path
