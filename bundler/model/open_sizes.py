"""What to give on the command line, so that no size of a model's inputs stays open."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from bundler.model.fixing import Fixing
from bundler.model.free_dimensions import Key, Sizes, assign_sizes, dimension_key, free_dimensions, unnamed_sizes
from bundler.model.shapes import write_shape
from bundler.model.signature import Port, Signature

YOUR_SIZES = "(put the sizes that you need in their places)"
"""Follows an example: which sizes a model is used with, only its user knows."""

LEAST = 1
"""What a size gets in an example, of which nothing can be said: that of an input with a default."""


def suggest_shapes(signature: Signature) -> tuple[str, ...]:
    """Words that fix the sizes without a name alone."""
    words = suggest_options(signature)
    return tuple(word for pair in zip(words[::2], words[1::2], strict=True) if pair[0] == "--shape" for word in pair)


def suggest_options(signature: Signature, picture: Sequence[int] = ()) -> tuple[str, ...]:
    """Words to add to a command: `--shape` for inputs with unnamed sizes, `--dim` for the names that no such input has.
    The sizes are those that seeded inputs are tried with first; `picture` is the height and the width of declared ones.
    """
    sizes = {**assign_sizes(signature, Sizes(), {}), **_sizes_of_picture(signature, picture)}
    places = unnamed_sizes(signature)
    shaped = [
        port for port in signature.inputs if port.type.kind == "tensor" and any(name == port.name for name, _ in places)
    ]
    told = {size for port in shaped for size in port.type.shape or () if isinstance(size, str)}
    shapes = [word for port in shaped for word in ("--shape", suggest_shape(port, sizes))]
    names = [name for name in signature.symbols if name not in told]
    named = [word for name in names for word in ("--dim", f"{name}={sizes.get(name, LEAST)}")]
    return (*shapes, *named)


def _sizes_of_picture(signature: Signature, picture: Sequence[int]) -> dict[Key, int]:
    """Height and width, for the one input that has just two open axes of places."""
    spatial = [item for item in free_dimensions(signature) if item.role == "space"]
    if len(spatial) != len(picture) or len({item.port for item in spatial}) != 1:
        return {}
    return {item.key: size for item, size in zip(spatial, picture, strict=True)}


def suggest_fixing(signature: Signature) -> Fixing:
    """The sizes of the suggestion."""
    sizes = assign_sizes(signature, Sizes(), {})
    places = unnamed_sizes(signature)
    return Fixing(
        dimensions={name: sizes.get(name, LEAST) for name in signature.symbols},
        shapes={
            port.name: tuple(
                sizes.get((port.name, axis), LEAST) if (port.name, axis) in places else None
                for axis in range(len(port.type.shape))
            )
            for port in signature.inputs
            if port.type.kind == "tensor" and port.type.shape is not None and None in port.type.shape
        },
    )


def tell_gain(taken: int, total: int, options: Sequence[str]) -> str:
    """What a provider takes of a model with fixed sizes, and how to fix them."""
    return (
        f"with fixed sizes it is likely to take {taken} of {total} nodes, "
        f"for example with {show_options(options)} {YOUR_SIZES}"
    )


def show_options(options: Sequence[str]) -> str:
    """The options as a shell takes them, or what kind of option to give where no terminal could show them."""
    words = shlex.join(options)
    return words if words and words.isprintable() else "--shape INPUT=SIZES"


def suggest_shape(port: Port, sizes: Mapping[Key, int]) -> str:
    """`x=1,3,64,64`."""
    return f"{port.name}={write_shape(_sizes_of(port, sizes))}"


def _sizes_of(port: Port, sizes: Mapping[Key, int]) -> Iterator[int]:
    for axis, size in enumerate(port.type.shape or ()):
        yield size if isinstance(size, int) else sizes.get(dimension_key(port.name, axis, size), LEAST)


def explain_command(
    signature: Signature, command: Sequence[str], picture: Sequence[int] = (), *, project: str = ""
) -> str:
    """`, for example bundler build … --shape x=1,3,64,64`, or what to do where no command can be told. Where a
    `project` file asks (its name), the lines to write there.
    """
    words = suggest_options(signature, picture)
    if project:
        lines = " and ".join(_write_keys(words)) or "shapes = { INPUT = [SIZES] }"
        return f" in {project}, in the table of the model, for example {lines} {YOUR_SIZES}"
    if not words:
        return " with --shape INPUT=SIZES, one number for each axis"
    if not all(word.isprintable() for word in (*command, *words)):
        return " with --shape INPUT=SIZES or --dim NAME=SIZE"
    return f", for example {shlex.join((*_leave_out(command, words), *words))} {YOUR_SIZES}"


def _write_keys(words: Sequence[str]) -> Iterator[str]:
    """The options as keys of a project file: `shapes = { "x" = [1, 3, 64, 64] }`."""
    pairs = [(option, *word.rpartition("=")[::2]) for option, word in zip(words[::2], words[1::2], strict=True)]
    if not all(word.isprintable() for word in words):
        return
    shapes = ", ".join(
        f"{json.dumps(name)} = [{size.replace(',', ', ')}]" for option, name, size in pairs if option == "--shape"
    )
    names = ", ".join(f"{json.dumps(name)} = {size}" for option, name, size in pairs if option == "--dim")
    yield from (f"{key} = {{ {text} }}" for key, text in (("shapes", shapes), ("dimensions", names)) if text)


def _leave_out(command: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    """`command` without the shapes of inputs that have one in `words`."""
    told = {word.rpartition("=")[0] for option, word in pairwise(words) if option == "--shape"}
    skipped = False
    for option, word in pairwise((*command, "")):
        if skipped:
            skipped = False
        elif option == "--shape" and word.rpartition("=")[0] in told:
            skipped = True
        else:
            yield option
