"""Errors as text for people or, with `--json`, as JSON."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path

from bundler.cli.printing import LONGEST_LINE, print_json, printable
from bundler.model.errors import BundlerError, DefectError, OutputError
from bundler.support.disk import storage_error

MAX_DETAILS = 200
"""Lines of details that are shown; `--json` has all."""


def error_lines(error: BundlerError, prefix: str = "") -> list[str]:
    """The error, a line each: what and where, why, what next. A tool's output keeps its lines."""
    evidence = [line for detail in error.details for line in detail.split("\n")]
    lines = [f"{prefix}error: {error.message}", *(f"  {line}" for line in evidence[:MAX_DETAILS])]
    if len(evidence) > MAX_DETAILS:
        lines.append(f"  … and {len(evidence) - MAX_DETAILS} more lines")
    return [printable(line, LONGEST_LINE) for line in (*lines, *([f"hint: {error.hint}"] if error.hint else []))]


def report_error(error: BundlerError) -> int:
    """Print `error` on standard error and, with `--json`, as JSON; return its exit code."""
    if "--json" in sys.argv and not isinstance(error, OutputError):
        with suppress(OutputError):
            print_json({"error": error.to_json()})
    with suppress(OSError):  # only the exit code remains
        sys.stderr.write(_coloured("\n".join(error_lines(error))) + "\n")
    return error.exit_code


def report_defect(error: Exception) -> int:
    """Report a defect of bundler; the traceback is kept in a file. A disk that is full is none."""
    place = Path(tempfile.gettempdir())
    full = storage_error(error, "the command", place) if isinstance(error, OSError) else None
    if full is not None:
        return report_error(full)
    with tempfile.NamedTemporaryFile("w", prefix="bundler-defect-", suffix=".txt", delete=False) as stream:
        traceback.print_exception(error, file=stream)
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}:{last.lineno} in {last.name}"
    return report_error(
        DefectError(
            f"internal error: {type(error).__name__}: {error}",
            details=(f"at {where}", f"the full traceback is in {stream.name}"),
            hint="please report it with that file and the output of `bundler doctor --json`",
        )
    )


def _coloured(text: str) -> str:
    if not sys.stderr.isatty() or os.environ.get("NO_COLOR"):
        return text
    return text.replace("error:", "\x1b[1;31merror:\x1b[0m", 1).replace("\nhint:", "\n\x1b[1;36mhint:\x1b[0m", 1)
