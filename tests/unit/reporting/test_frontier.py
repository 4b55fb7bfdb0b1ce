"""The page shows everything that was tried to choose a precision, and why the rest was not taken."""

import dataclasses
import itertools
import math
import re

import pytest

from bundler.reporting.frontier import chart_precisions
from bundler.reporting.page import SpotChart
from bundler.reporting.report import render_report
from tests.unit.reporting.builds import change_report, make_report
from tests.unit.reporting.frontiers import make_attempt, make_frontier
from tests.unit.reporting.test_report import ATTACKS, assert_harmless, words

TIMES, DASH = "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"


def chart_of(*attempts) -> SpotChart:
    frontier = dataclasses.replace(make_frontier(), attempts=attempts) if attempts else make_frontier()
    (part,) = chart_precisions([frontier])
    assert part.chart is not None
    return part.chart


def section(page: str) -> str:
    return page[page.index('<section aria-labelledby="precision"') : page.index('<section aria-labelledby="accuracy"')]


@pytest.fixture
def data(manifest, request_of_build):
    return make_report(manifest, request_of_build, frontiers=(make_frontier(),))


def test_a_page_without_a_choice_has_no_such_section(manifest, request_of_build):
    assert 'id="precision"' not in render_report(make_report(manifest, request_of_build))


def test_every_attempt_is_a_row_with_its_figures_and_its_reason(data):
    page = section(render_report(data))
    (row,) = re.findall(r'<tr class="chosen">(.*?)</tr>', page)
    cells = re.sub(r"<[^>]+>", "|", row)
    assert [cell for cell in cells.split("|") if cell.strip()] == [
        *("3", "static-int8-percentile", "method static-int8-percentile", "chosen"),
        *("181 kB", "0.84 ms", f"0.51{TIMES}", f"0.55{TIMES}", "27.4", DASH, "0.03", "99.0%"),
    ]
    text = words(page)
    assert "gate not met scores: SQNR 11.2 dB, at least 20 dB" in text
    assert "could not be made it quantised nothing" in text
    assert "not tried cpu computes no bfloat16" in text


def test_the_page_says_what_it_was_judged_on_and_how_it_was_timed(data):
    text = words(section(render_report(data)))
    assert "6 attempts, 4 of them met the gate, judged on 60 held-out samples" in text
    assert "none of them among the 240 for calibration" in text
    assert "static-int8-percentile is used: the fastest that meets the gate." in text
    assert "Latency measured: on this machine, alternating with the unchanged model." in text


def test_an_estimate_is_called_one(data):
    guess = dataclasses.replace(make_frontier(), timing="estimated", how="from the models' sizes", calibration=0)
    text = words(section(render_report(change_report(data, frontiers=(guess,)))))
    assert "Latency estimated: from the models' sizes." in text
    assert "that calibrated" not in text


def test_the_section_as_it_is_written(data, snapshot):
    assert section(render_report(data)) == snapshot


def test_faster_is_further_left_and_more_accurate_higher():
    spots = {spot.label.partition(" ")[0]: spot for spot in chart_of().spots}
    assert spots["static-int8"].x < spots["none"].x < spots["fp16"].x < spots["dynamic-int8"].x
    assert spots["none"].y < spots["fp16"].y < spots["static-int8-percentile"].y < spots["static-int8"].y
    assert spots["none"].radius > spots["fp16"].radius > spots["static-int8"].radius


def test_only_what_was_timed_and_judged_is_drawn():
    assert {spot.state for spot in chart_of().spots} == {"chosen", "passed", "failed"}


def test_one_very_slow_attempt_does_not_push_the_others_together():
    slow = make_attempt("dynamic-int8", "passed", 250.0, 22.0)
    chart = chart_of(*make_frontier().attempts[:3], slow)
    (spot,) = (spot for spot in chart.spots if "dynamic" in spot.label)
    assert spot.x == 100
    assert spot.label.endswith(f"250{TIMES}")
    assert chart.unit > 30


@pytest.mark.parametrize("count", [2, 9, 40])
def test_no_two_labels_share_a_row(count):
    crowd = [make_attempt(f"m{number}", "passed", 0.5, 30.0) for number in range(count)]
    chart = chart_of(*crowd)
    rows = sorted(spot.label_y for spot in chart.spots)
    assert all(later - earlier >= 16.9 for earlier, later in itertools.pairwise(rows))
    assert rows[0] >= 0
    assert rows[-1] <= chart.height


def test_the_line_joins_what_nothing_else_beats():
    chart = chart_of()
    ends = {(line.x1, line.y1) for line in chart.strokes} | {(line.x2, line.y2) for line in chart.strokes}
    joined = {spot.label.partition(" ")[0] for spot in chart.spots if (spot.x, spot.y) in ends}
    assert joined == {"static-int8", "static-int8-percentile", "none"}


def test_without_decibels_the_chart_shows_how_often_the_first_choice_agrees():
    labels = [
        dataclasses.replace(make_attempt(name, "passed", ratio, None), figures={"top1_agreement": agreement})
        for name, ratio, agreement in (("a", 0.5, 0.97), ("b", 1.0, 0.99))
    ]
    chart = chart_of(*labels)
    assert chart.figure == "Top-1"
    assert [spot.label[0] for spot in sorted(chart.spots, key=lambda spot: spot.y)] == ["b", "a"]


def test_fewer_than_two_points_are_no_chart(data):
    alone = dataclasses.replace(make_frontier(), attempts=make_frontier().attempts[:1])
    page = render_report(change_report(data, frontiers=(alone,)))
    assert "over latency" not in page
    assert "as it is" not in page
    assert "585 kB" in page or "586 kB" in page


def test_the_users_own_metric_is_a_column(data):
    attempts = [
        dataclasses.replace(item, figures={**item.figures, "word errors": 0.125}) if item.ratio else item
        for item in make_frontier().attempts
    ]
    page = render_report(change_report(data, frontiers=(dataclasses.replace(make_frontier(), attempts=attempts),)))
    assert "<bdi>word errors</bdi>" in page
    assert "0.125" in page


@pytest.mark.parametrize("figure", [math.nan, math.inf, -math.inf, -12.0, 1e30])
def test_odd_figures_break_nothing(data, figure):
    odd = make_attempt("odd", "failed", 1.5, figure, seconds=figure)
    strange = make_attempt("strange", "failed", abs(figure), 20.0)
    frontier = dataclasses.replace(make_frontier(), attempts=(*make_frontier().attempts, odd, strange))
    page = render_report(change_report(data, frontiers=(frontier,)))
    assert_harmless(page)
    assert "nan" not in section(page).replace("nncf", "")


def test_two_variants_have_a_part_each(data):
    page = render_report(change_report(data, frontiers=(make_frontier("gpu"), make_frontier("cpu"))))
    assert_harmless(page)
    assert section(page).index("<bdi>gpu</bdi>") < section(page).index("<bdi>cpu</bdi>")


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_strings_stay_text(data, attack):
    attempts = tuple(
        dataclasses.replace(item, method=attack, title=attack, reason=attack, figures={**item.figures, attack: 0.5})
        for item in make_frontier().attempts
    )
    frontier = dataclasses.replace(make_frontier(attack), attempts=attempts, how=attack, chosen=attack)
    page = render_report(change_report(data, frontiers=(frontier, frontier)))
    assert_harmless(page)
    assert attack.isprintable() is (attack in words(page))
