"""The benchmarks measure fairly, say what they found, and keep what they did not measure."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bundler.execution.cache import PARTS, TAG_NAME

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of the benchmarks, which run as scripts."""
    for folder in (BENCHMARKS, BENCHMARKS.parent / "examples"):
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def test_pairs_alternate_and_count_only_after_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = load("pairs", monkeypatch)
    order: list[str] = []
    seconds = {"ours": iter([9.0, 2.0, 4.0, 6.0]), "theirs": iter([9.0, 1.0, 1.0, 2.0])}

    def measure(name: str) -> float:
        order.append(name)
        return next(seconds[name])

    found = pairs.alternate(lambda: measure("ours"), lambda: measure("theirs"), 3, warm_up=1)
    assert found.ours == (2.0, 4.0, 6.0)
    assert found.ratios == (2.0, 4.0, 3.0)
    assert found.ratio == 3.0
    assert found.ratio_of_minima == 2.0
    assert order == ["ours", "theirs", "theirs", "ours"] * 2


@pytest.mark.parametrize(
    ("values", "side", "words"),
    [((3, 1, 2), {}, "2, met"), ((3, 1, 2.1), {}, "2, **missed**"), ((3, 1, 1.9), {"at_least": True}, "2, **missed**")],
)
def test_a_bar_is_data_for_a_section_and_a_verdict_in_its_table(
    values: tuple[float, ...], side: dict[str, bool], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = load("document", monkeypatch)
    bar = sys.modules["bars"].set_bar("jobs: two", values, 2.0, **side, said="2, ")
    table = document.Table(columns=("a", "bar"), rows=(("x", bar),))
    section = document.Section(name="build", title="t", method="how", tables=(table,))
    assert f"| x | {words} |" in section.render("*when*")
    assert section.bars == (bar,)
    assert (bar.least, bar.median, bar.greatest) == tuple(sorted(values))


@pytest.mark.parametrize(("value", "word"), [(0.7, "met"), (0.69, "met"), (0.71, "**missed**")])
def test_a_bar_is_met_up_to_its_value(value: float, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load("pairs", monkeypatch).judge(value, 0.7) == word


@pytest.mark.parametrize(
    ("values", "text"),
    [((0.0123, 0.0119, 0.015), "12.3 ms (11.9…15)"), ((1.5, 2.0, 12.25), "2 s (1.5…12.2)"), ((0.2615,), "262 ms")],
)
def test_times_read_with_their_spread(values: tuple[float, ...], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load("pairs", monkeypatch).show_seconds(values).startswith(text)


def test_a_run_of_one_subject_leaves_the_other_sections(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    document = load("document", monkeypatch)
    monkeypatch.setattr(document, "RESULTS", tmp_path / "RESULTS.md")
    names = ("start", "build")
    document.update_results(names, {name: section(document, name, "old") for name in names})
    document.update_results(names, {"build": section(document, "build", "new")})
    text = document.RESULTS.read_text(encoding="utf-8")
    assert text.count("## ") == 2
    assert text.index("## start: old") < text.index("## build: new")
    assert "## build: old" not in text


def section(document: ModuleType, name: str, title: str) -> str:
    table = document.Table(columns=("a", "b"), rows=(("1|2", "3"),))
    rendered: str = document.Section(name=name, title=title, method="how", tables=(table,)).render("*when*")
    assert "| 1\\|2 | 3 |" in rendered
    return rendered


def test_every_model_has_one_name_and_the_quick_ones_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    models = load("models", monkeypatch)
    names = [model.name for model in models.EVERY]
    assert len(set(names)) == len(names)
    assert [model.name for model in models.choose(models.QUICK)] == list(models.QUICK)


def test_a_model_that_fails_is_a_note_and_the_others_are_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    models = load("models", monkeypatch)
    error = sys.modules["processes"].CommandError
    workplace = sys.modules["workplace"].Workplace(folder=tmp_path, quick=False)

    def measure(_: object, model: object) -> str:
        if model.name == "loop_and_if":  # type: ignore[attr-defined]
            raise error(["bundler"], 7, "error: it does not fit\n  hint: try another")
        return model.path.name  # type: ignore[attr-defined, no-any-return]

    found, notes = models.measure_each(workplace, ("encoder_5mb", "loop_and_if"), measure)
    assert found == {"encoder_5mb": "encoder_5mb.onnx"}
    assert notes == ("**loop_and_if could not be measured**: error: it does not fit",)


def test_memory_counts_the_children(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/proc/self/smaps_rollup").exists():
        pytest.skip("this system does not say how much memory a process shares")
    processes = load("processes", monkeypatch)
    size = 80_000_000
    child = f"import time; held = bytearray(b'x') * {size}; time.sleep(0.5)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    peak = processes.watch_memory([sys.executable, "-c", parent])
    assert size < peak.own < 2 * size
    assert size < peak.largest


def test_one_subject_runs_and_prints_its_bars() -> None:
    command = [sys.executable, str(BENCHMARKS / "run.py"), "--only", "start", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "## start: " in done.stdout
    assert "`bundler targets list`" in done.stdout
    assert "load average" in done.stdout


def test_a_cold_build_keeps_what_was_downloaded_under_the_names_that_the_cache_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    workplace = load("workplace", monkeypatch)
    assert {*workplace.KEPT, workplace.PROOFS} <= {*PARTS, TAG_NAME}
    place = workplace.Workplace(folder=tmp_path, quick=True)
    for part in PARTS:
        (place.cache / part).mkdir(parents=True)
    place.forget_steps()
    assert {path.name for path in place.cache.iterdir()} == {"packages", "environments", "locked", "proofs"}


def test_the_turns_of_a_rival_become_ratios_a_bar_and_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rivals = load("subjects.rivals", monkeypatch)
    ran = sys.modules["processes"].Ran
    turns = {
        rivals.OLIVE: [ran(seconds=10.0, cpu_seconds=8.0, output=""), ran(seconds=8.0, cpu_seconds=8.0, output="")],
        rivals.PROVEN: [ran(seconds=4.0, cpu_seconds=4.0, output=""), ran(seconds=4.0, cpu_seconds=4.0, output="")],
        rivals.UNPROVEN: [ran(seconds=1.0, cpu_seconds=2.0, output=""), ran(seconds=2.0, cpu_seconds=2.0, output="")],
    }
    section = rivals.make_section([rivals.Taken(model="m", turns=turns)], ("by this command",))
    (bar,) = section.bars
    assert (bar.name, bar.median, bar.least, bar.greatest, bar.limit) == ("m", 0.45, 0.4, 0.5, 0.4)
    text = section.render("*when*")
    assert "| m | 9 s (8…10) | 4 s (4…4) | 0.45 (0.40…0.50) | **missed** | 1.5 s (1…2) | 0.17 (0.10…0.25) |" in text
    assert "| m | 8 s (8…8) | 4 s (4…4) | 0.50 (0.50…0.50) | 2 s (2…2) | 0.25 (0.25…0.25) |" in text
    assert "- by this command" in text


def test_a_rival_is_installed_by_a_lock_of_what_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    locks = load("subjects.precision_rivals", monkeypatch).LOCKS
    wanted = [line for line in (locks / "olive.in").read_text(encoding="utf-8").splitlines() if "==" in line]
    locked = (locks / "olive.txt").read_text(encoding="utf-8").splitlines()
    assert wanted
    assert all(any(line.startswith(f"{name} \\") for line in locked) for name in wanted)
