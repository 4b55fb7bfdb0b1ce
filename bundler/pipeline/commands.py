"""A request as the command that asks for it, so that a hint can be run as printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from bundler.model.options import find_options
from bundler.pipeline.requests import BuildRequest


def repeat_command(request: BuildRequest, *, sandbox: bool = False) -> tuple[str, ...]:
    """`bundler build MODEL --target TARGET` with all that was given and is not the default, `--sandbox` among it."""
    model = str(request.model)
    # A path that starts with a hyphen would be read as an option.
    named = f"./{model}" if model.startswith("-") else model
    shut = ("--sandbox",) if sandbox else ()
    return ("bundler", "build", named, "--target", request.target, *_list_options(request), *shut)


def _list_options(request: BuildRequest) -> Iterator[str]:
    defaults = {field.name: field.default for field in fields(BuildRequest)}
    for name, option in find_options(BuildRequest).items():
        value = getattr(request, name)
        if value != defaults[name] and value is not None:
            yield from option.write(value)
