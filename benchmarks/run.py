"""Side-by-side measurements of what bundler promises, printed as Markdown and kept in RESULTS.md;
the bars of all runs are kept in history.jsonl and drawn in history.html.

python benchmarks/run.py [--draw] [--only NAME] [--quick] [--model MODEL] [--json FILE] [--work FOLDER [--resume]]
"""

from __future__ import annotations

import argparse
import fcntl
import importlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

from circumstances import Circumstances, describe_circumstances
from document import Section, update_results
from history import add_entry, read_history
from history_page import write_page
from workplace import Workplace

SUBJECTS = (
    "start", "build", "proof", "rebuild", "memory", "bundle", "calls", "disk", "web", "precision", "automatic", "gates",
    "devices", "repeatability", "together", "several", "opening", "streams", "real", "rivals", "exporters",
)  # fmt: skip
ON_DEMAND = ("real", "rivals", "exporters")
"""Subjects that run only when they are named: they take most of an hour, or install gigabytes."""


def main() -> None:
    options = _parse()
    if options.draw:
        write_page(read_history())
        return
    names = options.only or [name for name in SUBJECTS if name not in ON_DEMAND]
    with tempfile.TemporaryDirectory(prefix="bundler-benchmarks-") as passing:
        folder = options.work or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        _claim(folder)
        workplace = Workplace(
            folder=folder.resolve(),
            quick=options.quick,
            models=tuple(options.model or ()),
            resume=options.resume,
        )
        figures = {name: _publish(name, workplace) for name in names}
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


def _claim(folder: Path) -> None:
    """Keep other runs out of the folder as long as this process lives: they would empty each other's caches."""
    held = os.open(folder / "in-use", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(f"another run works in {folder}: wait for it, or give another --work")


def _publish(name: str, workplace: Workplace) -> dict[str, Any]:
    """Measure a subject, and write it down at once: the next one may fail. Answers its raw figures."""
    section, taken = _measure(name, workplace)
    text = section.render(taken)
    print(text, flush=True)
    if not workplace.quick and not workplace.models:
        update_results(SUBJECTS, {name: text})
        add_entry(section, taken)
        write_page(read_history())
    return section.figures


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="only draw history.html again, from history.jsonl")
    parser.add_argument("--only", action="append", choices=SUBJECTS, help="one subject; may be given several times")
    parser.add_argument("--quick", action="store_true", help="few models and repetitions; RESULTS.md stays as it is")
    parser.add_argument("--model", action="append", metavar="MODEL", help="one model; RESULTS.md stays as it is")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the raw figures")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="keep models and wheels here (else: temporary)")
    parser.add_argument(
        "--resume", action="store_true", help="take what earlier runs in that folder found (precision, real)"
    )
    options = parser.parse_args()
    if options.resume and not options.work:
        parser.error("--resume takes up what a run with --work FOLDER left: name that folder")
    return options


def _measure(name: str, workplace: Workplace) -> tuple[Section, Circumstances]:
    print(f"measuring: {name}", file=sys.stderr, flush=True)
    load, began = os.getloadavg()[0], time.perf_counter()
    section: Section = importlib.import_module(f"subjects.{name}").measure(workplace)
    seconds = time.perf_counter() - began
    return section, describe_circumstances((load, os.getloadavg()[0]), seconds)


if __name__ == "__main__":
    main()
