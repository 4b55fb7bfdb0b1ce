"""The program's entry. It imports little, so that an interruption during the imports ends in order, too."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

from bundler.cli.answers import Printed, find_answer
from bundler.cli.ending import end_in_order, report_interrupt
from bundler.cli.outputs import open_outputs


def main() -> NoReturn:
    """Run the command line and exit with its documented code."""
    _use_utf8()
    gc.set_threshold(100_000, 50, 100)  # of what a command imports and makes, next to nothing is garbage
    open_outputs()
    try:
        end_in_order()
        answer = find_answer()
        code = _run() if answer is None else _print(answer)
    except KeyboardInterrupt:
        code = report_interrupt()
    sys.exit(code)


def _use_utf8() -> None:
    """Start again in UTF-8 mode where `PYTHONUTF8=0` and a locale such as C make Python read file names as ASCII: it
    would take valid names for broken ones.
    """
    if sys.getfilesystemencoding().lower() != "utf-8" and os.name != "nt":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - this very program


def _run() -> int:
    from bundler.cli.application import run  # noqa: PLC0415 - see above

    return run()


def _print(answer: Printed) -> int:
    for err, text in answer:
        stream = sys.stderr if err else sys.stdout
        try:
            stream.write(text)
            stream.flush()
        except OSError as error:
            from bundler.cli.application import end_unprinted  # noqa: PLC0415 - see above

            return end_unprinted(error, err=err)
    return 0
