"""How much memory the build of a large model needs."""

from __future__ import annotations

import shutil
from pathlib import Path

import networks
from bars import set_bar
from document import Section, Table
from processes import BUNDLER, PYTHON, Peak, watch_memory
from workplace import TARGET, Workplace

BAR = 1.3
COPIES_BAR = 1.05
"""Of the model's size: one copy of its weights, and what else a build keeps."""
GIGABYTE = 1e9


def measure(workplace: Workplace) -> Section:
    gigabytes = 0.3 if workplace.quick else 1.5
    folder = workplace.empty("large")
    try:
        model = folder / "model.onnx"
        networks.make_large(model, gigabytes)
        size = sum(path.stat().st_size for path in folder.iterdir())
        cache = folder / "cache"
        command = [BUNDLER, "build", str(model), "--target", TARGET, "--output", str(folder / "out"), "--no-prove"]
        command += ["--cache", str(cache), "--progress", "none"]
        build = watch_memory(command)
        kept = _weigh(cache / "artifacts")
        fixed = watch_memory([*command, "--dim", "batch=1"])
        kept_fixed = _weigh(cache / "artifacts") - kept
        opened = watch_memory([PYTHON, "-c", _OPEN, str(model)])
    finally:
        shutil.rmtree(folder)
    builds = (("`bundler build --no-prove`", build, kept), ("the same with `--dim batch=1`", fixed, kept_fixed))
    rows = tuple(
        (
            name,
            *(f"{value / GIGABYTE:.2f} GB" for value in (peak.shared_out, peak.own, peak.largest)),
            f"{peak.shared_out / size:.2f}",
            bar,
            set_bar(name.strip("`"), [peak.shared_out / size], BAR) if bar else "",
            f"{peak.seconds:.0f} s",
        )
        for name, peak, bar in (
            *((name, peak, f"{BAR:g}") for name, peak, _ in builds),
            ("one plain session", opened, ""),
        )
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
        tables=(Table(columns=columns, rows=rows), _compare_copies(builds, size)),
        figures={
            "model": size,
            "build": [build.shared_out, build.own, build.largest, build.seconds],
            "kept": [kept, kept_fixed],
        },
    )


def _compare_copies(builds: tuple[tuple[str, Peak, int], ...], size: int) -> Table:
    rows = tuple(
        (
            name,
            f"{kept / GIGABYTE:.2f} GB",
            f"{kept / size:.2f}",
            f"{COPIES_BAR:g}",
            set_bar(f"kept: {name}".replace("`", ""), [kept / size], COPIES_BAR),
        )
        for name, _, kept in builds
    )
    return Table(columns=("", "results in the cache", "over the model", "bar", ""), rows=rows)


def _weigh(folder: Path) -> int:
    """Bytes of all files below `folder`."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


_OPEN = "import sys, onnxruntime as ort; ort.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'])"
