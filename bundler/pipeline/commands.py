"""A request as the command that asks for it, so that a hint can be run as it stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from bundler.model.shapes import write_shape
from bundler.pipeline.requests import BuildRequest

_OPTIONS = (
    *("output", "name", "version", "package_name", "samples", "calibration", "preprocessing", "format", "on"),
    *("seed", "golden"),
)
"""Fields of a request that are an option of the same name."""


def repeat_command(request: BuildRequest, *, sandbox: bool = False) -> tuple[str, ...]:
    """`bundler build MODEL --target TARGET` with all that was given and is not the default, `--sandbox` among it."""
    model = str(request.model)
    # A path that starts with a hyphen would be read as an option.
    named = f"./{model}" if model.startswith("-") else model
    shut = ("--sandbox",) if sandbox else ()
    return ("bundler", "build", named, "--target", request.target, *_list_options(request), *shut)


def _list_options(request: BuildRequest) -> Iterator[str]:
    defaults = {field.name: field.default for field in fields(BuildRequest)}
    for name in _OPTIONS:
        value = getattr(request, name)
        if value != defaults[name] and value is not None:
            yield from (f"--{name.replace('_', '-')}", str(value))
    for name, size in request.dimensions.items():
        yield from ("--dim", f"{name}={size}")
    for name, shape in request.shapes.items():
        yield from ("--shape", f"{name}={write_shape(shape)}")
    for override in request.overrides:
        yield from ("--set", override)
    if not request.prove:
        yield "--no-prove"
    if request.trust_target:
        yield "--trust-target"
