"""Fixes sizes in a signature: by their names in the model, or by their positions in its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bundler.model.codec import encode
from bundler.model.requirements import FixedSize
from bundler.model.shapes import FixedShape, SizeRange
from bundler.model.signature import Dimension, Port, Signature, ValueType


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixing:
    """The sizes that a stage fixes: `dimensions` by name; `shapes` by input, with None for each size that has a name or
    stays open. `ranges` bound open sizes, by their names or by their positions (`x[2]`).
    """

    dimensions: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, FixedShape] = field(default_factory=dict)
    ranges: Mapping[str, SizeRange] = field(default_factory=dict)

    def options(self) -> dict[str, object]:
        """The options of a stage; a model whose sizes all have names gets only `dimensions`."""
        shapes = {"shapes": {name: list(shape) for name, shape in self.shapes.items()}} if self.shapes else {}
        ranges = {"ranges": encode(self.ranges)} if self.ranges else {}
        return {"dimensions": dict(self.dimensions), **shapes, **ranges}


def split_sizes(signature: Signature, sizes: Sequence[FixedSize]) -> Fixing:
    """`sizes` by name where the model of this signature names them, otherwise by position."""
    ports = {port.name: port for port in signature.inputs}
    named: dict[str, int] = {}
    placed: dict[tuple[str, int], int] = {}
    for size in sizes:
        for name, axes in size.axes.items():
            for axis in axes:
                if _size_at(ports[name], axis) == size.name:
                    named[size.name] = size.size
                else:
                    placed[name, axis] = size.size
    return Fixing(dimensions=named, shapes=_by_input(ports, placed))


def _size_at(port: Port, axis: int) -> Dimension:
    return None if port.type.shape is None else port.type.shape[axis]


def _by_input(ports: Mapping[str, Port], placed: Mapping[tuple[str, int], int]) -> dict[str, FixedShape]:
    shapes: dict[str, FixedShape] = {}
    for name in dict.fromkeys(name for name, _ in placed):
        known = ports[name].type.shape
        rank = len(known) if known is not None else 1 + max(axis for port, axis in placed if port == name)
        shapes[name] = tuple(placed.get((name, axis)) for axis in range(rank))
    return shapes


def fix_signature(signature: Signature, sizes: Sequence[FixedSize]) -> Signature:
    """`signature` with these sizes in its inputs, and in outputs where they are named."""
    fixing = split_sizes(signature, sizes)
    named = Fixing(dimensions=fixing.dimensions)
    return Signature(
        inputs=fix_inputs(signature, fixing).inputs,
        outputs=tuple(_fix_port(port, named) for port in signature.outputs),
    )


def fix_inputs(signature: Signature, fixing: Fixing) -> Signature:
    """`signature` with these sizes in its inputs."""
    return Signature(inputs=tuple(_fix_port(port, fixing) for port in signature.inputs), outputs=signature.outputs)


def adopt_outputs(signature: Signature, inferred: Signature) -> Signature:
    """`signature` with output sizes from `inferred` where they are known."""
    known = {port.name: port.type.shape for port in inferred.outputs}
    return Signature(
        inputs=signature.inputs,
        outputs=tuple(_adopt_port(port, known.get(port.name)) for port in signature.outputs),
    )


def find_contradicted(
    signature: Signature, samples: Sequence[Mapping[str, tuple[int, ...]]]
) -> dict[str, tuple[Dimension, ...] | None]:
    """Shapes of ports, by name, whose declared ones are not those that the model took or gave: without the sizes that
    differ, or None where an output's rank does. Converters declare `int64[1]` for a label of each row, and give one
    name to sizes of inputs that need not be equal. `samples` have the shapes of inputs and outputs, by name.
    """
    bound = [_bind_symbols(signature, shapes) for shapes in samples]
    unequal = {name for sizes in bound for name, given in sizes.items() if len(given) > 1}
    found: dict[str, tuple[Dimension, ...] | None] = {}
    for port in signature.inputs:
        if unequal.intersection(port.type.shape or ()):
            found[port.name] = tuple(None if size in unequal else size for size in port.type.shape or ())
    for port in signature.outputs:
        declared = port.type.shape
        pairs = zip(samples, bound, strict=True)
        given = [(shapes[port.name], sizes) for shapes, sizes in pairs if port.name in shapes]
        if port.type.kind != "tensor" or declared is None:
            continue
        if any(len(shape) != len(declared) for shape, _ in given):
            found[port.name] = None
            continue
        true = tuple(
            None if size in unequal or not all(_allows(size, shape[axis], sizes) for shape, sizes in given) else size
            for axis, size in enumerate(declared)
        )
        if true != declared:
            found[port.name] = true
    return found


def _bind_symbols(signature: Signature, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, set[int]]:
    """The sizes that the inputs of a sample give to each named dimension."""
    bound: dict[str, set[int]] = {}
    for port in signature.inputs:
        for name, size in zip(port.type.shape or (), shapes.get(port.name, ()), strict=False):
            if isinstance(name, str):
                bound.setdefault(name, set()).add(size)
    return bound


def _allows(declared: Dimension, given: int, bound: Mapping[str, set[int]]) -> bool:
    if isinstance(declared, str):
        return given in bound.get(declared, {given})
    return declared is None or given == declared


def correct_shapes(signature: Signature, shapes: Mapping[str, tuple[Dimension, ...] | None]) -> Signature:
    """`signature` with these shapes of outputs, by name, and without the names of sizes that these of inputs lack."""
    return Signature(
        inputs=tuple(_drop_names(port, shapes.get(port.name)) for port in signature.inputs),
        outputs=tuple(
            replace(port, type=replace(port.type, shape=shapes[port.name])) if port.name in shapes else port
            for port in signature.outputs
        ),
    )


def _drop_names(port: Port, true: tuple[Dimension, ...] | None) -> Port:
    """An input keeps the sizes that are fixed in it."""
    if true is None or port.type.shape is None:
        return port
    pairs = zip(port.type.shape, true, strict=True)
    shape = tuple(None if isinstance(size, str) and known is None else size for size, known in pairs)
    return replace(port, type=replace(port.type, shape=shape))


def _adopt_port(port: Port, known: tuple[Dimension, ...] | None) -> Port:
    shape = port.type.shape
    if known is None or (shape is not None and len(shape) != len(known)):
        return port
    sizes = tuple(
        have if isinstance(have, int) or not isinstance(found, int) else found
        for have, found in zip(shape or (None,) * len(known), known, strict=True)
    )
    return replace(port, type=replace(port.type, shape=sizes))


def _fix_port(port: Port, fixing: Fixing) -> Port:
    kind = _fix_type(port.type, fixing.dimensions)
    given = fixing.shapes.get(port.name)
    if given is not None and kind.kind == "tensor":
        shape = kind.shape if kind.shape is not None else (None,) * len(given)
        kind = replace(
            kind, shape=tuple(have if have is not None else size for have, size in zip(shape, given, strict=True))
        )
    return replace(port, type=kind)


def _fix_type(kind: ValueType, named: Mapping[str, int]) -> ValueType:
    shape = kind.shape
    if shape is not None:
        shape = tuple(named.get(size, size) if isinstance(size, str) else size for size in shape)
    element = _fix_type(kind.element, named) if kind.element else None
    return replace(kind, shape=shape, element=element)
