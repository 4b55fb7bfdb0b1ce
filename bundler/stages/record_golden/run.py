"""Run the untouched model on samples or seeded inputs and keep what it answers."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime

from bundler.model.codec import decode
from bundler.model.errors import UsageError
from bundler.model.signature import Signature
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.stages.record_golden.spec import Options
from bundler.workbench.equality import same_value, value_is_finite
from bundler.workbench.fitting import adopt_types, check_samples, fix_signature
from bundler.workbench.golden import INDEX, GoldenSet, Sample, read_golden, write_index, write_sample
from bundler.workbench.index_bounds import index_bounds
from bundler.workbench.running import RunError, count_lanes, run_in_lanes, run_session
from bundler.workbench.sample_files import open_samples
from bundler.workbench.seeded_inputs import assign_dimensions
from bundler.workbench.seeding import find_maker
from bundler.workbench.sessions import REFERENCE, open_session
from bundler.workbench.signatures import model_signature
from bundler.workbench.structure import random_operators, read_structure
from bundler.workbench.value_files import Value

_SYNTHETIC = Note(text="the golden set is synthetic: seeded inputs, not real data (give --samples)", level="warning")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inputs:
    """What goes in: `seed` is None for a user's samples; `sizes` are those of seeded inputs."""

    samples: Sequence[tuple[str, Mapping[str, Value]]]
    seed: int | None
    sizes: Mapping[str, int]
    notes: tuple[Note, ...]


def run(request: StageRequest, report: Report) -> StageResult:
    """The golden set. Raises `ModelError` for a model that cannot run, `UsageError` for samples that do not fit."""
    options = decode(Options, dict(request.options))
    model = request.input("model")
    structure = read_structure(model)
    signature = fix_signature(model_signature(structure), options.dimensions)
    if "recorded" in request.inputs:
        return _take_recorded(read_golden(request.input("recorded")), signature, options, request.output)
    given = _given_inputs(request, signature, options)
    integers = tuple(port.name for port in signature.inputs)
    bounds = {} if given else index_bounds(structure, integers)
    draws = bool(random_operators(structure))
    del structure
    report(0.0, "opening the untouched model")
    session = open_session(model, REFERENCE)
    lanes = 1 if draws else count_lanes(REFERENCE, model)  # random operators draw in the order of the runs
    inputs = given or _seeded_inputs(session, signature, bounds, options)
    return _record(session, signature, inputs, request.output, report, draws=draws, lanes=lanes)


def _given_inputs(request: StageRequest, signature: Signature, options: Options) -> _Inputs | None:
    if "samples" not in request.inputs:
        return None
    found = open_samples(request.input("samples"), signature)
    total = len(found.names)
    taken = range(min(total, options.max_samples))
    with contextlib.closing(found):
        samples = [(found.names[index], adopt_types(found.read(index), signature)) for index in taken]
    check_samples(samples, signature)
    notes: tuple[Note, ...] = ()
    if total > len(samples):
        notes = (_tell_taken(len(samples), total, options),)
    if found.seed is not None:
        notes = (*notes, _SYNTHETIC)
    return _Inputs(samples=samples, seed=found.seed, sizes={}, notes=notes)


def _tell_taken(taken: int, total: int, options: Options) -> Note:
    if options.travels:
        return Note(text=f"the golden set takes the first {taken} of {total} samples, for it travels in the bundle")
    return Note(text=f"the first {taken} of {total} samples judge the precision")


def _take_recorded(recorded: GoldenSet, signature: Signature, options: Options, folder: Path) -> StageResult:
    """The first samples of a set with answers that the same model gave."""
    total = len(recorded.entries)
    samples = [recorded.sample(index) for index in range(min(total, options.max_samples))]
    entries = [write_sample(folder, index, sample, signature) for index, sample in enumerate(samples)]
    write_index(folder, entries, seed=recorded.seed, unstable=recorded.unstable_outputs)
    broken = {name for sample in samples for name, value in sample.outputs.items() if not value_is_finite(value)}
    order = [port.name for port in signature.outputs]
    facts = {
        "samples": len(entries),
        "synthetic": recorded.synthetic,
        "unstable_outputs": list(recorded.unstable_outputs),
        "non_finite_outputs": [name for name in order if name in broken],
        "dimensions": {},
    }
    notes = (_tell_taken(len(samples), total, options),) if total > len(samples) else ()
    return StageResult(facts=facts, entry=INDEX, notes=notes)


def _seeded_inputs(
    session: onnxruntime.InferenceSession, signature: Signature, bounds: Mapping[str, int], options: Options
) -> _Inputs:
    """Seeded inputs of the first guess at sizes that the model runs on. Raises `ModelError` when none does."""
    maker = find_maker(session, signature, bounds, options.seed)
    samples = [(f"seeded-{index:03d}", maker.make(options.seed, index)) for index in range(options.count)]
    chosen = assign_dimensions(signature, maker.sizes)
    return _Inputs(samples=samples, seed=options.seed, sizes=chosen, notes=(_SYNTHETIC,))


def _record(
    session: onnxruntime.InferenceSession,
    signature: Signature,
    inputs: _Inputs,
    folder: Path,
    report: Report,
    *,
    draws: bool,
    lanes: int,
) -> StageResult:
    entries: list[dict[str, Any]] = []
    unstable: set[str] = set()
    broken: set[str] = set()
    runs = run_in_lanes(session, (values for _, values in inputs.samples), lanes)
    for index, ((name, values), outputs) in enumerate(zip(inputs.samples, runs, strict=True)):
        report(index / len(inputs.samples), f"sample {index + 1} of {len(inputs.samples)}")
        if isinstance(outputs, RunError):
            raise _refused(name, outputs) from outputs
        if draws or index == 0:
            again = run_session(session, values)
            unstable |= {key for key, value in outputs.items() if not same_value(value, again[key])}
        broken |= {key for key, value in outputs.items() if not value_is_finite(value)}
        entries.append(write_sample(folder, index, Sample(name=name, inputs=values, outputs=outputs), signature))
    order = [port.name for port in signature.outputs]
    unstable_outputs, broken_outputs = ([name for name in order if name in names] for names in (unstable, broken))
    write_index(folder, entries, seed=inputs.seed, unstable=unstable_outputs)
    facts = {
        "samples": len(entries),
        "synthetic": inputs.seed is not None,
        "unstable_outputs": unstable_outputs,
        "non_finite_outputs": broken_outputs,
        "dimensions": dict(inputs.sizes),
    }
    notes = (*inputs.notes, *_output_notes(unstable_outputs, broken_outputs))
    return StageResult(facts=facts, entry=INDEX, notes=notes)


def _refused(name: str, error: RunError) -> UsageError:
    return UsageError(
        f"the untouched model does not run on the sample {name}",
        details=(str(error),),
        hint="the samples fit the signature, and still the model refuses their values or sizes: check them",
    )


def _output_notes(unstable: list[str], broken: list[str]) -> tuple[Note, ...]:
    notes = []
    if unstable:
        names = ", ".join(map(repr, unstable))
        text = f"not the same in two runs: {names}; only name, type and shape can be promised there"
        notes.append(Note(text=text, level="warning"))
    if broken:
        names = ", ".join(map(repr, broken))
        text = f"the untouched model itself answers NaN or infinity in {names}; the bundle must answer the same"
        notes.append(Note(text=text, level="warning"))
    return tuple(notes)
