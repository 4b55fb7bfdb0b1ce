"""Opening the components of one bundle together, beside the slowest chain of opening each alone."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

from bars import set_bar
from document import Row, Section, Table
from models import choose, make_ready
from pairs import show_number, show_seconds
from processes import run_child
from workplace import TARGET, Workplace, build_bundle

BAR = 1.1
MODELS = {"detect": "rapidocr_det", "classify": "rapidocr_cls", "read": "rapidocr_rec"}
SETTLED_SECONDS = 2.2
"""A bundle remembers what it checked only of files that have rested for two seconds."""


def measure(workplace: Workplace) -> Section:
    first, *others = (f"{name}={_make_ready(workplace, model)}" for name, model in MODELS.items())
    arguments = (*others, "--bundle", "ocr", "--no-prove")
    built = build_bundle(workplace, first, workplace.empty("opening"), arguments=arguments)
    place = built.folder / built.package
    for _ in ("the bundle's files", "the loader's own copies of the models"):
        time.sleep(SETTLED_SECONDS)
        run_child("open_several.py", place, "2")  # the loader remembers what it checked
    found = json.loads(run_child("open_several.py", place, str(workplace.pick(5, 25))).output)
    cores = len(os.sched_getaffinity(0))
    return Section(
        name="opening",
        title="opening several components of one bundle",
        method=(
            f"The components {', '.join(MODELS)} of one bundle for {TARGET}, opened together and each alone, in turns "
            "within one process, from the second start on. The slowest chain is the slowest of them, or, where that is "
            f"more, the sum divided by the processors ({cores})."
        ),
        tables=(
            Table(
                columns=("time", "together", *MODELS, "slowest chain", "together over it", "bar", ""),
                rows=(_show("wall", found, 0, cores), _show("processor", found, 1, 1)),
            ),
        ),
        notes=(_explain(found, cores),),
        figures=found,
    )


def _explain(found: dict[str, list[tuple[float, float]]], cores: int) -> str:
    """How much of a miss no order of opening could mend."""
    alone = [[turn[1] for turn in found[name]] for name in MODELS]
    busy = [sum(each) / cores for each in zip(*alone, strict=True)]
    return (
        f"The processor time of the {len(MODELS)} alone fills {cores} processors for {show_seconds(busy)}. What is "
        "more than that is memory: threads that allocate at the same time wait for each other in the kernel (page "
        "faults, `mprotect`); with other settings of the allocator it took as long or longer."
    )


def _make_ready(workplace: Workplace, name: str) -> Path:
    (model,) = choose((name,))
    return make_ready(model, workplace.folder / "models").path


def _show(kind: str, found: dict[str, list[tuple[float, float]]], column: int, cores: int) -> Row:
    """Of processor time the chain is the sum: what opening at the same time costs more."""
    together, *alone = ([turn[column] for turn in found[name]] for name in ("together", *MODELS))
    chains = [max(*each, sum(each) / cores) for each in zip(*alone, strict=True)]
    ratios = [ours / chain for ours, chain in zip(together, chains, strict=True)]
    bar = set_bar(kind, ratios, BAR)
    shown = (show_seconds(together), *map(show_seconds, alone), show_seconds(chains), _show_ratios(ratios))
    return (kind, *shown, f"at most {show_number(BAR)} times", bar)


def _show_ratios(ratios: Sequence[float]) -> str:
    return f"{sorted(ratios)[len(ratios) // 2]:.2f} ({min(ratios):.2f}…{max(ratios):.2f})"
