"""The table of `bundler bench`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from bundler.cli.commands.bench import parse_callers
from bundler.cli.timetable import throughput_lines, timetable_lines
from bundler.model.errors import UsageError, VerificationError
from bundler.model.events import ignore
from bundler.model.measurement import Measurement, Timing
from bundler.model.runtime import SOLE
from bundler.pipeline import bench as benching
from bundler.pipeline.bench import VariantTimes, bench
from bundler.pipeline.workspace import Workspace, open_workspace
from bundler.reporting.data import Spread
from bundler.reporting.manifest import make_manifest, write_manifest
from tests.unit.reporting.builds import make_request


def spread(median: float, count: int = 30) -> Spread:
    return Spread(median=median, low=median * 0.9, high=median * 1.25, count=count)


def times(name: str, opening: float, latency: float, *, plain: float | None = None) -> VariantTimes:
    return VariantTimes(
        bundle=Path("dist") / name,
        target="linux-x64",
        variant="cpu",
        opening=spread(opening),
        latency=spread(latency, 1000),
        baseline_opening=None if plain is None else spread(plain),
        baseline_latency=None if plain is None else spread(latency, 980),
        opening_ratio=None if plain is None else opening / plain,
        latency_ratio=None if plain is None else 1.0,
        measurement=Measurement(name="golden sample 0", variant="cpu"),
    )


def test_bundles_stand_side_by_side(snapshot: SnapshotAssertion) -> None:
    found = (times("small-linux-x64", 1.1, 0.0064), times("large-linux-x64", 1250.0, 310.5))
    assert "\n".join(timetable_lines(found)) == snapshot


def test_the_baseline_stands_below(snapshot: SnapshotAssertion) -> None:
    found = (times("one-linux-x64", 30.0, 5.0, plain=60.0), times("two-linux-x64", 20.0, 5.0, plain=50.0))
    assert "\n".join(timetable_lines(found)) == snapshot


def test_what_several_callers_get_done_stands_in_a_table_of_its_own(snapshot: SnapshotAssertion) -> None:
    one = times("small-linux-x64", 1.1, 0.0064)
    throughput = {1: spread(812.5, 5), 2: spread(1500.0, 5), 16: spread(25_000.0, 5)}
    plain = replace(one, throughput=throughput)
    batched = replace(plain, measurement=replace(one.measurement, batch=8))
    assert "\n".join([*throughput_lines((plain, one)), *throughput_lines((batched,))]) == snapshot
    assert list(throughput_lines((one,))) == []


@pytest.mark.parametrize("text", ["0", "1,,2", "1,x", "-1", "257", "1.5", "9" * 5000])
def test_callers_that_are_no_numbers_are_reported(text: str) -> None:
    with pytest.raises(UsageError, match="--callers"):
        parse_callers(text)


def test_callers_count_once_each() -> None:
    assert parse_callers("4, 1,4") == (4, 1)
    assert parse_callers("") == ()


def test_a_folder_name_cannot_control_the_terminal() -> None:
    assert "\x1b" not in "\n".join(timetable_lines((times("\x1b[2J", 1.0, 1.0, plain=2.0),)))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    with open_workspace(str(tmp_path / "cache")) as found:
        return found


def test_a_missing_baseline_is_reported(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no model .*nothing\.onnx"):
        bench((tmp_path,), {SOLE: tmp_path / "nothing.onnx"}, workspace, ignore)


def test_nothing_to_time_is_reported(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benching, "_time_bundle", lambda *_: [])
    write_manifest(tmp_path, make_manifest(tmp_path, make_request()))
    with pytest.raises(VerificationError, match="no bundle could be timed"):
        bench((tmp_path,), {}, workspace, ignore)


@pytest.mark.parametrize("timing", [Timing(batch=2), Timing(threads=1), Timing(callers=(1, 2))])
def test_web_bundles_say_what_they_cannot_before_anything_runs(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timing: Timing
) -> None:
    monkeypatch.setattr(benching, "_time_bundle", lambda *_: pytest.fail("it ran"))
    write_manifest(tmp_path, replace(make_manifest(tmp_path, make_request()), ecosystem="web"))
    with pytest.raises(UsageError, match="cannot be timed with --batch, --threads, --spinning or --callers") as caught:
        bench((tmp_path,), {}, workspace, ignore, timing=timing)
    assert "one call at a time" in caught.value.details[0]


def test_a_folder_that_is_no_bundle_is_reported(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(VerificationError):
        bench((tmp_path,), {}, workspace, ignore)
