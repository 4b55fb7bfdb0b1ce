"""Which of several models a given shape is for: the one that has the input, or the one that it names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bundler.model.errors import BundlerError, UsageError
from bundler.model.events import Listener
from bundler.model.free_dimensions import shown_name
from bundler.model.shapes import Shape, split_qualified, write_shape
from bundler.pipeline.opening import name_after_file, open_model
from bundler.pipeline.requests import BuildRequest, bundle_name
from bundler.pipeline.workspace import Workspace

Inputs = Mapping[str, Sequence[str]]
"""Names of inputs by the name of the bundle."""


def assign_shapes(requests: Sequence[BuildRequest], workspace: Workspace, listener: Listener) -> Sequence[BuildRequest]:
    """`requests`, which were all given the same shapes, each with those of its own model.

    Raises `UsageError` for a shape of an input that no model has, or that several have.
    """
    shapes = requests[0].shapes
    models = {request.model: request for request in requests}
    if not shapes or len(models) == 1:
        return requests
    found: dict[Path, Sequence[str]] = {}
    for path, request in models.items():
        try:
            facts = open_model(request, request.target, workspace, listener).facts
        except BundlerError:  # its own build says so
            return requests
        found[path] = [port.name for port in facts.signature.inputs]
    names = {path: bundle_name(request) for path, request in models.items()}
    owners = choose_owners(shapes, {names[path]: inputs for path, inputs in found.items()})
    return tuple(
        replace(request, shapes={key: shapes[key] for key, owner in owners.items() if owner == names[request.model]})
        for request in requests
    )


def assign_sizes(
    parts: Mapping[str, BuildRequest], target: str, workspace: Workspace, listener: Listener
) -> dict[str, BuildRequest]:
    """The components of a bundle, which were all given the same dimensions and shapes, each with those of its model.

    Raises `UsageError` for a shape of an input, or a dimension, that no component has; a shape of an input that several
    have must say which is meant, a dimension is fixed in each that has it.
    """
    first = next(iter(parts.values()))
    same = all(part.shapes == first.shapes and part.dimensions == first.dimensions for part in parts.values())
    if len(parts) == 1 or not same or not (first.shapes or first.dimensions):
        return dict(parts)
    signatures = {
        name: open_model(name_after_file(part, several=True), target, workspace, listener).facts.signature
        for name, part in parts.items()
    }
    inputs = {name: [port.name for port in signature.inputs] for name, signature in signatures.items()}
    owners = choose_owners(first.shapes, inputs) if first.shapes else {}
    unknown = [name for name in first.dimensions if not any(name in found.symbols for found in signatures.values())]
    if unknown:
        known = (f"{name} has: {', '.join(map(shown_name, found.symbols))}" for name, found in signatures.items())
        raise UsageError(
            f"no component has a dynamic dimension {shown_name(unknown[0])!r}",
            details=tuple(known),
            hint="`bundler inspect MODEL` lists the dimensions of a model",
        )
    return {
        name: replace(
            part,
            shapes={
                key if key in inputs[name] else split_qualified(key, name): shape
                for key, shape in first.shapes.items()
                if owners[key] == name
            },
            dimensions={key: size for key, size in first.dimensions.items() if key in signatures[name].symbols},
        )
        for name, part in parts.items()
    }


def choose_owners(shapes: Mapping[str, Shape], inputs: Inputs) -> dict[str, str]:
    """The bundle that each shape is for. Raises `UsageError`."""
    owners: dict[str, str] = {}
    problems: list[str] = []
    examples: list[str] = []
    for key, shape in shapes.items():
        having = _find_owners(key, inputs)
        if len(having) == 1:
            owners[key] = having[0]
        elif having:
            problems.append(f"{', '.join(having)} have an input {shown_name(key)!r}: say which is meant")
            examples += [f"--shape {name}:{key}={write_shape(shape)}" for name in having]
        else:
            problems.append(f"no model has an input {shown_name(key)!r}{_suggest(key, inputs)}")
    if problems:
        inputs_by_model = (f"{name} has: {', '.join(map(shown_name, ports))}" for name, ports in inputs.items())
        raise UsageError(
            "the given shapes are not for one model each",
            details=(*problems, *inputs_by_model),
            hint=" ".join(examples)
            if examples and all(map(str.isprintable, examples))
            else "MODEL:INPUT=SIZES says which model is meant",
        )
    return owners


def _find_owners(key: str, inputs: Inputs) -> list[str]:
    plain = [name for name, ports in inputs.items() if key in ports]
    return plain or [name for name, ports in inputs.items() if split_qualified(key, name) in ports]


def _suggest(key: str, inputs: Inputs) -> str:
    known = list(_known(inputs))
    close = difflib.get_close_matches(key, known, 1)
    return f" (did you mean {shown_name(close[0])!r}?)" if close else ""


def _known(inputs: Inputs) -> Iterable[str]:
    for name, ports in inputs.items():
        yield from ports
        yield from (f"{name}:{port}" for port in ports)
