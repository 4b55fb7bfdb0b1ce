"""Check that a metric distinguishes correct outputs from wrong ones: the recorded outputs of other samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from bundler.model.errors import BundlerError
from bundler.model.stage import Note
from bundler.onnxkit.golden import GoldenSet
from bundler.onnxkit.golden import Sample as Recorded
from bundler.onnxkit.value_files import Value
from bundler.stages.measure_metric.samples import ComputeOutputs


def swapped_outputs(golden: GoldenSet) -> ComputeOutputs:
    """The recorded outputs of the sample half a set further on."""
    count = len(golden.entries)
    others = {entry["name"]: _opposite(place, count) for place, entry in enumerate(golden.entries)}

    def compute(sample: Recorded) -> Mapping[str, Value]:
        return golden.sample(others[sample.name]).outputs

    return compute


def swap_files(folder: Path, swapped: Path) -> Path:
    """The same for a folder with one file per sample: each name gets another's content."""
    swapped.mkdir()
    names = sorted(path.name for path in folder.iterdir())
    for place, name in enumerate(names):
        os.link(folder / names[_opposite(place, len(names))], swapped / name)
    return swapped


def _opposite(place: int, count: int) -> int:
    return (place + count // 2) % count


def check_metric(measure: Callable[[], float], reference: float, samples: int) -> tuple[Note, ...]:
    """A warning if wrong outputs have the same value as correct ones. A metric that rejects them passes."""
    if samples < 2:  # noqa: PLR2004 - one sample has no other outputs
        return ()
    try:
        found = measure()
    except BundlerError:
        return ()
    if found > reference:
        text = (
            f"the metric is {found:g} when each sample gets the outputs of another, and {reference:g} for the correct "
            "ones: higher must be better, so return the negative of an error"
        )
        return (Note(text=text, level="warning"),)
    if found != reference:
        return ()
    text = (
        f"the metric is {reference:g} for the original model's outputs, and as much when each sample gets those of "
        "another: on these samples it cannot distinguish correct outputs from wrong ones"
    )
    return (Note(text=text, level="warning"),)
