"""Seeded samples that are shipped instead of real ones: similar to them, and equal to none."""

from __future__ import annotations

from collections.abc import Mapping

import onnxruntime

from bundler.model.errors import UsageError
from bundler.model.golden_inputs import Weakness
from bundler.model.stage import Note
from bundler.onnxkit.digests import digest_each, digest_values
from bundler.onnxkit.golden import GoldenSet
from bundler.onnxkit.running import RunError, run_session
from bundler.onnxkit.seeded_likeness import Likeness
from bundler.onnxkit.value_files import Value

Alike = tuple[list[tuple[str, Mapping[str, Value]]], list[Mapping[str, bytes]]]
"""Samples that the model ran on, and the digests of its outputs."""


def make_alike(session: onnxruntime.InferenceSession, recorded: GoldenSet, places: list[int], seed: int) -> Alike:
    """A seeded sample for each of `places` in `recorded`. Samples that the model rejects or that equal a real one are
    skipped. Raises `UsageError` when none is left.
    """
    likeness, real = Likeness(), set()
    for sample in recorded:
        likeness.add(sample.inputs)
        real.add(digest_values(sample.inputs))
    samples: list[tuple[str, Mapping[str, Value]]] = []
    first_runs: list[Mapping[str, bytes]] = []
    for index, place in enumerate(places):
        drawn = likeness.draw(recorded.sample(place).inputs, seed, index)
        if digest_values(drawn) in real:
            continue
        try:
            first_runs.append(digest_each(run_session(session, drawn)))
        except RunError:
            continue
        samples.append((f"seeded-{index:03d}", drawn))
    if not samples:
        raise UsageError(
            "no seeded input can replace the samples: each equals one of them, or the model rejects it",
            hint="ship the samples themselves with --golden samples, or remove --samples",
        )
    return samples, first_runs


SEEDED = Weakness(
    kind="synthetic",
    name="",
    text="the inputs are seeded, within the ranges of the real samples; these judged the build and do not ship",
)


def describe_alike(made: int, judged: int) -> Note:
    """Say that seeded inputs are shipped instead of the `judged` samples."""
    what = f"{made} seeded input{'' if made == 1 else 's'}"
    return Note(
        text=f"the golden set in the bundle holds {what}, and none of the {judged} samples that judge the build"
    )
