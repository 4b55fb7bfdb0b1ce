"""How the field of a request is given on a command line: declared once, beside the field.

    seed: Annotated[int, Option("--seed", least=0, help="Seed of synthetic inputs.")] = 0

The command line makes its option of it, and a hint the words that give the field its value again.
"""

from __future__ import annotations

import re
import shlex
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Final

from bundler.model.errors import UsageError
from bundler.model.shapes import MAX_SIZE, Shape, parse_shape, write_shape


@dataclass(frozen=True, slots=True)
class Option:
    """The option that sets a field: `flag`, perhaps a `short` one, and the `help` that people read.

    `default` is what they read of it where the value does not say it, `variable` of the environment gives it too, and a
    number lies between `least` and `most`. One that may be given several times has `read`, which makes the field's
    value of all texts (it raises `UsageError`), and `show`, which gives them back. `of_one_model` marks what a project
    file says itself, so that without a model nothing is left for the command line to say. The option of a field that is
    true unless it is given (`--no-prove`) makes it false.
    """

    flag: str
    short: str = ""
    _: KW_ONLY
    help: str
    metavar: str | None = None
    default: str | None = None
    variable: str | None = None
    least: int | None = None
    most: int | None = None
    read: Callable[[Sequence[str]], Any] | None = None
    show: Callable[[Any], Iterable[str]] = lambda value: (str(value),)
    of_one_model: bool = False

    def write(self, value: Any) -> Iterator[str]:
        """The words that give the field `value`, which is not its default."""
        if isinstance(value, bool):
            yield self.flag
            return
        for text in self.show(value):
            yield from (self.flag, text)


def find_options(kind: type) -> dict[str, Option]:
    """The options of a dataclass, by the names of its fields and in their order."""
    hints = typing.get_type_hints(kind, include_extras=True)
    found = {name: option_of(hint) for name, hint in hints.items()}
    return {name: option for name, option in found.items() if option is not None}


def option_of(hint: Any) -> Option | None:
    """The option in an annotation, None where it has none."""
    return next((item for item in getattr(hint, "__metadata__", ()) if isinstance(item, Option)), None)


def show_pairs(value: Mapping[str, object]) -> Iterator[str]:
    """`name=value` of each item."""
    yield from (f"{name}={item}" for name, item in value.items())


def show_shapes(shapes: Mapping[str, Shape]) -> Iterator[str]:
    """`input=sizes` of each shape."""
    yield from (f"{name}={write_shape(shape)}" for name, shape in shapes.items())


def parse_dimensions(pairs: Sequence[str]) -> dict[str, int]:
    """`name=n` pairs as a mapping. Raises `UsageError` for the first that is none."""
    dimensions: dict[str, int] = {}
    for pair in pairs:
        name, _, size = pair.rpartition("=")
        if not name or not size.isdecimal():
            raise UsageError(f"--dim {pair}: expected NAME=N", hint="for example --dim batch=1")
        if not (size := size.lstrip("0")):
            raise UsageError(f"--dim {pair}: the size must be at least 1", hint=f"for example --dim {name}=1")
        if len(size) > _DIGITS or int(size) > MAX_SIZE:
            raise UsageError(f"--dim {pair}: the size must be at most {MAX_SIZE}", hint=f"for example --dim {name}=1")
        if dimensions.setdefault(name, int(size)) != int(size):
            raise UsageError(f"--dim {pair}: {name} is already {dimensions[name]}", hint="give each dimension once")
    return dimensions


def parse_shapes(pairs: Sequence[str]) -> dict[str, Shape]:
    """`input=sizes` pairs as a mapping. Raises `UsageError` for the first that is none."""
    shapes: dict[str, Shape] = {}
    for pair in pairs:
        name, equals, sizes = pair.rpartition("=")
        if not name or not equals:
            raise UsageError(f"--shape {pair}: expected INPUT=SIZES", hint=_SHAPE_EXAMPLE)
        try:
            shape = parse_shape(sizes)
        except ValueError as error:
            raise UsageError(f"--shape {pair}: {error}", hint=_SHAPE_EXAMPLE) from error
        if shapes.setdefault(name, shape) != shape:
            raise UsageError(
                f"--shape {pair}: {name} already has the shape {write_shape(shapes[name])}", hint="give each input once"
            )
    return shapes


def parse_pythons(versions: Sequence[str]) -> tuple[str, ...]:
    """Versions like `3.12`, each once and in order. Raises `UsageError` for the first that is none."""
    for version in versions:
        if not re.fullmatch(r"3\.[0-9]{1,2}", version):
            given = shlex.quote(version)
            raise UsageError(
                f"--python {given}: expected a Python version such as 3.12", hint="for example --python 3.12"
            )
    return tuple(sorted(set(versions), key=lambda version: int(version.partition(".")[2])))


_DIGITS: Final = len(str(MAX_SIZE))
_SHAPE_EXAMPLE = "for example --shape x=1,3,48,192, or --shape 'x=?,3,48,192' to leave the first size unchanged"

On = Annotated[
    str | None,
    Option(
        "--on",
        metavar="DEVICE",
        help="Where to run the bundle: local, qemu-aarch64, browser, or a device that a package provides "
        "(docs/devices.md).",
        default="the first that suits the target",
    ),
]
Overrides = Annotated[
    tuple[str, ...],
    Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the profile (accuracy.absolute=1e-3).",
        read=tuple,
        show=lambda overrides: overrides,
    ),
]
