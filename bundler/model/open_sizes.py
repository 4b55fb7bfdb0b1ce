"""Suggests command-line options that fix all open sizes of a model's inputs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from bundler.model.fixing import Fixing
from bundler.model.free_dimensions import Key, Sizes, assign_sizes, dimension_key, free_dimensions, unnamed_sizes
from bundler.model.shapes import MAX_SIZE, write_shape
from bundler.model.signature import Port, Signature

YOUR_SIZES = "(replace the numbers by the sizes that you need)"
"""Follows an example, because only the user knows the sizes that the model is used with."""

LEAST = 1
"""The size in an example for an input with a default, about whose size nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks how to fix sizes: `command` is what the user ran, to be repeated, and `project` the name of the
    project file that asks in its place. `picture` is the height and the width that samples are prepared to, and
    `samples` the shapes of the first one by input, where they are known; a file of many has an axis before them.
    """

    command: Sequence[str] = ()
    project: str = ""
    picture: Sequence[int] = ()
    samples: Mapping[str, Sequence[int]] = field(default_factory=dict)


NOBODY = Asker()


def suggest_shapes(signature: Signature, asker: Asker = NOBODY) -> tuple[str, ...]:
    """The words that fix only the sizes without a name."""
    words = suggest_options(signature, asker)
    return tuple(word for pair in zip(words[::2], words[1::2], strict=True) if pair[0] == "--shape" for word in pair)


def suggest_options(signature: Signature, asker: Asker = NOBODY) -> tuple[str, ...]:
    """Words to add to a command: `--shape` for inputs with unnamed sizes, `--dim` for the names that no such input has.
    The sizes are those of the user's data, else those that seeded inputs are tried with first.
    """
    sizes = {
        **assign_sizes(signature, Sizes(), {}),
        **_sizes_of_picture(signature, asker.picture),
        **dict(_sizes_of_samples(signature, asker.samples)),
    }
    places = unnamed_sizes(signature)
    shaped = [
        port for port in signature.inputs if port.type.kind == "tensor" and any(name == port.name for name, _ in places)
    ]
    covered = {size for port in shaped for size in port.type.shape or () if isinstance(size, str)}
    shapes = [word for port in shaped for word in ("--shape", suggest_shape(port, sizes))]
    names = [name for name in signature.symbols if name not in covered]
    named = [word for name in names for word in ("--dim", f"{name}={sizes.get(name, LEAST)}")]
    return (*shapes, *named)


def _sizes_of_picture(signature: Signature, picture: Sequence[int]) -> dict[Key, int]:
    """Height and width, for the one input that has just two open axes of places."""
    spatial = [item for item in free_dimensions(signature) if item.role == "space"]
    if len(spatial) != len(picture) or len({item.port for item in spatial}) != 1:
        return {}
    return {item.key: size for item, size in zip(spatial, picture, strict=True)}


def _sizes_of_samples(signature: Signature, samples: Mapping[str, Sequence[int]]) -> Iterator[tuple[Key, int]]:
    for port in signature.inputs:
        known, given = port.type.shape or (), samples.get(port.name, ())
        fitting = given[1:] if len(given) == len(known) + 1 else given if len(given) == len(known) else ()
        for axis, (size, found) in enumerate(zip(known, fitting, strict=False)):
            if not isinstance(size, int) and 0 < found <= MAX_SIZE:
                yield dimension_key(port.name, axis, size), found


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


def show_options(options: Sequence[str], project: str = "") -> str:
    """`--shape x=1,3,64,64`, or the lines to write into a `project` file."""
    if project:
        lines = " and ".join(_write_keys(options)) or "shapes = { INPUT = [SIZES] }"
        return f"{lines} in {project}, in the table of the model"
    words = shlex.join(options)
    return words if words and words.isprintable() else "--shape INPUT=SIZES"


def describe_example(options: Sequence[str], project: str = "") -> str:
    """`for example with --shape x=1,3,64,64`, or with lines of a `project` file."""
    return f"for example with {show_options(options, project)} {YOUR_SIZES}"


def describe_gain(assigned: int, total: int) -> str:
    """The estimated assignment for a model with fixed sizes."""
    return f"with fixed sizes {assigned} of {total} nodes are likely to be assigned to it"


def suggest_shape(port: Port, sizes: Mapping[Key, int]) -> str:
    """`x=1,3,64,64`."""
    return f"{port.name}={write_shape(_sizes_of(port, sizes))}"


def _sizes_of(port: Port, sizes: Mapping[Key, int]) -> Iterator[int]:
    for axis, size in enumerate(port.type.shape or ()):
        yield size if isinstance(size, int) else sizes.get(dimension_key(port.name, axis, size), LEAST)


def explain_command(signature: Signature, asker: Asker) -> str:
    """`, for example bundler build … --shape x=1,3,64,64`, or what to do where no command can be shown. Where a project
    file asks, the lines to write there.
    """
    words = suggest_options(signature, asker)
    if asker.project:
        return f", {describe_example(words, asker.project)}"
    if not words:
        return " with --shape INPUT=SIZES, one number for each axis"
    if not all(word.isprintable() for word in (*asker.command, *words)):
        return " with --shape INPUT=SIZES or --dim NAME=SIZE"
    return f", for example {shlex.join((*_leave_out(asker.command, words), *words))} {YOUR_SIZES}"


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
    """`command` without the shapes and dimensions that are in `words`."""
    replaced = {(option, word.rpartition("=")[0]) for option, word in pairwise(words)}
    skipped = False
    for option, word in pairwise((*command, "")):
        if skipped:
            skipped = False
        elif option in ("--shape", "--dim") and (option, word.rpartition("=")[0]) in replaced:
            skipped = True
        else:
            yield option
