"""`bundler bench` as tables: one row for each variant, followed by its baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bundler.cli.printing import printable
from bundler.pipeline.bench import VariantTimes
from bundler.reporting.claims import LEAST_RUNS, find_doubt
from bundler.reporting.data import Spread

_HEAD = ("bundle", "variant", "load", "p10..p90", "ratio", "latency", "p10..p90", "ratio", "calls")
_TEXT_COLUMNS = 2


_THROUGHPUT_HEAD = ("bundle", "variant", "callers", "calls/s", "p10..p90", "ratio")
_ROWS = "rows/s"


def throughput_lines(times: Sequence[VariantTimes]) -> Iterator[str]:
    """A table of the throughput of concurrent callers, where it was measured."""
    if not any(one.throughput for one in times):
        return
    batched = any(one.measurement.batch for one in times)
    head = (*_THROUGHPUT_HEAD, *((_ROWS,) if batched else ()))
    yield ""
    yield from _table([head, *(row for one in times for row in _throughput_rows(one, batched=batched))])
    yield "calls/s: of all callers together, in one process; ratio: to the first number of callers"


def _throughput_rows(one: VariantTimes, *, batched: bool) -> Iterator[tuple[str, ...]]:
    first = next(iter(one.throughput.values()), None)
    for callers, spread in one.throughput.items():
        ratio = f"{spread.median / first.median:.2f}" if first and first.median else ""
        low_high = f"{_rate(spread.low)}..{_rate(spread.high)}"
        rows = (_rate(spread.median * max(1, one.measurement.batch)),) if batched else ()
        name = printable(one.bundle.name, 60)
        yield (name, one.variant, str(callers), _rate(spread.median), low_high, ratio, *rows)


def _rate(per_second: float) -> str:
    return f"{per_second:.3g}" if per_second < 1000 else f"{per_second:,.0f}"  # noqa: PLR2004 - three digits


def timetable_lines(times: Sequence[VariantTimes]) -> Iterator[str]:
    """The lines of the table, and the meaning of its columns."""
    rows = [_HEAD, *(_row(one) for one in times)]
    rows += [_baseline_row(one) for one in times if one.baseline_opening or one.baseline_latency]
    yield from _table(rows)
    yield "milliseconds: load is load time plus first inference, latency one later call; medians, p10..p90 of all runs"
    if any(one.opening_ratio is not None for one in times):
        yield "ratio: to the median of a plain session on the baseline, measured alternately with the bundle"
        yield f"in brackets: no clear difference (fewer than {LEAST_RUNS} runs, p10..p90 overlap, or a busy machine)"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [_align(text, width, column) for column, (text, width) in enumerate(zip(row, widths, strict=True))]
        yield "  ".join(cells).rstrip()


def _row(one: VariantTimes) -> tuple[str, ...]:
    opening, latency = _spread(one.opening), _spread(one.latency)
    calls = str(one.latency.count) if one.latency else ""
    name = printable(one.bundle.name, 60)
    others = one.measurement.others
    first = _ratio(one.opening_ratio, one.baseline_opening, one.opening, others)
    steady = _ratio(one.latency_ratio, one.baseline_latency, one.latency, others)
    return (name, one.variant, *opening, first, *latency, steady, calls)


def _baseline_row(one: VariantTimes) -> tuple[str, ...]:
    """A baseline is measured again beside each bundle, because the load of the machine varies."""
    name = f"plain session next to {printable(one.bundle.name, 40)}"
    calls = str(one.baseline_latency.count) if one.baseline_latency else ""
    return (name, one.variant, *_spread(one.baseline_opening), "", *_spread(one.baseline_latency), "", calls)


def _spread(spread: Spread | None) -> tuple[str, str]:
    if spread is None:
        return "", ""
    return _time(spread.median), f"{_time(spread.low)}..{_time(spread.high)}"


def _time(milliseconds: float) -> str:
    return f"{milliseconds:.3g}" if milliseconds < 1000 else f"{milliseconds:.0f}"  # noqa: PLR2004 - three digits


def _ratio(ratio: float | None, before: Spread | None, after: Spread | None, others: float | None) -> str:
    if ratio is None or before is None or after is None:
        return ""
    return f"({ratio:.2f})" if find_doubt(before, after, others) else f"{ratio:.2f}"


def _align(text: str, width: int, column: int) -> str:
    return text.ljust(width) if column < _TEXT_COLUMNS else text.rjust(width)
