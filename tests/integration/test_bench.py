"""`bundler bench` on bundles as a user builds them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support import models
from tests.support.command_line import CommandLine


def test_bundles_are_timed_beside_the_original_model(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    model = models.save(models.cnn(), tmp_path / "in", "cnn.onnx")
    bundler.build(model, *here, "--output", tmp_path / "out")
    bundle = tmp_path / "out" / "cnn-linux-x64"
    (one,) = bundler.run("bench", bundle, "--baseline", model, "--json").expect(0).document["variants"]
    series = one["measurement"]
    assert len(series["opening_ms"]) == len(series["baseline_opening_ms"]) == one["opening"]["count"] > 1
    assert len(series["latency_ms"]) == one["latency"]["count"] > 1
    assert 0 < one["opening"]["low"] <= one["opening"]["median"] <= one["opening"]["high"]
    assert one["opening_ratio"] == one["opening"]["median"] / one["baseline_opening"]["median"]
    text = bundler.run("bench", bundle, bundle).expect(0).out
    assert text.count("cnn-linux-x64") == 2
    assert "ratio: to" not in text

    options = ("--threads", "1", "--no-spinning", "--batch", "4", "--callers", "1,2", "--seconds", "1")
    document = bundler.run("bench", bundle, *options, "--json").expect(0).document
    assert list(document["variants"][0]["throughput"]) == ["1", "2"]
    assert document["variants"][0]["measurement"]["batch"] == 4
    assert all(spread["median"] > 0 for spread in document["variants"][0]["throughput"].values())
    text = bundler.run("bench", bundle, *options).expect(0).out
    assert "with 4 rows a call and 1 thread inside a call and no spinning" in text
    assert "rows/s" in text
    fixed = bundler.build(model, *here, "--dim=batch=2", "--name=fixed", "--no-prove", "--output", tmp_path / "out")
    reported = bundler.run("bench", fixed["bundle"], "--batch", "4").expect(2).err
    assert f"{fixed['bundle']} only accepts a batch of 2: --batch 4 cannot be timed" in reported
    assert "hint: remove --batch, or build a bundle whose first size is open or 4" in reported
    model = models.save(models.cnn(), tmp_path / "again", "cnn.onnx")
    few = bundler.run("bench", bundle, "--seconds", "0.1", "--baseline", model).expect(0)
    assert ("warning: " in few.err) == ("hint: measure on an idle machine" in few.err)

    report = json.loads((tmp_path / "out" / "cnn-linux-x64.report" / "timings.json").read_text("utf-8"))
    assert report["measurements"], "the report of the build has such figures too"
    page = (tmp_path / "out" / "cnn-linux-x64.report" / "report.html").read_text("utf-8")
    assert "no runtime reported the assignment of nodes to providers" not in page
    reasons = json.loads((bundle / "bundle.json").read_text("utf-8"))["proof"]["variants"]
    assert "as shipped and from the device's own copy" in reasons[0]["reason"]


def test_a_build_times_its_bundle_briefly_and_at_length_when_it_is_asked_to(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    model = models.save(models.cnn(), tmp_path / "in", "cnn.onnx")
    asked = (model, *here, "--output", tmp_path / "out")
    report = tmp_path / "out" / "cnn-linux-x64.report"
    assert not bundler.build(*asked)["up_to_date"]
    brief = json.loads((report / "timings.json").read_text("utf-8"))
    assert "bundler build --measure" in (report / "report.html").read_text("utf-8")
    manifest = (tmp_path / "out" / "cnn-linux-x64" / "bundle.json").read_bytes()

    assert not bundler.build(*asked, "--measure")["up_to_date"]
    full = json.loads((report / "timings.json").read_text("utf-8"))
    assert "bundler build --measure" not in (report / "report.html").read_text("utf-8")
    assert (brief["brief"], full["brief"]) == (True, False)
    calls = [found["measurements"][0]["latency_ms"]["spread"]["count"] for found in (brief, full)]
    assert 0 < calls[0] <= calls[1]  # A small model reaches the greatest number of calls in either time.
    assert (tmp_path / "out" / "cnn-linux-x64" / "bundle.json").read_bytes() == manifest
    assert bundler.build(*asked, "--measure")["up_to_date"]
    assert bundler.build(*asked)["up_to_date"], "what took longer is not thrown away for brief figures"
    assert json.loads((report / "timings.json").read_text("utf-8")) == full

    refused = bundler.run("build", *asked, "--measure", "--no-prove").expect(2).err
    assert "--measure cannot be used with --no-prove" in refused


def test_wrong_use_is_reported(bundler: CommandLine, tmp_path: Path) -> None:
    assert "no model" in bundler.run("bench", tmp_path, "--baseline", tmp_path / "none.onnx").expect(2).err
    assert bundler.run("bench", tmp_path).expect(8).err
