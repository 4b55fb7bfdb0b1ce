"""From what people call a device to the targets that are meant: words, part numbers and small slips of spelling."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LONGEST = 500
"""Characters of a text that are looked at: no device has a longer name."""

_NEAR = 0.1
"""Matches this far below the best are as likely: `raspberry pi` means two boards."""
_SHOWN = 5
_SHORTEST = 4
"""Characters that a name must have to be found inside a longer text: `M3` is also a kind of microcontroller."""
_SYSTEMS = ("linux", "windows")
"""What tells targets of one device apart: `rtx-4090`, `rtx-4090-windows`."""
_MISSPELT = 0.8
"""Least similarity (of `difflib`) at which a word is taken for another."""
_ALIKE = 0.6
"""The same for a name that is only suggested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A target with all its names: aliases, title, id."""

    id: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A target that a text means. `name` is the one that was found, `score` how well it fits (1: word for word), and
    `read_as` how the text was read where it was not taken as written.
    """

    target: str
    name: str
    score: float
    read_as: str = ""


def find_devices(text: str, candidates: Sequence[Candidate]) -> tuple[Match, ...]:
    """The targets that `text` means, the best first, at most five; none when nothing is sure enough.

    A text that matches nothing as written is read again with its misspelt words corrected and its unknown ones left
    out. A number is never corrected: another number is another device.
    """
    words = split_words(text)
    if len("".join(words)) == 1:
        return ()
    found = _rank(words, candidates, "")
    if found or not words:
        return found
    mended = _mend(words, candidates)
    # With words left out, little must not be enough: of `cortex m3` only the end is known.
    return _rank(mended, candidates, " ".join(mended)) if len("".join(mended)) >= _SHORTEST else ()


def suggest_devices(text: str, candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Ids of targets whose names are spelt much like `text`, the nearest first, at most five."""
    names: dict[str, list[str]] = {}
    for candidate in candidates:
        for name in candidate.names:
            names.setdefault("".join(split_words(name)), []).append(candidate.id)
    close = difflib.get_close_matches("".join(split_words(text)), names, n=2 * _SHOWN, cutoff=_ALIKE)
    return tuple(dict.fromkeys(target for name in close for target in names[name]))[:_SHOWN]


def split_words(text: str) -> tuple[str, ...]:
    """Words in lower case; letters and digits are words of their own (`RTX4090`: `rtx`, `4090`), marks are dropped."""
    plain = unicodedata.normalize("NFKC", re.sub(r"[®™]|\((r|tm|c)\)", " ", text[:LONGEST], flags=re.IGNORECASE))
    return tuple(re.findall(r"[^\W\d_]+|\d+", plain.casefold()))


def _rank(words: Sequence[str], candidates: Iterable[Candidate], read_as: str) -> tuple[Match, ...]:
    # Of equal ones that with fewer names comes first: it stands for fewer devices.
    ordered = sorted(candidates, key=lambda candidate: (len(candidate.names), candidate.id))
    scored = [match for candidate in ordered if (match := _match(words, candidate, read_as)) is not None]
    scored.sort(key=lambda match: -match.score)
    best = scored[0].score if scored else 0.0
    if best < 1:
        return tuple(match for match in scored if match.score >= best - _NEAR)[:_SHOWN]
    exact = {match.target for match in scored if match.score == 1}
    twins = {f"{target}-{system}" for target in exact for system in _SYSTEMS}
    return tuple(match for match in scored if match.target in exact | twins)[:_SHOWN]


def _match(words: Sequence[str], candidate: Candidate, read_as: str) -> Match | None:
    name, score = max(((name, _score(words, split_words(name))) for name in candidate.names), key=lambda row: row[1])
    return Match(target=candidate.id, name=name, score=score, read_as=read_as) if score else None


def _score(asked: Sequence[str], name: Sequence[str]) -> float:
    """1 for the same words; less where one is part of the other, by how many letters of it, and least where it stands
    in another order or with others between; else 0.
    """
    if not asked or not name:
        return 0.0
    shares = sorted((len("".join(asked)), len("".join(name))))
    if "".join(asked) == "".join(name):
        return 1.0
    if _is_run(asked, name):
        return 0.7 + 0.25 * shares[0] / shares[1]
    if Counter(asked) <= Counter(name):
        return 0.55 + 0.25 * shares[0] / shares[1]
    if len("".join(name)) >= _SHORTEST and _is_run(name, asked):
        return 0.55 + 0.3 * shares[0] / shares[1]
    return 0.0


def _is_run(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether `part` stands in `whole` as it is, in one piece."""
    return any(tuple(whole[start : start + len(part)]) == tuple(part) for start in range(len(whole) - len(part) + 1))


def _mend(words: Sequence[str], candidates: Iterable[Candidate]) -> tuple[str, ...]:
    known = {word for candidate in candidates for name in candidate.names for word in split_words(name)}
    mended = (word if word in known or word.isdigit() else _correct(word, known) for word in words)
    return tuple(word for word in mended if word)


def _correct(word: str, known: Iterable[str]) -> str:
    """The known word that is meant, or nothing."""
    close = difflib.get_close_matches(word, sorted(known), n=1, cutoff=_MISSPELT) if len(word) >= _SHORTEST else []
    return close[0] if close else ""
