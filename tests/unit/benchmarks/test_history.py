"""The history of benchmarks keeps every bar of every run, and its page shows what got worse."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.benchmarks.test_benchmarks import BENCHMARKS, load

HERE, ELSEWHERE = "Linux x86_64, one processor, 2 cores", "Linux x86_64, <another> & more, 8 cores"


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load("history", monkeypatch)


def entry(history: ModuleType, day: int, *bars: Any, machine: str = HERE, section: str = "build") -> Any:
    taken = history.Circumstances(
        date=f"2026-01-{day:02}T10:00Z", seconds=3.0, loads=(0.5, 1.0), machine=machine, versions={"numpy": "2"}
    )
    return history.Entry(section=section, taken=taken, bars=bars)


def bar(name: str, *values: float, **more: Any) -> Any:
    return sys.modules["bars"].set_bar(name, values, more.pop("limit", 1.0), **more)


def test_what_a_run_found_is_read_as_it_was_written_by_date(history: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    assert history.read_history(path) == ()
    later = entry(history, 2, bar("jobs: two", 1.5, 1.7, 1.6, limit=1.6, at_least=True), bar("rebuild", 0.1, unit="s"))
    earlier = entry(history, 1, bar("x", 1.23456, 1.0, 2.0))
    path.write_text(history.encode_entry(later) + history.encode_entry(earlier), encoding="utf-8")
    first, second = history.read_history(path)
    assert second == later
    assert first.bars[0].median == 1.235  # four digits
    assert (first.taken, first.bars[0].met) == (earlier.taken, False)


def test_a_run_appends_the_bars_of_its_section_and_a_section_without_any_adds_nothing(
    history: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "history.jsonl"
    document, taken = sys.modules["document"], entry(history, 1).taken
    for number, cells in enumerate((("x", bar("x", 0.5)), ("y", "met"), ("x", bar("x", 0.6)))):
        table = document.Table(columns=("a", "b"), rows=(cells,))
        section = document.Section(name=f"s{number}", title="t", method="m", tables=(table,))
        history.add_entry(section, taken, path)
    assert [(one.section, one.bars[0].median) for one in history.read_history(path)] == [("s0", 0.5), ("s2", 0.6)]


@pytest.mark.parametrize(
    ("before", "after", "side", "worse"),
    [
        ((1.0, 1.1, 1.2), (1.3, 1.3), {}, True),
        ((1.0, 1.1, 1.2), (1.2, 1.2), {}, False),  # no more than was seen
        ((1.0, 1.0), (1.04, 1.04), {}, False),  # within the noise
        ((1.0, 1.0), (0.5, 0.5), {}, False),
        ((1.0, 1.0), (0.5, 0.5), {"at_least": True}, True),
    ],
)
def test_a_bar_is_worse_when_the_run_before_saw_nothing_like_it(
    history: ModuleType,
    before: tuple[float, ...],
    after: tuple[float, ...],
    side: dict[str, bool],
    worse: bool,  # noqa: FBT001
) -> None:
    (series,) = history.gather_series(
        [entry(history, 1, bar("x", *before, **side)), entry(history, 2, bar("x", *after, **side))]
    )
    assert series.worse is worse


def test_only_runs_on_the_same_machine_are_compared(history: ModuleType) -> None:
    runs = [entry(history, 1, bar("x", 1.0)), entry(history, 2, bar("x", 9.0), machine=ELSEWHERE)]
    (series,) = history.gather_series(runs)
    assert series.before is None
    assert not series.worse
    (series,) = history.gather_series([*runs, entry(history, 3, bar("x", 2.0))])
    assert series.before.median == 1.0


def test_the_page_shows_what_is_missed_first_and_stands_by_itself(
    history: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = load("history_page", monkeypatch)
    runs = [
        entry(history, 1, bar("met-one", 0.5), bar("slower: it", 0.9), bar("gone", 0.1)),
        entry(history, 2, bar("far-off", 5.0), section="start", machine=ELSEWHERE),
        entry(history, 3, bar("met-one", 0.5), bar("slower: it", 2.0, limit=0.8)),
    ]
    text = page.render_page(runs)
    assert "<b>3</b> bars" in text
    assert ">2 missed</b>" in text
    assert ">1 worse</b>" in text
    names = re.findall(r"<figcaption><b>(.*?)</b>", text)
    assert names == ["it", "far-off", "met-one", "gone"]
    assert re.search(r"<details.*No longer measured.*gone", text, re.DOTALL)
    assert "&lt;another&gt; &amp; more" in text
    assert "2026-01-03 10:00 UTC\n2.00 (2.00…2.00), bar 0.80: missed" in text
    assert not re.search(r"<script|<link|@import|url\(|(?:src|href)=\"(?!#)", text)


def test_the_page_in_the_repository_is_that_of_the_history_beside_it(
    history: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = load("history_page", monkeypatch)
    assert page.PAGE.read_text(encoding="utf-8") == page.render_page(history.read_history()), (
        f"write it again: python {BENCHMARKS.name}/run.py --draw"
    )


def test_a_page_without_any_run_says_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "<b>0</b> bars" in load("history_page", monkeypatch).render_page(())
