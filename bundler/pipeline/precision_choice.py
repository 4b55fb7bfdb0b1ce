"""The choice among attempts at a precision, what cannot win any more, and the sentences that say why. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bundler.model.attempts import STATE_TITLES, Attempt
from bundler.profiles.methods import METHODS, NONE
from bundler.reporting.claims import doubt_ratio

SAME_LATENCY_RATIO = 1.03
"""Two latencies within this ratio count as the same: then the smaller model is the better one."""

MEGABYTE = 1_000_000

MAX_SIZE_SHARE = 0.9
LEAST_SAVING = MEGABYTE
"""A model that is no faster is taken instead of another only if it has at most this share of its size, and at least so
many bytes less: less is no gain that a user would notice, and costs accuracy.
"""


def choose_method(attempts: Sequence[Attempt]) -> str | None:
    """The fastest that passed. Among those that are as fast, within noise, the smallest, if it is worth a change."""
    passed = [attempt for attempt in attempts if attempt.state == "passed" and attempt.ratio is not None]
    if not passed:
        return None
    close = _list_fastest(passed)
    smallest = min(close, key=lambda attempt: attempt.model_bytes or 0)
    original = next((attempt for attempt in close if attempt.method == NONE), smallest)
    return smallest.method if _is_much_smaller(smallest, original) else original.method


def _is_much_smaller(found: Attempt, other: Attempt) -> bool:
    size, before = found.model_bytes or 0, other.model_bytes or 0
    return size <= before * MAX_SIZE_SHARE and before - size >= LEAST_SAVING


def _list_fastest(passed: Sequence[Attempt]) -> list[Attempt]:
    best = min(map(_counted_ratio, passed))
    return [attempt for attempt in passed if _counted_ratio(attempt) <= best * SAME_LATENCY_RATIO]


def _counted_ratio(attempt: Attempt) -> float:
    """The ratio; 1 for a model that is faster by less than its interval."""
    ratio = attempt.ratio or 0.0
    return 1.0 if ratio < 1 and doubt_ratio(attempt.low, attempt.high, attempt.rounds) else ratio


def explain_choice(attempts: Sequence[Attempt], chosen: str) -> str:
    """Why `chosen` ships, as a sentence without a trailing stop."""
    passed = [attempt for attempt in attempts if attempt.state == "passed" and attempt.ratio is not None]
    if chosen == NONE:
        if all(attempt.method == NONE for attempt in passed):
            return "no method meets the gate"
        return "no method that meets the gate makes it faster, or smaller by 10% and 1 MB and no slower"
    others = [attempt.method for attempt in _list_fastest(passed) if attempt.method != chosen]
    if others:
        names = ", ".join("the original model" if method == NONE else method for method in others)
        return f"the smallest of the fastest that meet the gate; no difference in latency shown to {names}"
    return "the fastest that meets the gate"


def describe_attempt(attempt: Attempt) -> str:
    """Result and figures of an attempt, as a line for the screen."""
    parts = [f"{attempt.method}: {STATE_TITLES[attempt.state]}"]
    if attempt.model_bytes is not None and attempt.state == "passed":
        parts.append(f"{attempt.model_bytes / MEGABYTE:.1f} MB")
    if attempt.ratio is not None and attempt.method != NONE:
        parts.append(_describe_ratio(attempt))
    text = ", ".join(parts)
    return f"{text}: {attempt.reason}" if attempt.reason else text


def _describe_ratio(attempt: Attempt) -> str:
    if attempt.low is None or attempt.high is None:
        return f"{attempt.ratio:.2f} of the latency, estimated"
    text = f"{attempt.ratio:.2f} of the latency ({attempt.low:.2f} to {attempt.high:.2f})"
    doubt = doubt_ratio(attempt.low, attempt.high, attempt.rounds)
    text += f", {doubt}" if doubt else ""
    return text if attempt.processor_ratio is None else f"{text}, {attempt.processor_ratio:.2f} of the CPU time"


def order_search(methods: Sequence[str]) -> list[str]:
    """The methods in the order of trying: those that another one bounds come last, when most is known."""
    return sorted(methods, key=lambda method: bool(_plain(method)))


def is_bound(method: str, methods: Sequence[str]) -> bool:
    """Whether `method` bounds another one of `methods`, so that its figures decide even where it misses the gate."""
    return any(_plain(other) == method for other in methods)


def _plain(method: str) -> str:
    return METHODS[method].plain if method != NONE else ""


def explain_loss(method: str, before: Sequence[Attempt], limit: float | None) -> str:
    """Why `method` cannot be chosen after the attempts `before`; empty where it can. `limit` is the size budget in MB.

    A method with a `plain` one runs the same operators with other ranges, or some of them in floating point: it is at
    best as small, and as fast, unless floating point is faster here.
    """
    plain = next((attempt for attempt in before if attempt.method == _plain(method)), None)
    if plain is None:
        return ""
    may_be_faster = _keeps_float(method) and plain.low is not None and plain.low > 1
    if plain.state == "passed" and not may_be_faster:
        return f"{plain.method} meets the gate, and this method is at best as fast and as small"
    if limit is not None and (plain.model_bytes or 0) > limit * MEGABYTE:
        return f"{plain.method} is over the size budget, and this method is at best as small"
    best = next((attempt for attempt in before if attempt.method == choose_method(before)), None)
    if may_be_faster or plain.state != "failed" or plain.ratio is None or best is None or _may_replace(plain, best):
        return ""
    return f"at best like {plain.method} ({_describe_ratio(plain)}), which is not shown to be better than {best.method}"


def _keeps_float(method: str) -> bool:
    return bool(METHODS[method].options.get("keep_float"))


def _may_replace(found: Attempt, best: Attempt) -> bool:
    """Whether `found` is faster than `best` by more than both intervals, or smaller and not shown to be slower."""
    (low, high), (best_low, best_high) = _interval(found), _interval(best)
    return high < best_low or (_is_much_smaller(found, best) and low <= best_high * SAME_LATENCY_RATIO)


def _interval(attempt: Attempt) -> tuple[float, float]:
    """Of the ratio; a point where it was not timed."""
    ratio = attempt.ratio or 0.0
    return (ratio if attempt.low is None else attempt.low), (ratio if attempt.high is None else attempt.high)
