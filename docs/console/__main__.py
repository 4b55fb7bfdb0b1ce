"""Run the commands that README.md and the pages of docs/ show, keep what they printed, and put it into them.

    python -m docs.console [--check] [NAME…]

- A block that shows a terminal stands behind the comment `<!-- console: NAME -->`; each name on one page.
- `scripts.py` says which commands belong to a name: those of a target of the Makefile (`make --dry-run` lists them, so
  that they stand in one place), or its own.
- `NAME.txt` beside this is the transcript of all of them, every line as it was printed. It is recorded in an empty
  folder with an empty cache, so that it is what somebody sees the first time.
- The block shows part of the transcript: the commands that `shown` names, and of their output the lines that `lines`
  finds. What is left out becomes one line `…`.
- `figures.py` takes the pictures of reports and pages while their folder is there; it needs a Chromium.

`--check` records again and compares, and writes nothing. Then these count as equal, and nothing else does: times and
shares of times; the version of the browser and of Python; the order of lines (steps run side by side). Without it,
transcripts and pages are written.

A quick test holds the pages equal to the transcripts, and the transcripts' commands equal to the Makefile's; a slow one
records some again and compares.
"""

from __future__ import annotations

import argparse
import sys

from docs.console.blocks import TRANSCRIPTS, fill, find_differences, list_pages
from docs.console.figures import take_figures
from docs.console.recording import record
from docs.console.scripts import SCRIPTS


def main() -> int:
    parser = argparse.ArgumentParser(description="Record the commands that README.md and docs/ show.")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *SCRIPTS], help="[all]")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    options = parser.parse_args()
    differences: list[str] = []
    for name in options.names or SCRIPTS:
        print(f"{'checking' if options.check else 'recording'} {name}", flush=True)
        if options.check:
            differences += find_differences(name)
        else:
            TRANSCRIPTS.mkdir(exist_ok=True)
            (TRANSCRIPTS / f"{name}.txt").write_text(record(name, take_figures), encoding="utf-8")
    if not options.check:
        for page in list_pages():
            page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")
    print(*differences, sep="\n", end="")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
