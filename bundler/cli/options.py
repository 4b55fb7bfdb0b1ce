"""Options of the command line: those of request fields, turned into typer parameters, and those of the CLI alone.

A command's function takes values of the API:

    def run(*, given: Annotated[Given, OptionsOf(BuildRequest)], settings: Settings, json: Json = False) -> None: ...

`take_options` gives it a parameter for each `Option` of those (`bundler.model.options`): a new field with its option
needs no line here, nor in a command.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bundler.api import Settings, list_target_names
from bundler.model.options import Option, find_options, option_of

Given = Mapping[str, Any]
"""Fields of a request, by name, that are given on the command line; others are absent."""


@dataclass(frozen=True, slots=True)
class OptionsOf:
    """Replaces one parameter by the options of a dataclass: all fields or those in `only`, except those in `without`.

    A parameter of type `Given` receives the given fields, any other a value of the dataclass.
    """

    kind: type
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, Option]:
        """The options by the names of their fields."""
        found = find_options(self.kind).items()
        return {name: option for name, option in found if name in (self.only or (name,)) and name not in self.without}


def complete_target(incomplete: str) -> list[str]:
    """The ids of targets that begin so, for the shell."""
    return [name for name in list_target_names() if name.startswith(incomplete)]


def complete_device(incomplete: str) -> list[str]:
    """The names of devices that begin so, for the shell."""
    from bundler.devices.registry import device_names  # noqa: PLC0415 - only the shell asks

    return [name for name in device_names() if name.startswith(incomplete)]


COMPLETIONS: Mapping[str, Callable[[str], list[str]]] = {"--on": complete_device}
"""What completes the value of a request's option, by its flag."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document; everything else goes to standard error.")]
Progress = Annotated[
    str, typer.Option("--progress", metavar="STYLE", help="auto, rich, plain, json (one event a line) or none.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print one line for each bundle; errors and warnings of safety remain.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with code 8 unless every variant is verified.")]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="NAME",
        help="Select bundles, models or targets of the project file by name or glob; may be repeated.",
    ),
]
CacheOnly = Annotated[Settings, OptionsOf(Settings, only=("cache",))]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        help="Target id (`bundler targets list`) or a profile's path; may be repeated.",
        autocompletion=complete_target,
    ),
]


def take_options(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with the options of its parameters' types as typer parameters."""
    hints = typing.get_type_hints(command, include_extras=True)
    groups = {name: group for name, hint in hints.items() if (group := _find_group(hint)) is not None}
    plain = {name: option for name, hint in hints.items() if (option := option_of(hint)) is not None}

    @functools.wraps(command)
    def run(context: typer.Context, **values: Any) -> None:
        taken = {name: group.take(values, context) for name, group in groups.items()}
        read = {name: _read(option, values.pop(name), default=None) for name, option in plain.items()}
        command(**values, **taken, **read)

    parameters = [*_list_parameters(command, hints, groups)]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # where `inspect` looks for it
    return run


@dataclass(frozen=True, slots=True)
class _Group:
    """The fields that replace one parameter. With `partial`, only given fields are passed on."""

    kind: type
    options: Mapping[str, Option]
    partial: bool

    def take(self, values: dict[str, Any], context: typer.Context) -> Any:
        defaults = {field.name: field.default for field in fields(self.kind)}
        names = [name for name in self.options if not self.partial or _is_given(context, name)]
        found = {name: _read(self.options[name], values[name], default=defaults[name]) for name in names}
        for name in self.options:
            del values[name]
        return found if self.partial else self.kind(**found)


def _find_group(hint: Any) -> _Group | None:
    base, *rest = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
    named = next((item for item in rest if isinstance(item, OptionsOf)), None)
    if named is None:
        is_value = isinstance(base, type) and is_dataclass(base)
        return _Group(base, find_options(base), partial=False) if is_value else None
    return _Group(named.kind, named.options, partial=base is not named.kind)


def _is_given(context: typer.Context, name: str) -> bool:
    """Whether it was set on the command line or in the environment."""
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


def _read(option: Option, value: Any, *, default: Any) -> Any:
    """Convert typer's value to the field's value."""
    if option.read is not None:
        return option.read(value or ())
    return not value if default is True else value


def _list_parameters(
    command: Callable[..., None], hints: Mapping[str, Any], groups: Mapping[str, _Group]
) -> Iterator[inspect.Parameter]:
    yield inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    for name, parameter in inspect.signature(command).parameters.items():
        hint, option = hints[name], option_of(hints[name])
        if name in groups:
            yield from _list_fields(groups[name])
        elif option is not None:
            yield _make_parameter(name, option, typing.get_args(hint)[0], parameter.default)
        else:
            yield parameter.replace(annotation=hint)


def _list_fields(group: _Group) -> Iterator[inspect.Parameter]:
    hints = typing.get_type_hints(group.kind)
    for field in fields(group.kind):
        if field.name in group.options:
            yield _make_parameter(field.name, group.options[field.name], hints[field.name], field.default)


def _make_parameter(name: str, option: Option, kind: Any, default: Any) -> inspect.Parameter:
    """The typer parameter of an option; an option that turns a field off defaults to off."""
    if option.read is not None:
        kind, default = list[str] | None, None
    elif default is True:
        default = False
    elif {str, Path} <= set(typing.get_args(kind)):  # for callers in Python; a command line has text
        kind = str | None
    names = (option.flag, option.short) if option.short else (option.flag,)
    shown = typer.Option(
        *names,
        help=option.help,
        metavar=option.metavar,
        envvar=option.variable,
        min=option.least,
        max=option.most,
        show_default=option.default or True,
        autocompletion=COMPLETIONS.get(option.flag),
    )
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, shown])
