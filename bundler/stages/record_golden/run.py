"""Run the original model on samples or seeded inputs and record its outputs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import onnxruntime
from onnx import ModelProto

from bundler.model.codec import decode, encode
from bundler.model.errors import ModelError, UsageError
from bundler.model.fixing import Fixing, correct_shapes, find_contradicted
from bundler.model.free_dimensions import find_ranges
from bundler.model.golden_inputs import TriedDimension, Weakness
from bundler.model.signature import Dimension, Signature, describe_type
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.model.state import InitialFile, check_state
from bundler.onnxkit.digests import digest_each
from bundler.onnxkit.equality import value_is_finite
from bundler.onnxkit.fitting import adopt_types, check_samples, describe_non_finite, fix_signature
from bundler.onnxkit.golden import INDEX, GoldenSet, Sample, read_golden, write_index, write_sample
from bundler.onnxkit.larger_sizes import LARGEST, SEVERAL
from bundler.onnxkit.placement_facts import limit_lines
from bundler.onnxkit.quantities import find_quantities
from bundler.onnxkit.recorded_outputs import Recorded, doubts_of, reference_notes, weakness_notes
from bundler.onnxkit.running import RunError, RunMemoryError, RunTimeError, count_lanes, run_in_lanes, run_session
from bundler.onnxkit.sample_files import open_samples
from bundler.onnxkit.seeded_inputs import Maker
from bundler.onnxkit.seeded_sets import SeededModel, make_seeded_set
from bundler.onnxkit.sessions import REFERENCE, open_session
from bundler.onnxkit.signatures import model_signature
from bundler.onnxkit.size_search import MEMORY_HINT, bounded_step, limit_run
from bundler.onnxkit.structure import iterate_tensors, list_bytes, random_operators, read_structure, tensor_bytes
from bundler.onnxkit.value_files import Value
from bundler.onnxkit.weaknesses import SYNTHETIC, describe_count, describe_seeded
from bundler.stages.record_golden.alike import SEEDED, describe_alike, make_alike
from bundler.stages.record_golden.examining import choose_repeated, count_largest, describe_only_sizes, weaknesses_of
from bundler.stages.record_golden.renamed import RenamedSession, refuse_old_names
from bundler.stages.record_golden.spec import Facts, Options
from bundler.stages.record_golden.streams import describe_large, describe_steps, record_stream, take_state_away

_MAX_LISTED: Final = 3

_SYNTHETIC = Note(text="the golden set is synthetic: seeded inputs, not real data (use --samples)", level="warning")

_LOAD_BYTES: Final = 1 << 30
"""Memory to load a model, in addition to copies of its weights: the runtime infers shapes too, and holds every rank."""
_COPIES: Final = 8
_LIST_COPIES: Final = 24
"""Of a list in an attribute, as the trees of a forest are: a number of two bytes in the file takes eight, a short text
more, and the runtime builds the trees beside the lists. A forest of LightGBM with 194 MB took 13 times its bytes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inputs:
    """The inputs: `seed` is None for a user's samples; `sizes` and `shapes` are those of the first seeded ones, `tried`
    the dimensions that the search for them tried. `first_runs` are digests of the outputs of earlier runs, and `maker`
    generates plain values for a step of a stream that the model rejects.
    """

    samples: Sequence[tuple[str, Mapping[str, Value]]]
    seed: int | None
    sizes: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    maker: Maker | None = None
    notes: tuple[Note, ...] = ()
    tried: tuple[TriedDimension, ...] = ()
    first_runs: Sequence[Mapping[str, bytes]] = ()
    weaknesses: tuple[Weakness, ...] = ()

    @property
    def replace_values(self) -> Callable[[int], Mapping[str, Value]] | None:
        """Generates plain values for a step, of seeded ones."""
        if self.maker is None or self.seed is None:
            return None
        return partial(replace(self.maker, plain=True).make, self.seed)

    @property
    def values(self) -> list[Mapping[str, Value]]:
        """The inputs of each sample."""
        return [values for _, values in self.samples]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    """How samples are run: concurrent `lanes`, the samples that run twice, and the limit in seconds for each run. The
    `state` of a stream names the output that each of its inputs is in the next step; those `from_file` began with it.
    `declared` is the model's signature with nothing fixed: the names of its sizes tell which are to be equal.
    """

    lanes: int
    repeated: Collection[int]
    seconds: float
    state: Mapping[str, str] = field(default_factory=dict)
    from_file: tuple[str, ...] = ()
    declared: Signature


def run(request: StageRequest, report: Report) -> StageResult:
    """The golden set. Raises `ModelError` for a model that cannot run, `UsageError` for samples that do not fit."""
    options = decode(Options, dict(request.options))
    model = request.input("model")
    structure = read_structure(model)
    declared = model_signature(structure)
    signature = fix_signature(declared, _fixing(options))
    if "recorded" in request.inputs and not options.alike:
        return _take_recorded(request, structure, signature, options)
    check_state(signature, options.state)
    given = _given_inputs(request, take_state_away(signature, options.state), options)
    draws = bool(random_operators(structure))
    report(0.0, "loading the original model")
    weights = sum(tensor_bytes(tensor) for tensor in iterate_tensors(structure))
    with bounded_step(_LOAD_BYTES + _COPIES * weights + _LIST_COPIES * list_bytes(structure)):
        session = open_session(request.inputs.get("original", model), REFERENCE)
    if "original" in request.inputs:
        session = RenamedSession(session, options.renamed)
    lanes = 1 if draws else count_lanes(REFERENCE, model)  # random operators draw in the order of the runs
    ranges = find_ranges(signature, options.ranges)
    seeded = SeededModel(session=session, structure=structure, signature=signature, lanes=lanes, ranges=ranges)
    if options.alike:
        inputs = _alike_inputs(session, read_golden(request.input("recorded")), options)
    else:
        inputs = given or _seeded_inputs(seeded, options, report)
    if options.state:
        other = inputs.replace_values
        stream = inputs.samples, signature, options.state, request.inputs
        samples, first_runs = record_stream(session, *stream, replace_values=other)
        notes = (*inputs.notes, *describe_large(samples))
        inputs = replace(inputs, samples=samples, first_runs=first_runs, notes=notes)
    found = weaknesses_of(model, structure, signature, inputs.values, inputs.tried, fixing=_fixing(options))
    inputs = replace(inputs, weaknesses=(*inputs.weaknesses, *found))
    recorded = Recorded(signature, find_quantities(structure))
    repeated = choose_repeated(structure, inputs.values, draws=draws)
    runs = _Runs(
        lanes=lanes,
        repeated=repeated,
        seconds=limit_run(count_largest(structure, inputs.values)),
        state={link.input: link.output for link in options.state},
        from_file=tuple(link.input for link in options.state if link.initial == "file"),
        declared=declared,
    )
    return _record(session, recorded, inputs, request.output, report, how=runs)


def _given_inputs(request: StageRequest, signature: Signature, options: Options) -> _Inputs | None:
    if "samples" not in request.inputs:
        return None
    found = open_samples(request.input("samples"), signature)
    total = len(found.names)
    taken = spread_evenly(total, options.max_samples)
    if options.state:
        taken = list(range(min(total, options.max_samples)))
    with contextlib.closing(found):
        samples = [(found.names[index], adopt_types(found.read(index), signature)) for index in taken]
    refuse_old_names(samples, options.renamed)
    check_samples(samples, signature, find_ranges(signature, options.ranges))
    notes: tuple[Note, ...] = ()
    if total > len(samples):
        notes = (
            describe_steps(len(samples), total) if options.state else _describe_taken(len(samples), total, options),
        )
    notes = (*notes, *_describe_non_finite(samples))
    weaknesses = tuple(describe_count(len(samples)))
    if found.seed is not None:
        notes, weaknesses = (*notes, _SYNTHETIC), (SYNTHETIC, *weaknesses)
    return _Inputs(samples=samples, seed=found.seed, notes=notes, weaknesses=weaknesses)


def _describe_non_finite(samples: Sequence[tuple[str, Mapping[str, Value]]]) -> Iterator[Note]:
    odd = [f"{name}: {', '.join(found)}" for name, values in samples if (found := [*describe_non_finite(values)])]
    if odd:
        listed = ", ".join(limit_lines(odd, _MAX_LISTED))
        text = (
            f"{len(odd)} of {len(samples)} samples hold NaN or infinity ({listed}): where the original model "
            "outputs one of them, an output must have it in the same places, and its other numbers are compared"
        )
        yield Note(text=text, level="warning", names_samples=True)


def spread_evenly(total: int, most: int) -> list[int]:
    """Places of at most `most` samples, spread evenly: the first ones of a sorted folder would all be of one kind."""
    count = min(total, most)
    return [place * total // count for place in range(count)]


def _describe_taken(taken: int, total: int, options: Options) -> Note:
    if options.travels:
        return Note(
            text=f"the golden set holds {taken} of {total} samples, spread evenly, because the bundle contains it"
        )
    return Note(text=f"{taken} of {total} samples, spread evenly, judge the precision")


def _fixing(options: Options) -> Fixing:
    return Fixing(dimensions=options.dimensions, shapes=options.shapes)


def _take_recorded(request: StageRequest, structure: ModelProto, signature: Signature, options: Options) -> StageResult:
    """Samples of a recorded set, with the outputs that the same model computed."""
    recorded, folder = read_golden(request.input("recorded")), request.output
    total = len(recorded.entries)
    samples = [recorded.sample(index) for index in spread_evenly(total, options.max_samples)]
    # The names of the user's files are not shipped.
    samples = [replace(sample, name=f"sample-{index:03d}") for index, sample in enumerate(samples)]
    entries = [write_sample(folder, index, sample, signature) for index, sample in enumerate(samples)]
    quantities = [name for name, known in recorded.references.items() if known.quantity]
    references = Recorded(signature, quantities)
    for sample in samples:
        references.add(sample.outputs)
    found = references.figures(recorded.unstable_outputs)
    write_index(folder, entries, found, seed=recorded.seed, unstable=recorded.unstable_outputs)
    broken = {name for sample in samples for name, value in sample.outputs.items() if not value_is_finite(value)}
    order = [port.name for port in signature.outputs]
    inputs = [sample.inputs for sample in samples]
    weaknesses = (
        *((SYNTHETIC,) if recorded.synthetic else ()),
        *describe_count(len(samples)),
        *weaknesses_of(request.input("model"), structure, signature, inputs, fixing=_fixing(options)),
    )
    facts = Facts(
        samples=len(entries),
        synthetic=recorded.synthetic,
        unstable_outputs=tuple(recorded.unstable_outputs),
        non_finite_outputs=tuple(name for name in order if name in broken),
        dimensions={},
        tried_dimensions=(),
        references=tuple(found),
        weaknesses=(*weaknesses, *doubts_of(found)),
        contradicted=_find_contradicted(model_signature(structure), entries),
    )
    notes = (_describe_taken(len(samples), total, options),) if total > len(samples) else ()
    # What the whole set cannot judge was already reported when it was recorded.
    lost = [one for one in found if one.unjudged and not recorded.references[one.name].unjudged]
    notes = (*notes, *reference_notes(lost))
    return StageResult(facts=encode(facts), entry=INDEX, notes=notes)


def _seeded_inputs(model: SeededModel, options: Options, report: Report) -> _Inputs:
    """Seeded inputs of sizes that the model runs on. Raises `ModelError` when there are none."""
    try:
        # All steps of a stream have the sizes of the first.
        larger = None if options.state else SEVERAL if options.rounds else LARGEST
        found = make_seeded_set(model, options.seed, options.count, report, larger=larger)
    except ModelError as error:
        if not (options.dimensions or options.shapes):
            raise
        hint = f"the model may not run at its fixed sizes: try other sizes, or {error.hint}"
        raise ModelError(error.message, details=error.details, hint=hint) from error
    samples = [(sample.name, sample.inputs()) for sample in found.samples]
    if options.state:
        base = found.samples[0].maker
        samples = [(f"step-{index:03d}", base.make(options.seed, index)) for index in range(len(found.samples))]
    return _Inputs(
        samples=samples,
        seed=options.seed,
        sizes=found.sizes,
        shapes=found.shapes,
        maker=found.samples[0].maker,
        notes=(_SYNTHETIC, *describe_only_sizes(found.dimensions)),
        tried=found.dimensions,
        first_runs=[sample.first_run for sample in found.samples],
        weaknesses=tuple(describe_seeded(found)),
    )


def _alike_inputs(session: onnxruntime.InferenceSession, recorded: GoldenSet, options: Options) -> _Inputs:
    places = spread_evenly(len(recorded.entries), options.max_samples)
    samples, first_runs = make_alike(session, recorded, places, options.seed)
    notes = (describe_alike(len(samples), len(recorded)),)
    return _Inputs(samples=samples, seed=options.seed, notes=notes, first_runs=first_runs, weaknesses=(SEEDED,))


def _record(
    session: onnxruntime.InferenceSession,
    recorded: Recorded,
    inputs: _Inputs,
    folder: Path,
    report: Report,
    *,
    how: _Runs,
) -> StageResult:
    signature = recorded.signature
    entries: list[dict[str, Any]] = []
    unstable: set[str] = set()
    broken: set[str] = set()
    runs = run_in_lanes(session, (values for _, values in inputs.samples), how.lanes, how.seconds)
    for index, ((name, values), outputs) in enumerate(zip(inputs.samples, runs, strict=True)):
        report(index / len(inputs.samples), f"sample {index + 1} of {len(inputs.samples)}")
        if isinstance(outputs, RunError):
            raise _describe_refusal(name, outputs, how) from outputs
        if inputs.first_runs or index in how.repeated:
            again = inputs.first_runs[index] if inputs.first_runs else digest_each(run_session(session, values))
            unstable |= {key for key, digest in digest_each(outputs).items() if digest != again[key]}
        broken |= {key for key, value in outputs.items() if not value_is_finite(value)}
        recorded.add(outputs)
        entries.append(write_sample(folder, index, Sample(name=name, inputs=values, outputs=outputs), signature))
    order = [port.name for port in signature.outputs]
    unstable_outputs, broken_outputs = (tuple(name for name in order if name in names) for names in (unstable, broken))
    found, first = recorded.figures(unstable_outputs), entries[0]["inputs"]
    write_index(folder, entries, found, seed=inputs.seed, unstable=unstable_outputs, state=how.state)
    contradicted = _find_contradicted(how.declared, entries)
    facts = Facts(
        samples=len(entries),
        synthetic=inputs.seed is not None,
        unstable_outputs=unstable_outputs,
        non_finite_outputs=broken_outputs,
        dimensions=inputs.sizes,
        shapes=inputs.shapes,
        tried_dimensions=inputs.tried,
        references=tuple(found),
        weaknesses=(*inputs.weaknesses, *doubts_of(found)),
        initial={
            name: InitialFile(file=first[name]["file"], shape=tuple(first[name]["shape"])) for name in how.from_file
        },
        contradicted=contradicted,
    )
    notes = (
        *inputs.notes,
        *weakness_notes(inputs.weaknesses),
        *_output_notes(unstable_outputs, broken_outputs),
        *_shape_notes(how.declared, contradicted),
        *reference_notes(found),
    )
    return StageResult(facts=encode(facts), entry=INDEX, notes=notes)


def _describe_refusal(name: str, error: RunError, how: _Runs) -> UsageError | ModelError:
    if isinstance(error, RunTimeError):
        return ModelError(
            f"the model did not finish on the sample {name}: one run took more than {how.seconds:g} s",
            hint="this limit follows from the model's size; give smaller inputs, or a model without endless loops",
        )
    if isinstance(error, RunMemoryError):
        text = f"the original model does not run on the sample {name}"
        return ModelError(text, details=(str(error),), hint=f"give smaller inputs, {MEMORY_HINT}")
    hint = "the samples fit the signature, but the model rejects their values or sizes: check them"
    return UsageError(f"the original model does not run on the sample {name}", details=(str(error),), hint=hint)


def _find_contradicted(
    signature: Signature, entries: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[Dimension, ...] | None]:
    samples = [
        {
            name: tuple(value["shape"])
            for name, value in (*entry["inputs"].items(), *entry["outputs"].items())
            if value["kind"] == "tensor"
        }
        for entry in entries
    ]
    return find_contradicted(signature, samples)


def _shape_notes(signature: Signature, contradicted: Mapping[str, tuple[Dimension, ...] | None]) -> Iterator[Note]:
    true = correct_shapes(signature, contradicted)
    inputs = [
        (*pair, "runs where sizes of one name differ") for pair in zip(signature.inputs, true.inputs, strict=True)
    ]
    outputs = [(*pair, "gives other sizes") for pair in zip(signature.outputs, true.outputs, strict=True)]
    for declared, port, does in (*inputs, *outputs):
        if declared != port:
            text = f"the model declares {port.name!r} as {describe_type(declared.type)}, and {does}"
            yield Note(text=f"{text}; the bundle describes it as {describe_type(port.type)}", level="warning")


def _output_notes(unstable: Sequence[str], broken: Sequence[str]) -> tuple[Note, ...]:
    notes = []
    if unstable:
        names = ", ".join(map(repr, unstable))
        text = f"{names} differs between two runs of the original model; only name, type and shape are compared there"
        notes.append(Note(text=text, level="warning"))
    if broken:
        names = ", ".join(map(repr, broken))
        text = f"the original model outputs NaN or infinity in {names}; the bundle must output the same"
        notes.append(Note(text=text, level="warning"))
    return tuple(notes)
