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
from bundler.model.signature import Signature
from bundler.model.state import StateLink
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
    """The components of a bundle, which were all given the same dimensions, shapes and state, each with those of its
    model. A project file says of each component what it has.

    Raises `UsageError` for a shape of an input, a dimension or a state that no component has; a shape of an input that
    several have must say which is meant, a dimension is fixed and a state linked in each that has it.
    """
    first = next(iter(parts.values()))
    if len(parts) == 1 or first.project or not (first.shapes or first.dimensions or first.state):
        return dict(parts)
    if any(_list_given(part) != _list_given(first) for part in parts.values()):
        return dict(parts)
    signatures = {
        name: open_model(name_after_file(part, several=True), target, workspace, listener).facts.signature
        for name, part in parts.items()
    }
    inputs = {name: [port.name for port in signature.inputs] for name, signature in signatures.items()}
    owners = choose_owners(first.shapes, inputs) if first.shapes else {}
    links = choose_links(first.state, signatures)
    _require_dimensions(first.dimensions, signatures)
    return {
        name: replace(
            part,
            shapes={
                key if key in inputs[name] else split_qualified(key, name): shape
                for key, shape in first.shapes.items()
                if owners[key] == name
            },
            dimensions={key: size for key, size in first.dimensions.items() if key in signatures[name].symbols},
            state=links[name],
        )
        for name, part in parts.items()
    }


def _list_given(part: BuildRequest) -> tuple[object, ...]:
    return part.shapes, part.dimensions, part.state


def _require_dimensions(dimensions: Iterable[str], signatures: Mapping[str, Signature]) -> None:
    unknown = [name for name in dimensions if not any(name in found.symbols for found in signatures.values())]
    if unknown:
        known = (f"{name} has: {', '.join(map(shown_name, found.symbols))}" for name, found in signatures.items())
        raise UsageError(
            f"no component has a dynamic dimension {shown_name(unknown[0])!r}",
            details=tuple(known),
            hint="`bundler inspect MODEL` lists the dimensions of a model",
        )


def choose_links(links: Sequence[StateLink], signatures: Mapping[str, Signature]) -> dict[str, tuple[StateLink, ...]]:
    """The links of each component: those whose input and output it has, and those that name it (`detect:h0=hn`).
    Raises `UsageError` for a link that no component has.
    """
    chosen: dict[str, list[StateLink]] = {name: [] for name in signatures}
    lost: list[StateLink] = []
    for link in links:
        plain = {name: link for name, signature in signatures.items() if _has_link(signature, link)}
        found = plain or {
            name: own
            for name, signature in signatures.items()
            if _has_link(signature, own := replace(link, input=split_qualified(link.input, name)))
        }
        for name, own in found.items():
            chosen[name].append(own)
        lost += () if found else (link,)
    if lost:
        raise UsageError(
            f"no component has the state {shown_name(lost[0].input)!r} with the output {shown_name(lost[0].output)!r}",
            details=tuple(_list_ports(name, signature) for name, signature in signatures.items()),
            hint="`bundler inspect MODEL` prints likely states; NAME:INPUT=OUTPUT says which component is meant",
        )
    return {name: tuple(own) for name, own in chosen.items()}


def _has_link(signature: Signature, link: StateLink) -> bool:
    inputs, outputs = ({port.name for port in ports} for ports in (signature.inputs, signature.outputs))
    return link.input in inputs and link.output in outputs


def _list_ports(name: str, signature: Signature) -> str:
    inputs, outputs = (
        ", ".join(shown_name(port.name) for port in ports) for ports in (signature.inputs, signature.outputs)
    )
    return f"{name} has the inputs {inputs[:200]} and the outputs {outputs[:200]}"


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
            problems.append(f"{', '.join(having)} have an input {shown_name(key)!r}: name one of them")
            examples += [f"--shape {name}:{key}={write_shape(shape)}" for name in having]
        else:
            problems.append(f"no model has an input {shown_name(key)!r}{_suggest(key, inputs)}")
    if problems:
        inputs_by_model = (f"{name} has: {', '.join(map(shown_name, ports))}" for name, ports in inputs.items())
        raise UsageError(
            "each shape must belong to exactly one model",
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
