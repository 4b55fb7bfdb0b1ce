"""How much memory the build of a large model needs."""

from __future__ import annotations

import shutil

import networks
from bars import set_bar
from document import Section, Table
from processes import BUNDLER, PYTHON, watch_memory
from workplace import TARGET, Workplace

BAR = 1.3
GIGABYTE = 1e9


def measure(workplace: Workplace) -> Section:
    gigabytes = 0.3 if workplace.quick else 1.5
    folder = workplace.empty("large")
    try:
        model = folder / "model.onnx"
        networks.make_large(model, gigabytes)
        size = sum(path.stat().st_size for path in folder.iterdir())
        command = [BUNDLER, "build", str(model), "--target", TARGET, "--output", str(folder / "out"), "--no-prove"]
        build = watch_memory([*command, "--cache", str(folder / "cache"), "--progress", "none"])
        opened = watch_memory([PYTHON, "-c", _OPEN, str(model)])
    finally:
        shutil.rmtree(folder)
    rows = tuple(
        (
            name,
            *(f"{value / GIGABYTE:.2f} GB" for value in (peak.shared_out, peak.own, peak.largest)),
            f"{peak.shared_out / size:.2f}",
            bar,
            set_bar(name.strip("`"), [peak.shared_out / size], BAR) if bar else "",
            f"{peak.seconds:.0f} s",
        )
        for name, peak, bar in (("`bundler build --no-prove`", build, f"{BAR:g}"), ("one plain session", opened, ""))
    )
    columns = ("", "peak, whole tree", "of that without files", "largest process", "over the model", "bar", "", "time")
    return Section(
        name="memory",
        title=f"peak memory with {size / GIGABYTE:.2f} GB of external weights",
        method=(
            "Sampled every 50 ms over the whole tree of processes: proportional set size (shared pages divided among "
            "their users; mapped files count while they are in memory), its part that no file backs, and the greatest "
            "resident set of one process. Cold caches, wheels from the index."
        ),
        tables=(Table(columns=columns, rows=rows),),
        figures={"model": size, "build": [build.shared_out, build.own, build.largest, build.seconds]},
    )


_OPEN = "import sys, onnxruntime as ort; ort.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'])"
