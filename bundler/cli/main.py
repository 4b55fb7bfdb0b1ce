"""The program's entry. It imports little, so that an interruption during the imports ends in order, too."""

from __future__ import annotations

import sys
from typing import NoReturn

from bundler.cli.ending import end_in_order, report_interrupt
from bundler.cli.outputs import open_outputs


def main() -> NoReturn:
    """Run the command line and exit with its documented code."""
    open_outputs()
    try:
        end_in_order()
        from bundler.cli.application import run  # noqa: PLC0415 - see above

        code = run()
    except KeyboardInterrupt:
        code = report_interrupt()
    sys.exit(code)
