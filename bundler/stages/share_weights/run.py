"""Write models beside each other, with the tensors that they have in common in files of their own."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onnx import ModelProto, TensorProto

from bundler.model.codec import decode, encode
from bundler.model.errors import StageError
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.onnxkit.canonical.tensor_data import PROTOBUF_LIMIT, DataFile, DataFolders, embed_nested, place_tensor
from bundler.onnxkit.structure import external_names, iterate_nodes, read_structure
from bundler.stages.share_weights.checking import check_same, read_span
from bundler.stages.share_weights.spec import Facts, Options, SharedModel

Identity = tuple[int, tuple[int, ...], int, str]
"""A tensor's type, sizes, bytes and their digest."""


@dataclass(frozen=True, slots=True)
class _Model:
    """A model's structure, with its weights linked to their files. `weights` are the main graph's initializers of the
    threshold's size and more, `identities` those of them that may be equal to another model's, by position.
    """

    path: Path
    proto: ModelProto
    folders: DataFolders
    weights: tuple[TensorProto, ...]
    identities: dict[int, Identity] = field(default_factory=dict)


def run(request: StageRequest, report: Report) -> StageResult:
    """`<name>.onnx` for each model that shares tensors, and a data file for each set of models that share them. Writes
    nothing where no models have enough in common. Raises `StageError`, `ModelError`.
    """
    options = decode(Options, dict(request.options))
    report(0.0, "comparing weights")
    opened = {role: _open(path, options.threshold) for role, path in sorted(request.inputs.items())}
    models = {role: model for role, model in opened.items() if model is not None}
    _identify(models)
    owners = _find_shared(models, options.minimum)
    report(0.4, "writing")
    written = _write(request.output, models, owners, options)
    report(0.8, "checking")
    for role, shared in written.items():
        check_same(models[role].path, request.output / shared.entry)
    facts = Facts(models=written, saved=sum(item[2] * (len(roles) - 1) for item, roles in owners.items()))
    first = next(iter(written.values()), None)
    return StageResult(facts=encode(facts), entry=first.entry if first else None)


def _open(path: Path, threshold: int) -> _Model | None:
    """The model at `path`; None for one that must stay where it is: it refers to files that are no weights, as a
    compiled one does, or has other files beside it.
    """
    plain = read_structure(path)
    files = {path.name, *external_names(plain)}
    beside = {item.relative_to(path.parent).as_posix() for item in path.parent.rglob("*") if item.is_file()}
    if beside != files or any(node.op_type == "EPContext" for node in iterate_nodes(plain)):
        return None
    proto, folders = read_structure(path, link=True), DataFolders(path, path.parent)
    spans = ((tensor, read_span(tensor, folders)) for tensor in proto.graph.initializer)
    weights = tuple(tensor for tensor, span in spans if span is not None and span.length >= threshold)
    return _Model(path, proto, folders, weights)


def _identify(models: Mapping[str, _Model]) -> None:
    """Hash the tensors whose type, sizes and number of bytes another model has, too."""
    known = Counter(key for model in models.values() for key in {_outline(model, tensor) for tensor in model.weights})
    for model in models.values():
        for position, tensor in enumerate(model.weights):
            outline = _outline(model, tensor)
            span = read_span(tensor, model.folders)
            if known[outline] > 1 and span is not None:
                digest = hashlib.sha256()
                for chunk in span.chunks():
                    digest.update(chunk)
                model.identities[position] = (*outline, digest.hexdigest())


def _outline(model: _Model, tensor: TensorProto) -> tuple[int, tuple[int, ...], int]:
    span = read_span(tensor, model.folders)
    return tensor.data_type, tuple(tensor.dims), span.length if span else 0


def _find_shared(models: Mapping[str, _Model], minimum: int) -> dict[Identity, tuple[str, ...]]:
    """The roles that share each tensor, in the order in which the first of them has it."""
    found: dict[Identity, dict[str, None]] = {}
    for role, model in models.items():
        for identity in model.identities.values():
            found.setdefault(identity, {})[role] = None
    owners = {identity: tuple(roles) for identity, roles in found.items() if len(roles) > 1}
    weight = Counter[tuple[str, ...]]()
    for identity, roles in owners.items():
        weight[roles] += identity[2]
    return {identity: roles for identity, roles in owners.items() if weight[roles] >= minimum}


def _write(
    output: Path, models: Mapping[str, _Model], owners: Mapping[Identity, tuple[str, ...]], options: Options
) -> dict[str, SharedModel]:
    """Write the models that share something, one after another. Each lists only files that it reads."""
    groups = sorted(set(owners.values()))
    names = {roles: f"weights{f'-{n}' if len(groups) > 1 else ''}.data" for n, roles in enumerate(groups, 1)}
    sharing = [role for role in models if any(role in roles for roles in groups)]
    with contextlib.ExitStack() as stack:
        files = {
            roles: stack.enter_context(contextlib.closing(DataFile(output / name))) for roles, name in names.items()
        }
        return {
            role: _write_model(
                models[role], output / f"{options.names[role]}.onnx", _find_homes(models[role], owners, files), options
            )
            for role in sharing
        }


def _find_homes(
    model: _Model, owners: Mapping[Identity, tuple[str, ...]], files: Mapping[tuple[str, ...], DataFile]
) -> dict[int, DataFile]:
    """The file of each tensor that others have, too, by the tensor's `id`."""
    return {id(model.weights[at]): files[owners[key]] for at, key in model.identities.items() if key in owners}


def _write_model(model: _Model, target: Path, homes: Mapping[int, DataFile], options: Options) -> SharedModel:
    with contextlib.closing(DataFile(target.with_name(f"{target.name}.data"))) as own:
        for tensor in model.proto.graph.initializer:
            if tensor.data_location == TensorProto.EXTERNAL:  # small ones stay as they are
                place_tensor(tensor, model.folders, homes.get(id(tensor), own), options.threshold)
    embed_nested(model.proto, model.folders)
    if model.proto.ByteSize() > PROTOBUF_LIMIT:
        raise StageError("the model without its weights is larger than the 2 GB that one ONNX file can hold")
    target.write_bytes(model.proto.SerializeToString(deterministic=True))
    return SharedModel(entry=target.name, files=(target.name, *external_names(model.proto)))
