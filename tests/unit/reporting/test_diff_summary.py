"""The first sentences of `bundler diff`."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from bundler.model.manifest import Manifest
from bundler.model.runtime import SOLE
from bundler.reporting.data import Spread
from bundler.reporting.diff import diff_bundles, render_diff
from bundler.reporting.diff_summary import summarize_difference
from bundler.reporting.manifest import write_manifest
from bundler.reporting.timings import Timed, Timings, read_timings, report_folder
from tests.unit.reporting.builds import change_manifest

CPU = (SOLE, "cpu")


def timed(latency: float, baseline: float = 10.0, *, count: int = 100, others: float | None = 0.0) -> Timed:
    def spread(median: float) -> Spread:
        return Spread(median=median, low=median * 0.98, high=median * 1.02, count=count)

    return Timed(latency=spread(latency), baseline=spread(baseline), others=others)


def with_output(manifest: Manifest, **figures: Any) -> Manifest:
    """The manifest with other figures in the last comparison."""
    last = manifest.sole.checks[-1]
    output = dataclasses.replace(last.outputs[0], **figures)
    return change_manifest(manifest, checks=(*manifest.sole.checks[:-1], dataclasses.replace(last, outputs=(output,))))


def with_facts(manifest: Manifest, facts: dict[str, Any]) -> Manifest:
    stages = [
        dataclasses.replace(stage, facts=facts) if stage.step == "cpu/convert_ort" else stage
        for stage in manifest.sole.stages
    ]
    return change_manifest(manifest, stages=tuple(stages))


def test_what_is_equal_and_what_is_not_comes_first(manifest: Manifest) -> None:
    runtime = dataclasses.replace(manifest.runtime, version="9.9.9")
    target = dataclasses.replace(manifest.target, profile_digest="0" * 64)
    other = change_manifest(manifest, runtime=runtime, target=target)
    assert summarize_difference(manifest, other)[0] == (
        "Equal: model, target, format, version of bundler. Different: runtime, profile of the target."
    )


def test_equal_figures_are_called_equal(manifest: Manifest) -> None:
    same = {CPU: timed(5.0)}
    reported = summarize_difference(manifest, manifest, (same, same))[1]
    assert reported == "Size, accuracy and placement are equal; speed of cpu: no difference shown."


def test_size_accuracy_placement_and_speed_are_reported_in_one_sentence(manifest: Manifest) -> None:
    variant = manifest.sole.variants[0]
    before = with_facts(manifest, {"provider": "QNN", "assigned": 3, "left": 2})
    after = with_facts(with_output(manifest, sqnr_db=88.0), {"provider": "QNN", "assigned": 5, "left": 0})
    after = change_manifest(after, variants=(dataclasses.replace(variant, size=variant.size // 4),))
    reported = summarize_difference(before, after, ({CPU: timed(10.0)}, {CPU: timed(5.0)}))[1]
    assert reported.startswith("B has a model that is 75 % smaller (")
    assert "is further from the original model (cpu: SQNR 131.4 dB → SQNR 88.0 dB)" in reported
    assert "assigns 5 of 5 nodes of cpu to QNN instead of 3 of 5 nodes" in reported
    assert reported.endswith(" and is 2 times faster (cpu, relative to the original model).")
    back = summarize_difference(after, before, ({CPU: timed(5.0)}, {CPU: timed(10.0)}))[1]
    assert "B has a model that is 300 % larger (" in back
    assert "closer to the original model" in back
    assert "2 times slower" in back


def test_equal_to_the_bit_is_closer_than_any_figure(manifest: Manifest) -> None:
    reported = summarize_difference(manifest, with_output(manifest, equal=True))[1]
    assert "B is closer to the original model (cpu: SQNR 131.4 dB → bit-identical)" in reported


def test_variants_that_one_lacks_are_reported(manifest: Manifest) -> None:
    renamed = change_manifest(manifest, variants=(dataclasses.replace(manifest.sole.variants[0], name="gpu"),))
    assert "B lacks cpu, has gpu instead" in summarize_difference(manifest, renamed)[1].replace(" and has", ", has")
    more = change_manifest(manifest, variants=(*renamed.sole.variants, *manifest.sole.variants))
    assert "B has gpu in addition" in summarize_difference(manifest, more)[1]


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ({CPU: timed(10.0)}, {}, "do not both have times"),
        ({CPU: timed(10.0, count=3)}, {CPU: timed(5.0)}, "too few runs"),
        ({CPU: timed(10.0)}, {CPU: timed(5.0, others=0.9)}, "the machine was busy"),
        ({CPU: timed(10.0, 10.0)}, {CPU: timed(5.0, 5.0)}, "no difference shown"),
    ],
)
def test_speed_is_claimed_only_where_it_was_shown(
    manifest: Manifest, before: Timings, after: Timings, why: str
) -> None:
    """In the last case the machine was another one: the original model took half the time as well."""
    assert why in summarize_difference(manifest, manifest, (before, after))[1]


def test_speed_of_different_models_is_not_compared(manifest: Manifest) -> None:
    other = change_manifest(manifest, model=dataclasses.replace(manifest.sole.model, digest="0" * 64))
    reported = summarize_difference(manifest, other, ({CPU: timed(10.0)}, {CPU: timed(5.0)}))[1]
    assert "the models, or the names of their files, differ" in reported


def write_report(bundle: Path, text: str) -> None:
    report_folder(bundle).mkdir(exist_ok=True)
    (report_folder(bundle) / "timings.json").write_text(text)


def test_times_come_from_the_reports_beside_the_bundles(bundle: Path, manifest: Manifest, tmp_path: Path) -> None:
    write_manifest(bundle, manifest)
    second = tmp_path / "second"
    second.mkdir()
    write_manifest(second, change_manifest(manifest, bundler="9.9.9"))
    for place, latency in ((bundle, 10.0), (second, 5.0)):
        spread = {"median": latency, "low": latency, "high": latency, "count": 50}
        plain = {**spread, "median": 10.0}
        measured = {
            "variant": "cpu",
            "others": 0.0,
            "latency_ms": {"spread": spread},
            "baseline_latency_ms": {"spread": plain},
        }
        write_report(place, json.dumps({"measurements": [measured]}))
    text = render_diff(diff_bundles(bundle, second)).splitlines()
    assert text[3].startswith("Equal: model, target, runtime, format. Different: version of bundler.")
    assert text[4] == "B is 2 times faster (cpu, relative to the original model)."


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"measurements": 3}',
        '{"measurements": [3]}',
        '{"measurements": [{"variant": "cpu"}]}',
        '{"measurements": [{"variant": "c", "latency_ms": {"spread": {"median": "x"}}, "baseline_latency_ms": {}}]}',
    ],
)
def test_a_report_that_is_none_of_ours_says_nothing(tmp_path: Path, text: str) -> None:
    write_report(tmp_path / "bundle", text)
    assert read_timings(tmp_path / "bundle") == {}


def test_a_pipe_in_place_of_the_times_is_not_waited_for(tmp_path: Path) -> None:
    report_folder(tmp_path / "bundle").mkdir()
    os.mkfifo(report_folder(tmp_path / "bundle") / "timings.json")
    assert read_timings(tmp_path / "bundle") == {}


def test_a_manifest_with_a_negative_size_can_be_compared(manifest: Manifest) -> None:
    negative = dataclasses.replace(manifest.sole.variants[0], size=-5)
    other = change_manifest(manifest, variants=(negative, *manifest.sole.variants[1:]))
    for pair in ((manifest, other), (other, manifest)):
        assert len(summarize_difference(*pair)) == 2
