"""Decode, check and write one sample after another. The data may be larger than memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bundler.model.codec import decode, encode
from bundler.model.errors import UsageError
from bundler.model.fixing import Fixing
from bundler.model.free_dimensions import find_ranges
from bundler.model.signature import Signature
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.digests import digest_values
from bundler.onnxkit.fitting import Fitting, adopt_types, fix_signature
from bundler.onnxkit.golden import INDEX, Sample, write_index, write_sample
from bundler.onnxkit.signatures import model_signature
from bundler.onnxkit.structure import read_structure
from bundler.onnxkit.value_files import Value
from bundler.stages.prepare_data.dataset import DataSet, UnreadableError
from bundler.stages.prepare_data.opening import open_data
from bundler.stages.prepare_data.spec import Facts, Options
from bundler.stages.prepare_data.splitting import wanted_positions
from bundler.stages.prepare_data.survey import Survey, held_out_digests

_MIN_EVERY = 2
_MEDIA = (
    "repair or remove the samples named above (bundler skips none silently); docs/preprocessing.md lists the "
    "supported formats"
)
_HINTS = {
    "images": _MEDIA,
    "audio": _MEDIA,
    "text": _MEDIA,
    "python": "it must give mappings from input name to array; `bundler inspect MODEL` shows the model's inputs",
}


@dataclass(slots=True, kw_only=True)
class _Written:
    """Counts and digests so far."""

    survey: Survey
    fitting: Fitting
    entries: list[dict[str, Any]]
    seen: int = 0
    dropped: int = 0


def run(request: StageRequest, report: Report) -> StageResult:
    """The prepared set. Raises `UsageError` for data that cannot be read, do not fit, or leave no sample."""
    options = decode(Options, dict(request.options))
    if options.part != "all" and options.every < _MIN_EVERY:
        raise UsageError(f"cannot hold out one of every {options.every} samples", hint="hold out one of 2 or more")
    structure = read_structure(request.input("model"))
    signature = fix_signature(model_signature(structure), Fixing(dimensions=options.dimensions, shapes=options.shapes))
    data = open_data(request, structure, signature, options)
    del structure
    written = _write(data, signature, request, options, report)
    _check(written, options)
    write_index(request.output, written.entries, seed=data.seed, unstable=())
    return StageResult(
        facts=encode(_describe(data, written, options)),
        entry=INDEX,
        notes=(*data.notes, *_notes(written), *written.survey.notes()),
    )


def _write(data: DataSet, signature: Signature, request: StageRequest, options: Options, report: Report) -> _Written:
    held_out = held_out_digests(request.inputs.get("held_out"))
    fixed = data.record.constants if data.record else ()
    ranges = find_ranges(signature, options.ranges)
    fitting = Fitting(signature, _HINTS.get(options.kind), allow_nan=options.allow_constant, ranges=ranges)
    written = _Written(survey=Survey(fixed), fitting=fitting, entries=[])
    for name, inputs in _fitting_samples(data, signature, written, options, report):
        digest = digest_values(inputs)
        if digest in held_out:
            written.dropped += 1
            continue
        written.survey.add(name, inputs, digest)
        sample = Sample(name=name, inputs=inputs, outputs={})
        written.entries.append(write_sample(request.output, len(written.entries), sample, signature))
    written.fitting.finish()
    return written


def _fitting_samples(
    data: DataSet, signature: Signature, written: _Written, options: Options, report: Report
) -> Iterator[tuple[str, dict[str, Value]]]:
    """Samples until one fails; from then on only further errors are collected."""
    wanted, count = wanted_positions(data.total, options)
    with contextlib.closing(data.take(wanted)) as samples:
        for name, load in samples:
            if written.fitting.full or (count is None and 0 < options.limit <= len(written.entries)):
                return
            share = written.seen / count if count else 0.0
            report(share, f"sample {written.seen + 1}" + (f" of {count}" if count else ""))
            written.seen += 1
            try:
                inputs = adopt_types(load(), signature)
            except UnreadableError as error:
                written.fitting.reject(name, str(error))
                continue
            if written.fitting.check(name, inputs) and written.fitting.fine:
                yield name, inputs


def _check(written: _Written, options: Options) -> None:
    if not written.entries:
        what = "the one sample is" if written.dropped == 1 else f"all {written.dropped} samples are"
        hint = "give more calibration data, or other data than that of --samples"
        raise UsageError(f"no sample is left for calibration: {what} among those that judge the accuracy", hint=hint)
    if not options.allow_constant:
        written.survey.check_range()


def _describe(data: DataSet, written: _Written, options: Options) -> Facts:
    return Facts(
        kind=options.kind,
        part=options.part,
        samples=len(written.entries),
        total=data.total,
        dropped=written.dropped,
        synthetic=data.seed is not None,
        dimensions=data.sizes,
        preprocessing=encode(data.record) if data.record else None,
        distinct=written.survey.distinct,
        constant_inputs=tuple(written.survey.constant_inputs),
        constant_samples=written.survey.constant_samples,
    )


def _notes(written: _Written) -> tuple[Note, ...]:
    if not written.dropped:
        return ()
    text = f"{written.dropped} of {written.seen} samples are skipped: they are equal to held-out ones"
    return (Note(text=text),)
