"""Finds the targets for the name of a device: by words, part numbers and small spelling mistakes.

A name matches a target only if every word of it is accounted for. An extra word may mean the next generation
(`Snapdragon 8 Elite Gen 6`, `RTX 4090 Ti`), which cannot load a context or an engine of the previous one. Only words
that do not identify the chip are ignored.
"""

from __future__ import annotations

import difflib
import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

LONGEST = 500
"""Characters of a text that are read: no device has a longer name."""

_NEAR = 0.1
"""Matches whose score is at most this far below the best are shown too: `raspberry pi` means two boards."""
_SHOWN = 5
_SHORTEST = 4
"""Characters that a name must have to be found inside a longer text: `M3` is also a kind of microcontroller."""
_LEAST_PART = 3
"""Characters of a text that is found as a part of names: `M7` is also in `m7i instances`."""
_SYSTEMS = ("linux", "windows")
"""What distinguishes targets of one device: `rtx-4090`, `rtx-4090-windows`."""
_MISSPELT = 0.8
"""Least similarity (of `difflib`) at which a word is corrected to another."""
_LONG = 6
"""Letters from which on a word with one other letter is a misspelling, not another word."""
_ALIKE = 0.6
"""The same for a name that is only suggested."""

_IDLE_LINES = (
    "an and the my of on in for with by",
    "geforce tesla",
    "gpu cpu npu soc chip chipset processor card graphics board module phone smartphone tablet laptop notebook desktop",
    "device developer development generation kit devkit edition mobile platform sxm hbm pcie memory ram wifi",
)
_MAKERS = frozenset(
    ("nvidia", "qualcomm", "samsung", "google", "apple", "intel", "amd", "huawei", "mediatek", "rockchip", "broadcom")
)
"""Ignored too, but makers must agree: `Apple A10` is no `NVIDIA A10`."""
_BRANDS = {
    "snapdragon": "qualcomm",
    "dragonwing": "qualcomm",
    "rtx": "nvidia",
    "geforce": "nvidia",
    "jetson": "nvidia",
    "iphone": "apple",
    "ipad": "apple",
    "macbook": "apple",
    "imac": "apple",
    "galaxy": "samsung",
    "exynos": "samsung",
    "pixel": "google",
    "radeon": "amd",
    "ryzen": "amd",
    "xeon": "intel",
    "dimensity": "mediatek",
    "raspberry": "broadcom",
}
"""The makers of brands whose names lack the maker."""
_IDLE = frozenset(word for line in _IDLE_LINES for word in line.split()) | _MAKERS | {"microsoft", "lenovo"}
"""Words that do not distinguish chips: makers and kinds of device."""
_WIDE_KINDS = frozenset(("phone", "smartphone", "tablet"))
"""Kinds of device of which a family has many: `Pixel Tablet` is none of the phones."""
_SYSTEM_WORDS = ("linux", "windows", "android", "ios", "ipados", "macos")
"""Ignored only if a text with them matches nothing."""
_QUANTITY = re.compile(r"@?\s*\b\d+(\.\d+)?\s*(gb|gib|tb|mb|[mg]hz|w|nm)\b", re.IGNORECASE)
_REVISION = re.compile(r"\b(model [ab](\s|$)|rev(ision)?\.? ?\d+(\.\d+)*|sxm ?\d|hbm ?\d\w?|[45]g\b)", re.IGNORECASE)
_ARTICLE = re.compile(r"((?:^|\b(?:and|of|on|in|for|with|by)\s)\s*)a\s+(?=[^\W\d])", re.IGNORECASE)
"""Elsewhere an `a` distinguishes chips: `RTX A6000`, `Pixel 10a`."""
_PART_NUMBER = re.compile(r"\d,\d")
"""Names with it only match as a whole: `iPhone 18` is not `iPhone18,1`, which was sold as iPhone 17."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A target with all its names: aliases, title, id. `serves`, `refuses` and `cautions` are those of its
    profile.
    """

    id: str
    names: tuple[str, ...]
    serves: Mapping[str, str] = field(default_factory=dict)
    refuses: Mapping[str, str] = field(default_factory=dict)
    cautions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A target for a text. `name` is the matched name, `score` how well it fits (1: word for word), `read_as` the text
    after corrections, and `caution` what to check first. For a target that also serves an unknown device, `stands_in`
    says why it runs there.
    """

    target: str
    name: str
    score: float
    read_as: str = ""
    caution: str = ""
    stands_in: str = ""


def find_devices(text: str, candidates: Sequence[Candidate]) -> tuple[Match, ...]:
    """The targets for `text`, the best first, at most five; none when no match is certain enough.

    A text that matches nothing as written is tried again with misspelt words corrected. A number is never corrected,
    and no word that may distinguish chips is ignored.
    """
    words, bare = _distinguish(text), _bare(text)
    candidates = [candidate for candidate in candidates if not _is_of_others(text, candidate)]
    if len("".join(bare or words)) <= 1:
        return ()
    found = _rank(words, candidates, "") or (_rank(bare, candidates, "") if bare else ())
    mended = _mend(bare, candidates)
    found = found or (_rank(mended, candidates, " ".join(mended)) if mended != bare else ())
    return () if _is_guess(text, found, candidates) else found


def find_stand_ins(text: str, candidates: Sequence[Candidate]) -> tuple[Match, ...]:
    """The targets that serve devices whose names have words of `text`, by the longest such name, at most five."""
    words = split_words(text)
    rows = [
        (len("".join(split_words(name))), Match(target=candidate.id, name=name, score=0.0, stands_in=why))
        for candidate in candidates
        if not _is_of_others(text, candidate)
        for name, why in candidate.serves.items()
        if _stands_in(split_words(name), words) and not _refusal(words, name, candidate)
    ]
    longest = max((length for length, _ in rows), default=0)
    best = {match.target: match for length, match in rows if length == longest}
    return tuple(best[name] for name in sorted(best))[:_SHOWN]


def find_refusals(text: str, candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Why targets do not run on the device although they serve its family, each reason once."""
    words = split_words(text)
    reasons = (_refusal(words, name, candidate) for candidate in candidates for name in candidate.serves)
    return tuple(dict.fromkeys(reason for reason in reasons if reason))


def find_siblings(text: str, candidates: Sequence[Candidate]) -> tuple[Match, ...]:
    """The targets with a name that only differs from `text` in numbers: other models of its line."""
    shape, found = _shape(_bare(text)), []
    for candidate in candidates:
        alike = shape and not _is_of_others(text, candidate)
        names = [name for name in candidate.names if alike and _shape(_bare(name)) == shape]
        found += [_sibling(names[0], candidate)] if names else []
    return tuple(found)[:_SHOWN]


def _sibling(name: str, candidate: Candidate) -> Match:
    return Match(target=candidate.id, name=name, score=0.0, caution=_caution(name, candidate))


def suggest_devices(text: str, candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Ids of targets whose names are spelt much like `text`, the nearest first, at most five."""
    names: dict[str, list[str]] = {}
    for candidate in candidates:
        for name in candidate.names:
            names.setdefault("".join(split_words(name)), []).append(candidate.id)
    close = difflib.get_close_matches("".join(split_words(text)), names, n=2 * _SHOWN, cutoff=_ALIKE)
    return tuple(dict.fromkeys(target for name in close for target in names[name]))[:_SHOWN]


def split_words(text: str) -> tuple[str, ...]:
    """Words in lower case; letters and digits are words of their own (`RTX4090`: `rtx`, `4090`), `+` is `plus`, and
    other marks are dropped.
    """
    plain = unicodedata.normalize("NFKC", re.sub(r"[®™]|\((r|tm|c)\)", " ", text[:LONGEST], flags=re.IGNORECASE))
    return tuple(re.findall(r"[^\W\d_]+|\d+", plain.casefold().replace("+", " plus ")))


@functools.lru_cache(maxsize=4096)
def _distinguish(text: str) -> tuple[str, ...]:
    """The words that identify a device: without makers, kinds, amounts of memory and board revisions; all words if
    nothing would be left.
    """
    plain = _ARTICLE.sub(r"\1", _REVISION.sub(" ", _QUANTITY.sub(" ", text[:LONGEST])))
    words = tuple(word for word in split_words(plain) if word not in _IDLE)
    return words or split_words(text)


def _bare(text: str) -> tuple[str, ...]:
    """As `_distinguish`, without systems."""
    return tuple(word for word in _distinguish(text) if word not in _SYSTEM_WORDS)


def _is_guess(text: str, found: Sequence[Match], candidates: Iterable[Candidate]) -> bool:
    """Whether the text only names a family that targets serve, and the match is one of its many devices."""
    if not found or found[0].score >= 1 or not (len(found) == 1 or _WIDE_KINDS & {*split_words(text)}):
        return False
    return any(_bare(text) == _bare(name) for candidate in candidates for name in candidate.serves)


def _is_of_others(text: str, candidate: Candidate) -> bool:
    """Whether the text names a maker other than the target's; a target for devices of any maker has none."""
    asked = _MAKERS & {*split_words(text)}
    words = {word for name in candidate.names for word in split_words(name)} if asked else set()
    makers = _MAKERS & (words | {maker for brand, maker in _BRANDS.items() if brand in words})
    return bool(makers) and not asked <= makers


def _rank(words: Sequence[str], candidates: Iterable[Candidate], read_as: str) -> tuple[Match, ...]:
    # Of equal matches, the one with fewer names comes first: it is for fewer devices.
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
    names = {name: _distinguish(name) for name in candidate.names}
    rows = ((name, _score(words, known, whole=bool(_PART_NUMBER.search(name)))) for name, known in names.items())
    name, score = max(rows, key=lambda row: (row[1], -len(row[0])))
    if not score and (name := _covered_by(words, names)):
        score = 0.55 + 0.3 * len("".join(names[name])) / len("".join(words))
    if not score:
        return None
    return Match(target=candidate.id, name=name, score=score, read_as=read_as, caution=_caution(name, candidate))


def _caution(name: str, candidate: Candidate) -> str:
    """What to check first for a device with this name; empty for most."""
    rows = candidate.cautions.items()
    return next((text for known, text in rows if _distinguish(known) == _distinguish(name)), "")


def _score(asked: Sequence[str], name: Sequence[str], *, whole: bool = False) -> float:
    """1 for the same words; less if the text is part of the name, by its share of the letters, and least if in another
    order; otherwise 0. With `whole` a part does not match.
    """
    if not asked or not name:
        return 0.0
    if "".join(asked) == "".join(name):
        return 1.0
    if whole or len("".join(asked)) < _LEAST_PART:
        return 0.0
    share = len("".join(asked)) / len("".join(name))
    if _is_run(asked, name):
        return 0.7 + 0.25 * share
    return 0.55 + 0.25 * share if _is_shuffled_run(asked, name) else 0.0


def _covered_by(asked: Sequence[str], names: Mapping[str, Sequence[str]]) -> str:
    """The longest of the names that are contiguous in `asked`, if together they cover it; otherwise empty."""
    inside = [name for name, words in names.items() if len("".join(words)) >= _SHORTEST and _is_run(words, asked)]
    covered = {place for name in inside for place in _places(names[name], asked)}
    return max(inside, key=lambda name: len("".join(names[name]))) if len(covered) == len(asked) else ""


def _places(part: Sequence[str], whole: Sequence[str]) -> Iterator[int]:
    for start, run in enumerate(_runs(whole, len(part))):
        if run == tuple(part):
            yield from range(start, start + len(part))


def _runs(whole: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    return (tuple(whole[start : start + length]) for start in range(len(whole) - length + 1))


def _is_run(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether `part` is contiguous in `whole`."""
    return bool(part) and tuple(part) in _runs(whole, len(part))


def _stands_in(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether the words of `part` are in `whole` in their order, possibly with others between them."""
    rest = iter(whole)
    return bool(part) and all(word in rest for word in part)


def _refusal(words: Sequence[str], served: str, candidate: Candidate) -> str:
    """Why the candidate does not run on the device although it serves a name in `words`; otherwise empty."""
    own = split_words(served)
    for name, why in candidate.refuses.items():
        refused = split_words(name)
        if _stands_in(own, words) and _is_run(refused, words) and not _is_run(refused, own):
            return why
    return ""


def _is_shuffled_run(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether the words of `part` are contiguous in `whole`, with only names in another order: with numbers and single
    letters in another order it is another chip (`Snapdragon 3 Gen 8`, `T800`).
    """
    fixed = _without_names(part)
    return len(fixed) < len(part) and any(
        Counter(run) == Counter(part) and _without_names(run) == fixed for run in _runs(whole, len(part))
    )


def _without_names(words: Sequence[str]) -> list[str]:
    return [word for word in words if word.isdigit() or len(word) < _SHORTEST]


def _shape(words: Sequence[str]) -> tuple[str, ...]:
    """The words with all numbers replaced by `0`; empty for a text without a number or without a letter. After a single
    letter the length of a number counts: `A800` is not like `A18`.
    """
    single = len("".join(word for word in words if not word.isdigit())) == 1
    plain = tuple("0" * (len(word) if single else 1) if word.isdigit() else word for word in words)
    kinds = {word.isdigit() for word in words}
    return plain if kinds == {True, False} else ()


def _mend(words: Sequence[str], candidates: Iterable[Candidate]) -> tuple[str, ...]:
    known = {word for candidate in candidates for name in candidate.names for word in split_words(name)}
    return tuple(word if word in known or word.isdigit() else _correct(word, known) or word for word in words)


def _correct(word: str, known: Iterable[str]) -> str:
    """The known word with the same first letter that is most similar, or empty. A short word only matches with swapped
    letters, since with another letter it is another word (`Rubin` and `Rubik`, `Lite` and `Elite`).
    """
    alike = sorted(
        name for name in known if name[0] == word[0] and (len(name) >= _LONG or sorted(name) == sorted(word))
    )
    close = difflib.get_close_matches(word, alike, n=1, cutoff=_MISSPELT) if len(word) >= _SHORTEST else []
    return close[0] if close else ""
