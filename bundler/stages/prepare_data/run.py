"""Decode one sample, check it, write it; then the next. The data may be larger than memory."""

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
from bundler.stages.prepare_data.spec import Options
from bundler.stages.prepare_data.splitting import wanted_positions
from bundler.stages.prepare_data.survey import Survey, held_out_digests

_LEAST_EVERY = 2
_MEDIA = "mend or remove what is named above: nothing is left out in silence; docs/preprocessing.md says what is taken"
_HINTS = {
    "images": _MEDIA,
    "audio": _MEDIA,
    "text": _MEDIA,
    "python": "it gives mappings from input name to array; `bundler inspect MODEL` shows what the model takes",
}


@dataclass(slots=True, kw_only=True)
class _Written:
    """What has been done so far."""

    survey: Survey
    fitting: Fitting
    entries: list[dict[str, Any]]
    seen: int = 0
    dropped: int = 0


def run(request: StageRequest, report: Report) -> StageResult:
    """The prepared set. Raises `UsageError` for data that cannot be read, do not fit, or leave nothing to use."""
    options = decode(Options, dict(request.options))
    if options.part != "all" and options.every < _LEAST_EVERY:
        raise UsageError(f"one of every {options.every} samples cannot be held out", hint="hold out one of 2 or more")
    structure = read_structure(request.input("model"))
    signature = fix_signature(model_signature(structure), Fixing(dimensions=options.dimensions, shapes=options.shapes))
    data = open_data(request, structure, signature, options)
    del structure
    written = _write(data, signature, request, options, report)
    _check(written, options)
    write_index(request.output, written.entries, seed=data.seed, unstable=())
    return StageResult(
        facts=_facts(data, written, options),
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
    """Samples until there is something wrong; from then on what else is wrong is looked for."""
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
        raise UsageError(
            f"nothing is left to calibrate with: {what} among those that judge the accuracy",
            hint="give data for calibration that is not also given by --samples, or more of it",
        )
    if not options.allow_constant:
        written.survey.check_range()


def _facts(data: DataSet, written: _Written, options: Options) -> dict[str, Any]:
    return {
        "kind": options.kind,
        "part": options.part,
        "samples": len(written.entries),
        "total": data.total,
        "dropped": written.dropped,
        "synthetic": data.seed is not None,
        "dimensions": dict(data.sizes),
        "preprocessing": encode(data.record) if data.record else None,
        **written.survey.facts(),
    }


def _notes(written: _Written) -> tuple[Note, ...]:
    if not written.dropped:
        return ()
    text = f"{written.dropped} of {written.seen} samples are left out: they are equal to held-out ones"
    return (Note(text=text),)
