"""Open the data by its kind. A kind's libraries are imported on demand: each environment has its own."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from onnx import ModelProto

from bundler.model.errors import UsageError
from bundler.model.free_dimensions import find_ranges
from bundler.model.signature import Signature
from bundler.model.stage import Note, StageRequest
from bundler.onnxkit.index_bounds import index_bounds
from bundler.onnxkit.sample_files import open_samples
from bundler.onnxkit.value_files import Value
from bundler.stages.prepare_data.dataset import DataSet, Samples, UnreadableError, Wanted, taker
from bundler.stages.prepare_data.spec import Options


def open_data(request: StageRequest, structure: ModelProto, signature: Signature, options: Options) -> DataSet:
    """The data, of which only names are read so far. Raises `UsageError`."""
    match options.kind:
        case "samples":
            return _open_samples(request.input("data"), signature)
        case "synthetic":
            return _open_synthetic(request.input("model"), structure, signature, options)
        case "images":
            from bundler.stages.prepare_data.images import open_images  # noqa: PLC0415 - Pillow

            return open_images(request.input("data"), signature, options)
        case "audio":
            from bundler.stages.prepare_data.audio import open_audio  # noqa: PLC0415 - as the others

            return open_audio(request.input("data"), signature, options)
        case "text":
            from bundler.stages.prepare_data.texts import open_texts  # noqa: PLC0415 - tokenizers

            bounds = index_bounds(structure, tuple(port.name for port in signature.inputs))
            return open_texts(request.input("data"), request.input("tokenizer"), signature, options, bounds)
        case "python":
            from bundler.stages.prepare_data.calls import open_calls  # noqa: PLC0415 - as the others

            return open_calls(request.inputs.get("data"), options.entry, signature)


def _open_samples(path: Path, signature: Signature) -> DataSet:
    found = open_samples(path, signature)

    def load(position: int) -> Mapping[str, Value]:
        try:
            return found.read(position)
        except UsageError as error:
            raise UnreadableError("; ".join((error.message, *error.details))) from error

    def take(wanted: Wanted) -> Samples:
        with contextlib.closing(found):
            yield from taker(found.names, load)(wanted)

    return DataSet(total=len(found.names), take=take)


def _open_synthetic(path: Path, structure: ModelProto, signature: Signature, options: Options) -> DataSet:
    """Seeded inputs of sizes that the model runs on, like those of a golden set without samples."""
    from bundler.onnxkit.running import count_lanes  # noqa: PLC0415 - ONNX Runtime
    from bundler.onnxkit.seeded_sets import SeededModel, make_seeded_set  # noqa: PLC0415
    from bundler.onnxkit.sessions import REFERENCE, open_session  # noqa: PLC0415

    session, lanes = open_session(path, REFERENCE), count_lanes(REFERENCE, path)
    ranges = find_ranges(signature, options.ranges)
    model = SeededModel(session=session, structure=structure, signature=signature, lanes=lanes, ranges=ranges)
    found = make_seeded_set(model, options.seed, options.count, lambda _share, _text: None, least=options.count)
    text = "the data are synthetic (seeded inputs): do not ship a model that was calibrated with them"
    return DataSet(
        total=len(found.samples),
        take=taker([sample.name for sample in found.samples], lambda index: found.samples[index].inputs()),
        notes=(Note(text=text, level="warning"),),
        seed=options.seed,
        sizes=found.sizes,
    )
