"""What README.md and the pages of docs/ show of the transcripts, and what differs between two recordings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from docs.console.recording import ROOT, record
from docs.console.scripts import SCRIPTS

TRANSCRIPTS = Path(__file__).parent
ELLIPSIS = "…"
_BLOCK = re.compile(
    r"(?P<head><!-- console: (?P<name>[a-z-]+) -->\n```console\n)(?P<body>.*?)(?P<tail>```\n)", re.DOTALL
)
_VARYING = (
    (r"\b\d+(\.\d+)? (ms|s|min)\b", "# s"),
    (r"\b\d+\.\d+ of the original model's latency", "# of the original model's latency"),
    (r"\b(Chromium|Chrome|Edge) [\d.]+", "browser #"),
    (r"\bPython 3\.\d+", "Python 3.#"),
    (r"\bcp3\d+\b", "cp3#"),
    (r"\b[0-9a-f]{64}\b", "# SHA-256"),
)

_BY_SPEED = re.compile(r"(, running| no step has run) for (\d|#)|: Time the bundle|: not timed: too slow")
"""What depends on how fast the machine is: a step that is silent for half a minute, a bundle that is timed or not."""


def list_pages() -> list[Path]:
    """README.md, and the pages of docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def split(transcript: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a transcript with the lines that it printed."""
    for part in re.split(r"^\$ ", transcript, flags=re.MULTILINE)[1:]:
        lines = part.rstrip("\n").split("\n")
        end = next(place for place, line in enumerate(lines) if not line.endswith("\\")) + 1
        yield "\n".join(lines[:end]), lines[end:]


def normalise(transcript: str) -> list[tuple[str, list[str]]]:
    """A transcript without what varies from run to run (see above)."""
    for pattern, replacement in _VARYING:
        transcript = re.sub(pattern, replacement, transcript)
    return [
        (command, sorted(line for line in lines if not _BY_SPEED.search(line))) for command, lines in split(transcript)
    ]


def show(name: str, transcript: str) -> str:
    """What a page shows of a transcript."""
    script = SCRIPTS[name]
    parts = []
    for command, lines in split(transcript):
        if not script.shown or any(part in command for part in script.shown):
            parts.append("\n".join([f"$ {command}", *_leave_out(lines, script.lines)]) + "\n")
    return "\n".join(parts)


def _leave_out(lines: list[str], pattern: str) -> Iterator[str]:
    gap = False
    for line in lines:
        if re.search(pattern, line):
            yield line
        elif not gap:
            yield ELLIPSIS
        gap = not re.search(pattern, line)


def read_transcript(name: str) -> str:
    return (TRANSCRIPTS / f"{name}.txt").read_text(encoding="utf-8")


def fill(text: str) -> str:
    """The text of a page with every block as the transcripts have it."""
    return _BLOCK.sub(
        lambda found: found["head"] + show(found["name"], read_transcript(found["name"])) + found["tail"], text
    )


def list_blocks(text: str) -> list[str]:
    """The names of the blocks in the text of a page."""
    return [found["name"] for found in _BLOCK.finditer(text)]


def find_differences(name: str) -> list[str]:
    """Record again: what is not as the transcript has it."""
    ours, now = normalise(read_transcript(name)), normalise(record(name))
    if [command for command, _ in ours] != [command for command, _ in now]:
        return [f"{name}: other commands"]
    return [
        f"{name}: $ {command.split()[0]} …: {sign} {line}"
        for (command, before), (_, after) in zip(ours, now, strict=True)
        for sign, ones, others in (("-", before, after), ("+", after, before))
        for line in ones
        if line not in others
    ]
