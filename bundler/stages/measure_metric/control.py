"""Whether a metric can tell right answers from wrong ones: it is given the recorded answers to other samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from bundler.model.errors import BundlerError
from bundler.model.stage import Note
from bundler.onnxkit.golden import GoldenSet
from bundler.onnxkit.golden import Sample as Recorded
from bundler.onnxkit.value_files import Value
from bundler.stages.measure_metric.samples import Answer


def swapped_answer(golden: GoldenSet) -> Answer:
    """The recorded answers to the sample that stands half a set further on."""
    count = len(golden.entries)
    others = {entry["name"]: _opposite(place, count) for place, entry in enumerate(golden.entries)}

    def answer(sample: Recorded) -> Mapping[str, Value]:
        return golden.sample(others[sample.name]).outputs

    return answer


def swap_files(folder: Path, swapped: Path) -> Path:
    """The same for a folder with one file a sample: each name has another's content."""
    swapped.mkdir()
    names = sorted(path.name for path in folder.iterdir())
    for place, name in enumerate(names):
        os.link(folder / names[_opposite(place, len(names))], swapped / name)
    return swapped


def _opposite(place: int, count: int) -> int:
    return (place + count // 2) % count


def check_metric(measure: Callable[[], float], reference: float, samples: int) -> tuple[Note, ...]:
    """A warning where wrong answers have the same value as right ones. A metric that refuses them can tell."""
    if samples < 2:  # noqa: PLR2004 - of one sample there are no other answers
        return ()
    try:
        found = measure()
    except BundlerError:
        return ()
    if found > reference:
        text = (
            f"the metric is {found:g} when each sample gets the answers to another, and {reference:g} for the right "
            "ones: higher must be better, so return the negative of an error"
        )
        return (Note(text=text, level="warning"),)
    if found != reference:
        return ()
    text = (
        f"the metric is {reference:g} for the original model's answers, and as much when each sample gets those to "
        "another: on these samples it cannot tell right from wrong"
    )
    return (Note(text=text, level="warning"),)
