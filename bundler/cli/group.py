"""The group of commands: names and help lines are known without importing a command."""

from __future__ import annotations

import importlib
from typing import Any

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from bundler.cli.commands import COMMANDS, Commands
from bundler.cli.options import take_options

HOME = "bundler.cli.commands"


class CommandGroup(TyperGroup):
    """Lists commands by name and help line; only the command that is called, completed or asked for help is
    imported.
    """

    def __init__(self, *, home: str = HOME, table: Commands = COMMANDS, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._home = home
        for name, row in table.items():
            if isinstance(row, str):
                self.commands[name] = TyperCommand(name, help=row, rich_markup_mode=None)
            else:
                self.commands[name] = CommandGroup(
                    name=name,
                    help=row[0],
                    home=f"{home}.{name}",
                    table=row[1],
                    no_args_is_help=True,
                    rich_markup_mode=None,
                )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve the name as typer does, and load the command's module."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, None if command is None else self.load(command), rest

    def load(self, command: Any) -> Any:
        """Load the full command for its placeholder."""
        if isinstance(command, CommandGroup):
            return command
        module = importlib.import_module(f"{self._home}.{command.name}")
        info = CommandInfo(
            name=command.name,
            callback=take_options(module.run),
            help=f"{command.help}\n\n{getattr(module, 'DETAILS', '')}".strip(),
            epilog=_keep_lines(module.EPILOG),
        )
        return get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)


def _keep_lines(epilog: str) -> str:
    r"""One line for each example, however narrow the terminal: a wrapped one could not be copied and run. `\b` is the
    parser's mark of a paragraph that is not wrapped.
    """
    head, _, examples = epilog.partition("\n\n")
    return "\n".join((head, "", "\b", *(line.strip() for line in examples.splitlines() if line)))
