"""Generate a set of seeded samples for a model: several sizes, and as many samples as are cheap to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import onnxruntime
from onnx import ModelProto

from bundler.model.errors import ModelError
from bundler.model.free_dimensions import Key, Sizes
from bundler.model.golden_inputs import TriedDimension
from bundler.model.shapes import SizeRange
from bundler.model.signature import Signature
from bundler.model.stage import Report
from bundler.onnxkit.compared_constants import compared_constants, find_masks
from bundler.onnxkit.digests import digest_each
from bundler.onnxkit.index_bounds import index_bounds
from bundler.onnxkit.known_words import known_words
from bundler.onnxkit.larger_sizes import Larger, Limits, find_larger
from bundler.onnxkit.other_sizes import OtherSizes, find_other_sizes
from bundler.onnxkit.running import RunError, RunTimeError, run_in_lanes, run_session
from bundler.onnxkit.seeded_inputs import Maker, ValueHints
from bundler.onnxkit.seeded_values import is_noise
from bundler.onnxkit.size_search import SizeSearch, describe_sizes, limit_run
from bundler.onnxkit.tree_thresholds import tree_thresholds
from bundler.onnxkit.value_files import Value, count_bytes
from bundler.onnxkit.workload import count_multiplications

MIN_SAMPLES: Final = 3
"""Minimum for expensive models. With fewer than eight, not all pairs of branches occur."""
MAX_SET_MULTIPLICATIONS: Final = 6_000_000_000
"""Limit for all samples together: one or two seconds of the reference runtime's single thread."""
MAX_SET_BYTES: Final = 8 << 20
"""Limit for inputs and outputs of all samples together, which are part of every bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededSample:
    """One sample that ran: how its inputs are generated, and the digest of each output of that run."""

    maker: Maker
    seed: int
    index: int
    first_run: Mapping[str, bytes]

    @property
    def name(self) -> str:
        """The sample's name."""
        return f"seeded-{self.index:03d}"

    def inputs(self) -> dict[str, Value]:
        """The inputs, generated again."""
        return self.maker.make(self.seed, self.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededSet:
    """`sizes` are those of the first sample, by symbol, and `shapes` those of its inputs; `dimensions` all that were
    tried. `wanted` samples were requested; `multiplications` and `sample_bytes` are the costs of one.
    """

    samples: tuple[SeededSample, ...]
    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    dimensions: tuple[TriedDimension, ...]
    wanted: int
    multiplications: int
    sample_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededModel:
    """The model of a set: `session` runs the model with this `structure`. `hints` are what its graph implies
    for its inputs; sizes with `ranges` stay within them.
    """

    session: onnxruntime.InferenceSession
    structure: ModelProto
    signature: Signature
    lanes: int
    ranges: Mapping[Key, SizeRange] = field(default_factory=dict)

    @property
    def run_seconds(self) -> float:
        """Time limit in seconds of one run of a model with fixed sizes."""
        sizes = Maker(signature=self.signature, sizes=Sizes(), hints=ValueHints(), ranges=self.ranges).shapes
        return limit_run(count_multiplications(self.structure, sizes))

    @property
    def hints(self) -> ValueHints:
        """What the graph implies for the values of the model's inputs."""
        names = tuple(port.name for port in self.signature.inputs)
        return ValueHints(
            bounds=index_bounds(self.structure, names),
            compared=compared_constants(self.structure, names),
            masks=find_masks(self.structure, names),
            thresholds=tree_thresholds(self.structure, names),
            words=known_words(self.structure, names),
        )


def make_seeded_set(
    model: SeededModel,
    seed: int,
    count: int,
    report: Report,
    *,
    least: int = MIN_SAMPLES,
    larger: Limits | None = None,
) -> SeededSet:
    """At most `count` samples that the model runs on, and `least` for an expensive model; within the limits of `larger`
    some have larger sizes, which may come to them. Raises `ModelError`.
    """
    search = SizeSearch(
        session=model.session,
        signature=model.signature,
        hints=model.hints,
        seed=seed,
        report=report,
        fixed_seconds=model.run_seconds,
        ranges=model.ranges,
    )
    base, outputs = search.find()
    others = find_other_sizes(search, base)
    multiplications = count_multiplications(model.structure, base.shapes)
    sample_bytes = base.count_bytes() + count_bytes(outputs)
    affordable = count_affordable(count, least, multiplications, sample_bytes)
    first = SeededSample(maker=base, seed=seed, index=0, first_run=digest_each(outputs))
    planned = [_plan(base, others, index) for index in range(affordable)]
    beyond = find_larger(search, base, others, model.structure, larger) if larger is not None else Larger()
    planned = _add_larger(planned, beyond)
    seconds = limit_run(max(multiplications, beyond.multiplications))
    samples = (first, *_run_others(model, seed, base, planned, seconds))[: len(planned)]
    return SeededSet(
        samples=samples,
        sizes={key: size for key, size in base.assigned.items() if isinstance(key, str)},
        shapes=base.shapes,
        dimensions=tuple(_with_sizes_of(samples, item) for item in others.dimensions),
        wanted=count,
        multiplications=multiplications,
        sample_bytes=sample_bytes,
    )


def count_affordable(wanted: int, least: int, multiplications: int, sample_bytes: int) -> int:
    """The number of cheap samples, by the costs of one in the graph; time is not measured, so all machines agree."""
    affordable = min(MAX_SET_MULTIPLICATIONS // max(multiplications, 1), MAX_SET_BYTES // max(sample_bytes, 1))
    return min(wanted, max(least, affordable))


def _run_others(
    model: SeededModel, seed: int, base: Maker, planned: Sequence[Maker], seconds: float
) -> Iterator[SeededSample]:
    """Run every sample but the first once. A rejected one is replaced by plain values or by the first sizes."""
    feeds = (planned[index].make(seed, index) for index in range(1, len(planned)))
    for index, outputs in enumerate(run_in_lanes(model.session, feeds, model.lanes, seconds), start=1):
        if isinstance(outputs, RunTimeError):
            raise _endless(planned[index], seconds)
        if not isinstance(outputs, RunError):
            found: tuple[Maker, dict[str, Value]] | None = (planned[index], outputs)
        else:
            found = _first_that_runs(model.session, _gentler(base, planned[index]), seed, index)
        if found is not None:
            maker, values = found
            yield SeededSample(maker=maker, seed=seed, index=index, first_run=digest_each(values))


def _endless(maker: Maker, seconds: float) -> ModelError:
    """An error, because skipping such a sample would make the set depend on the machine's speed."""
    return ModelError(
        f"the model did not finish on a seeded input: one run took more than {seconds:g} s",
        details=(f"at {describe_sizes(maker)}, where it finished with other values",),
        hint="give real inputs with --samples",
    )


def _plan(base: Maker, others: OtherSizes, index: int) -> Maker:
    """Every second sample has other sizes, in turn."""
    if index % 2 == 0 or not others.changes:
        return base
    return replace(base, changes=others.changes[index // 2 % len(others.changes)])


def _add_larger(planned: list[Maker], larger: Larger) -> list[Maker]:
    """One takes the place of the last sample with other sizes that is not noise, if another has them too; several are
    added.
    """
    places = [index for index in range(1, len(planned), 2) if not is_noise(index)]
    if len(larger.makers) != 1 or not places or planned.count(planned[places[-1]]) == 1:
        return [*planned, *larger.makers]
    return [larger.makers[0] if index == places[-1] else maker for index, maker in enumerate(planned)]


def _with_sizes_of(samples: Sequence[SeededSample], item: TriedDimension) -> TriedDimension:
    """Also the larger sizes, where a sample has them in the end."""
    found = {sample.maker.assigned[item.symbol or (item.port, item.axis)] for sample in samples}
    return replace(item, sizes=tuple(sorted({*item.sizes, *found})))


def _gentler(base: Maker, planned: Maker) -> Iterator[Maker]:
    """Replacements for a rejected sample, the most similar first."""
    yield replace(planned, plain=True)
    if planned != base:
        yield base
        yield replace(base, plain=True)


def _first_that_runs(
    session: onnxruntime.InferenceSession, makers: Iterator[Maker], seed: int, index: int
) -> tuple[Maker, dict[str, Value]] | None:
    for maker in makers:
        try:
            return maker, run_session(session, maker.make(seed, index))
        except RunError:
            continue
    return None
