"""Wrong outputs, which a metric has to distinguish from correct ones: the recorded outputs of other samples."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from bundler.onnxkit.golden import GoldenSet
from bundler.onnxkit.golden import Sample as Recorded
from bundler.onnxkit.user_metrics import find_opposite
from bundler.onnxkit.value_files import Value
from bundler.stages.measure_metric.samples import ComputeOutputs


def swapped_outputs(golden: GoldenSet) -> ComputeOutputs:
    """The recorded outputs of the sample half a set further on."""
    count = len(golden.entries)
    others = {entry["name"]: find_opposite(place, count) for place, entry in enumerate(golden.entries)}

    def compute(sample: Recorded) -> Mapping[str, Value]:
        return golden.sample(others[sample.name]).outputs

    return compute


def swap_files(folder: Path, swapped: Path) -> Path:
    """The same for a folder with one file per sample: each name gets another's content."""
    swapped.mkdir()
    names = sorted(path.name for path in folder.iterdir())
    for place, name in enumerate(names):
        os.link(folder / names[find_opposite(place, len(names))], swapped / name)
    return swapped
