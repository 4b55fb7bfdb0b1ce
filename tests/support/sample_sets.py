"""Sample sets on disk, as stages read them: inputs without outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from bundler.onnxkit.golden import INDEX, Sample, write_index, write_sample
from bundler.onnxkit.signatures import model_signature
from bundler.onnxkit.structure import read_structure


def write_samples(folder: Path, model: Path, samples: Iterable[Mapping[str, np.ndarray]]) -> Path:
    """The path of the index of a new set for the model at `model`."""
    folder.mkdir(parents=True)
    signature = model_signature(read_structure(model))
    entries = [
        write_sample(folder, index, Sample(name=f"sample {index}", inputs=inputs, outputs={}), signature)
        for index, inputs in enumerate(samples)
    ]
    write_index(folder, entries, seed=None, unstable=())
    return folder / INDEX
