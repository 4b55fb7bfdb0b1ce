"""Outputs that were brought back have the last word on what a loader reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bundler.emitters.brought import MAX_BYTES, Brought, count_brought
from bundler.emitters.reports import Recorded, Reported
from bundler.model.artifacts import record_folder
from bundler.model.errors import StageError
from bundler.model.reference import ReferenceFigures
from bundler.model.results import Comparison, OutputComparison
from bundler.model.runtime import SOLE, Gate, RuntimeComponent, RuntimeVariant, Tolerance
from tests.unit.emitters.test_reports import COMPONENT, VARIANTS

KNOWN = ReferenceFigures(name="y", elements=16, signal=16.0, signals=(8.0, 8.0), peak=1.0)
GATE = Gate(default=Tolerance(absolute=1e-4, relative=1e-3, sqnr_db=40.0))
VARIANT = replace(VARIANTS["cpu"], gate=GATE)


def compared(error: float, samples: int = 2, sqnr_db: float | None = None, unjudged: str = "") -> Comparison:
    output = OutputComparison(
        name="y",
        equal=not error,
        max_absolute=error,
        mean_absolute=error,
        max_relative=error,
        cosine=1.0,
        sqnr_db=sqnr_db,
        top1_agreement=None,
        envelope=((1.0, error),) if error else (),
        reference=replace(KNOWN, unjudged=unjudged),
    )
    return Comparison(outputs=(output,), samples=samples)


def judge(
    tmp_path: Path,
    said: Comparison,
    ours: Comparison,
    sizes: tuple[int, ...] = (4, 4),
    variant: RuntimeVariant = VARIANT,
) -> Reported:
    recorded = Recorded(samples=len(sizes), references={"y": KNOWN}, output_bytes=sizes)
    component = write_golden(tmp_path)
    wanted = {SOLE: {"cpu": {"folder": "0", "copy": "0-copy", "samples": count_brought(recorded)}}}
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "index.json").touch()
    brought = Brought(folder=tmp_path, wanted=wanted, compare=lambda *_: ours, find_golden=find_in(tmp_path))
    return brought.judge(Reported(passed=True, reason="", comparison=said), component, variant, recorded)


def write_golden(folder: Path) -> RuntimeComponent:
    """A component whose golden set lies in `folder`."""
    (folder / "golden").mkdir()
    (folder / "golden" / "index.json").write_text("{}")
    return replace(COMPONENT, golden_digest=record_folder(folder / "golden").digest)


def find_in(folder: Path) -> Callable[[RuntimeComponent], Path]:
    return lambda component: folder / component.golden / "index.json"


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ((4, 4, 4), 3),
        ((MAX_BYTES, 4), 1),
        ((3 * MAX_BYTES, 4), 1),
        ((MAX_BYTES // 2, MAX_BYTES // 2, 1), 2),
        ((), 0),
    ],
)
def test_as_many_samples_are_brought_back_as_are_small_and_always_one(sizes: tuple[int, ...], count: int) -> None:
    assert count_brought(Recorded(samples=len(sizes), output_bytes=sizes)) == count


def test_our_figures_replace_those_of_the_loader(tmp_path: Path) -> None:
    found = judge(tmp_path, compared(3e-6), compared(2e-6))
    assert found.passed is True
    assert found.comparison == compared(2e-6)


def test_a_part_of_the_samples_leaves_the_loader_s_figures(tmp_path: Path) -> None:
    said = compared(3e-6)
    found = judge(tmp_path, said, compared(2e-6, samples=1, sqnr_db=10.0), sizes=(MAX_BYTES, MAX_BYTES))
    assert (found.passed, found.comparison) == (True, said)


@pytest.mark.parametrize("sizes", [(4, 4), (MAX_BYTES, MAX_BYTES)])
@pytest.mark.parametrize(
    ("said", "ours", "why"),
    [
        (2e-6, 3e-6, "output 'y' has an error of 3e-06, and its loader reports 2e-06"),
        (0.5, 0.5, "error 0.5 where the reference is 1"),
    ],
)
def test_an_error_that_is_larger_than_reported_or_allowed_is_a_failure(
    tmp_path: Path, sizes: tuple[int, ...], said: float, ours: float, why: str
) -> None:
    count = count_brought(Recorded(samples=2, output_bytes=sizes))
    found = judge(tmp_path, compared(said), compared(ours, samples=count), sizes=sizes)
    assert found.passed is False
    assert why in found.reason


def test_a_ratio_over_all_samples_is_ours(tmp_path: Path) -> None:
    found = judge(tmp_path, compared(1e-2, sqnr_db=90.0), compared(1e-2, sqnr_db=30.0), variant=replace(
        VARIANT, gate=Gate(default=Tolerance(sqnr_db=40.0))
    ))  # fmt: skip
    assert found.passed is False
    assert "SQNR 30" in found.reason


def test_what_could_not_be_judged_stays_so(tmp_path: Path) -> None:
    said = compared(0.0, unjudged="it has no limits")
    assert judge(tmp_path, said, compared(0.0)).comparison == said


def test_outputs_that_are_missing_few_or_unreadable_are_failures(tmp_path: Path) -> None:
    def refuse(*_: Path) -> Comparison:
        raise StageError("the golden set in 0 cannot be read")

    recorded = Recorded(samples=2, references={"y": KNOWN}, output_bytes=(4, 4))
    wanted = {SOLE: {"cpu": {"folder": "0", "copy": "0-copy", "samples": 2}}}
    good = Reported(passed=True, reason="", comparison=compared(0.0))
    component = write_golden(tmp_path)
    brought = Brought(folder=tmp_path, wanted=wanted, compare=refuse, find_golden=find_in(tmp_path))
    assert "FileNotFoundError" in brought.judge(good, component, VARIANT, recorded).reason
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "index.json").symlink_to(tmp_path / "elsewhere")
    assert "not a regular file" in brought.judge(good, component, VARIANT, recorded).reason
    (tmp_path / "0" / "index.json").unlink()
    (tmp_path / "0" / "index.json").touch()
    assert "cannot be read" in brought.judge(good, component, VARIANT, recorded).reason
    few = replace(brought, compare=lambda *_: compared(0.0, samples=1))
    assert "those of 1 samples, and 2 were asked for" in few.judge(good, component, VARIANT, recorded).reason


@pytest.mark.parametrize("passed", [None, False])
def test_a_report_that_calls_nothing_good_needs_no_outputs(tmp_path: Path, passed: bool | None) -> None:  # noqa: FBT001
    wanted = {SOLE: {"cpu": {"folder": "0", "copy": "0-copy", "samples": 2}}}
    brought = Brought(folder=tmp_path, wanted=wanted, compare=lambda *_: compared(0.0), find_golden=find_in(tmp_path))
    found = Reported(passed=passed, reason="no driver")
    assert brought.judge(found, COMPONENT, VARIANT, Recorded(samples=2)) is found


def test_another_golden_set_than_runtime_json_names_is_not_compared_with(tmp_path: Path) -> None:
    component = write_golden(tmp_path)
    (tmp_path / "golden" / "index.json").write_text("{ }")
    brought = Brought(
        folder=tmp_path,
        wanted={SOLE: {"cpu": {"folder": "0", "copy": "0-copy", "samples": 2}}},
        compare=lambda *_: compared(0.0),
        find_golden=find_in(tmp_path),
    )
    good = Reported(passed=True, reason="", comparison=compared(0.0))
    found = brought.judge(good, component, VARIANT, Recorded(samples=2, output_bytes=(4, 4)))
    assert "the golden set is not the one" in found.reason


def labels(agreement: float, samples: int) -> Comparison:
    (output,) = compared(0.0, samples).outputs
    found = replace(output, equal=False, agreement=agreement, difference="1 value differs")
    return Comparison(outputs=(found,), samples=samples)


@pytest.mark.parametrize(("least", "passed"), [(0.97, True), (None, False)])
def test_a_share_over_all_samples_is_not_asked_of_a_part(tmp_path: Path, least: float | None, passed: bool) -> None:  # noqa: FBT001
    variant = replace(VARIANT, gate=Gate(default=Tolerance(agreement=least)))
    found = judge(tmp_path, labels(0.98, 2), labels(0.96, 1), sizes=(MAX_BYTES, MAX_BYTES), variant=variant)
    assert found.passed is passed


def test_a_copy_that_ran_has_its_outputs_compared_too_and_the_worse_count(tmp_path: Path) -> None:
    component = write_golden(tmp_path)
    for folder in ("0", "0-copy"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "index.json").touch()
    errors = {"0": 1e-6, "0-copy": 5e-5}
    brought = Brought(
        folder=tmp_path,
        wanted={SOLE: {"cpu": {"folder": "0", "copy": "0-copy", "samples": 2}}},
        compare=lambda _, outputs: compared(errors[outputs.parent.name]),
        find_golden=find_in(tmp_path),
    )
    copied = {"device_copy": {"status": "passed"}}
    good = Reported(passed=True, reason="", comparison=compared(5e-5), raw=copied)
    found = brought.judge(good, component, VARIANT, Recorded(samples=2, output_bytes=(4, 4)))
    assert found.comparison == compared(5e-5)
    (tmp_path / "0-copy" / "index.json").unlink()
    found = brought.judge(good, component, VARIANT, Recorded(samples=2, output_bytes=(4, 4)))
    assert "FileNotFoundError" in found.reason


@pytest.mark.parametrize(("kind", "rounding", "passed"), [
    ("float16", 1e-5, True), ("float32", 1e-5, False), ("float16", 0.0, False)
])  # fmt: skip
def test_two_calls_may_round_to_few_bits_otherwise(tmp_path: Path, kind: str, rounding: float, passed: bool) -> None:  # noqa: FBT001
    component = write_golden(tmp_path)
    port = component.signature.outputs[0]
    outputs = (replace(port, type=replace(port.type, element_type=kind)),)
    component = replace(component, signature=replace(component.signature, outputs=outputs))
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "index.json").touch()
    brought = Brought(
        folder=tmp_path,
        wanted={SOLE: {"cpu": {"folder": "0", "copy": "0-copy", "samples": 2}}},
        compare=lambda *_: compared(1e-3),
        find_golden=find_in(tmp_path),
        rounding=lambda _: rounding,
    )
    good = Reported(passed=True, reason="", comparison=compared(1e-5))
    variant = replace(VARIANT, gate=Gate(default=Tolerance(absolute=1e-2, relative=0.0)))
    assert brought.judge(good, component, variant, Recorded(samples=2, output_bytes=(4, 4))).passed is passed
