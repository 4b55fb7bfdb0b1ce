"""What a user gets from the command line on good input."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.support import models
from tests.support.command_line import ROOT, CommandLine
from tests.support.documents import read_document

TARGETS = sorted(path.stem for path in (ROOT / "targets").glob("*.toml"))
PLAIN = (
    "linux-arm64",
    "linux-x64",
    "macos-arm64",
    "raspberry-pi-4",
    "raspberry-pi-5",
    "web-wasm",
    "web-webgpu",
    "web-webnn",
    "windows-x64",
)
"""Those that ship their runtime at some megabytes; the others are built in tests/integration/devices."""


def read_manifest(bundle: str | Path) -> dict[str, Any]:
    manifest: dict[str, Any] = read_document(Path(bundle) / "bundle.json")
    return manifest


def read_golden(bundle: str | Path) -> list[dict[str, Any]]:
    golden = Path(bundle) / read_manifest(bundle)["payload"] / "golden" / "index.json"
    samples: list[dict[str, Any]] = json.loads(golden.read_text())["samples"]
    return samples


@pytest.fixture
def mlp(tmp_path: Path) -> Path:
    return models.save(models.mlp(), tmp_path / "in", "mlp.onnx")


@pytest.mark.quick
def test_inspect_tells_signature_operators_and_targets(bundler: CommandLine, mlp: Path) -> None:
    found = bundler.run("inspect", mlp, "--json").expect(0).document
    facts = found["facts"]
    assert facts["signature"]["inputs"][0]["type"]["shape"] == ["batch", 8]
    assert (facts["operators"]["MatMul"], facts["parameter_count"]) == (2, 8 * 16 + 16 + 16 * 4 + 4 + 3)
    misfits = {fit["target"]: fit["obstacles"] for fit in found["targets"] if not fit["fits"]}
    assert {fit["target"] for fit in found["targets"]} == set(TARGETS)
    # Their NPUs compute with integers alone.
    assert set(misfits) == {"qcs6490", "snapdragon-888", "snapdragon-8sg3", "snapdragon-8sg4"}
    assert all("requires a quantised model" in obstacles[0] for obstacles in misfits.values())
    text = bundler.run("inspect", mlp).expect(0).out
    for part in ("x: float32[batch, 8]", "MatMul x2", "opset ai.onnx 17", "batch   (fix one with --dim", *TARGETS):
        assert part in text


def test_inspect_names_what_stands_in_the_way(bundler: CommandLine, tmp_path: Path) -> None:
    big = models.big_external(tmp_path, megabytes=600, layers=1)
    found = bundler.run("inspect", big, "--json").expect(0).document
    fits = {fit["target"]: fit["obstacles"] for fit in found["targets"]}
    assert "budget is 500 MB" in fits["raspberry-pi-4"][0]
    assert fits["linux-x64"] == []
    text = bundler.run("inspect", models.save(models.zipmap(), tmp_path / "in")).expect(0).out
    assert text.count("which a bundle for Java or Android cannot hold") == 1
    assert "\n  NO    snapdragon-8g3         Snapdragon 8 Gen 3\n        as for android-arm64\n" in text


@pytest.mark.quick
def test_plan_says_what_is_new_cached_and_stale(
    cold: CommandLine, here: tuple[str, ...], mlp: Path, tmp_path: Path
) -> None:
    def plan(*options: str) -> dict[str, tuple[str, str]]:
        document = cold.run("plan", mlp, *here, "--json", *options).expect(0).document
        return {step["id"]: (step["state"], step["reason"]) for step in document["steps"]}

    before = plan()
    assert {state for state, _ in before.values()} <= {"new", "unknown"}
    cold.build(mlp, *here, "--output", tmp_path / "out", "--no-prove")
    assert {state for state, _ in plan().values()} == {"cached"}
    changed = plan("--set", "optimization.level=basic")
    assert changed["record_golden"][0] == "cached"
    state, reason = changed["cpu/optimize"]
    assert state == "stale"
    assert "level" in reason
    assert "basic" in reason
    other = plan("--dim", "batch=2")
    assert other["record_golden"][0] == "stale"
    assert other["fix_dimensions"][0] == "new"


def test_plan_runs_nothing(cold: CommandLine, mlp: Path) -> None:
    text = cold.run("plan", mlp, "--target", "linux-x64").expect(0).out
    assert "cpu/optimize" in text
    assert "decisions" in text
    assert not list((cold.cache / "artifacts").rglob("model.onnx"))


@pytest.mark.quick
def test_a_rebuild_with_nothing_changed_writes_nothing(
    bundler: CommandLine, here: tuple[str, ...], mlp: Path, tmp_path: Path
) -> None:
    first = bundler.build(mlp, *here, "--output", tmp_path / "out")
    files = {path: path.stat().st_mtime_ns for path in Path(first["bundle"]).rglob("*")}
    second = bundler.build(mlp, *here, "--output", tmp_path / "out")
    assert (first["up_to_date"], second["up_to_date"]) == (False, True)
    assert second["proof"] == first["proof"] == "executed"
    assert {path: path.stat().st_mtime_ns for path in Path(first["bundle"]).rglob("*")} == files


def test_a_deleted_report_is_written_again_and_no_other_is_announced(
    cold: CommandLine, here: tuple[str, ...], mlp: Path, tmp_path: Path
) -> None:
    options = ("build", mlp, *here, "--no-prove", "--output", tmp_path / "out")
    cold.run(*options).expect(0)
    report = tmp_path / "out" / "mlp-linux-x64.report"
    shutil.rmtree(report)
    again = cold.run(*options).expect(0)
    announced = [line for line in again.out.splitlines() if line.startswith("  Report")]
    assert announced == [f"  Report    {report / 'report.html'}"]
    assert (report / "report.html").is_file()
    assert "report.html is missing: writing the bundle" in again.err
    assert "up to date" in cold.run(*options).expect(0).out


def test_a_quiet_build_prints_one_line_for_each_bundle(bundler: CommandLine, mlp: Path, tmp_path: Path) -> None:
    targets = ("--target", "linux-x64", "--target", "raspberry-pi-5")
    options = (*targets, "--format", "files", "--no-prove", "--output", tmp_path / "out")
    answer = bundler.run("build", mlp, *options, "--quiet").expect(0)
    assert [line.split("  ")[0] for line in answer.out.splitlines()] == [
        str(tmp_path / "out" / f"mlp-{name}") for name in ("linux-x64", "raspberry-pi-5")
    ]
    assert all(", resolved, SHA-256 " in line for line in answer.out.splitlines())
    assert answer.err == "1 warning is not shown: build without --quiet to read it\n"
    told = bundler.run("build", mlp, *options).expect(0).err
    assert told.count("warning:") == 1
    assert told.count("; 1 note as above)") == 1
    both = bundler.run("build", mlp, *options, "--quiet", "--progress", "plain").expect(2)
    assert "--quiet cannot be used with --progress" in both.err


def test_a_changed_bundle_is_built_again(
    bundler: CommandLine, here: tuple[str, ...], mlp: Path, tmp_path: Path
) -> None:
    bundle = Path(bundler.build(mlp, *here, "--output", tmp_path / "out", "--no-prove")["bundle"])
    (bundle / "README.md").write_text("mine now")
    again = bundler.build(mlp, *here, "--output", tmp_path / "out", "--no-prove")
    assert again["up_to_date"] is False
    assert "mine now" not in (bundle / "README.md").read_text()


def test_several_models_and_targets_in_one_call(bundler: CommandLine, mlp: Path, tmp_path: Path) -> None:
    cnn = models.save(models.cnn(), tmp_path / "in", "cnn.onnx")
    targets = ("--target", "macos-arm64", "--target", "linux-x64")
    options = ("--set", 'python.versions=["3.13"]', "--no-prove", "--format", "wheel", "--output", tmp_path / "out")
    bundles = bundler.build_all(mlp, cnn, *targets, *options)
    assert [(bundle["name"], bundle["target"]) for bundle in bundles] == [
        (name, target) for name in ("mlp", "cnn") for target in targets[1::2]
    ]


def test_every_target_is_built_on_this_host_with_its_own_runtime(
    bundler: CommandLine, mlp: Path, tmp_path: Path
) -> None:
    every = [part for target in PLAIN for part in ("--target", target)]
    one = ("--set", 'python.versions=["3.13"]', "--no-prove")
    marks = {"linux-x64": "x86_64", "macos-arm64": "macosx", "windows-x64": "win_amd64"}
    for bundle in bundler.build_all(mlp, *every, *one, "--output", tmp_path / "out"):
        manifest = read_manifest(bundle["bundle"])
        assert (manifest["target"]["id"], manifest["proof"]["level"]) == (bundle["target"], "resolved")
        if manifest["ecosystem"] == "web":
            assert list((Path(bundle["bundle"]) / "vendor").glob("ort-wasm-*.wasm*"))
            continue
        (wheel,) = (Path(bundle["bundle"]) / "wheels").glob("onnxruntime-*.whl")
        assert marks.get(bundle["target"], "aarch64") in wheel.name


@pytest.mark.quick
def test_plain_output_names_the_bundle_its_proof_and_its_report(
    bundler: CommandLine, here: tuple[str, ...], mlp: Path, tmp_path: Path
) -> None:
    answer = bundler.run("build", mlp, *here, "--output", tmp_path / "out").expect(0)
    assert str(tmp_path / "out" / "mlp-linux-x64") in answer.out
    assert "\n  Verified  cpu: executed on this host" in answer.out
    report = tmp_path / "out" / "mlp-linux-x64.report" / "report.html"
    assert str(report) in answer.out
    assert "<html" in report.read_text()[:500]
    assert "warning: the golden set is synthetic" in answer.err


def test_strict_accepts_verified_bundles_alone(
    bundler: CommandLine, here: tuple[str, ...], mlp: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    bundler.run("build", mlp, *here, "--strict", "--output", out).expect(0)
    bundler.run("verify", out / "mlp-linux-x64", "--strict").expect(0)
    elsewhere = ("--target", "windows-x64", "--set", 'python.versions=["3.13"]')
    answer = bundler.run("build", mlp, *elsewhere, "--strict", "--json", "--output", out).expect(8)
    assert answer.document["bundles"][0]["target"] == "windows-x64", "the bundle is there"
    assert f"{out / 'mlp-windows-x64'}: cpu: " in answer.err
    random = models.save(models.random_model(), tmp_path / "in", "random.onnx")
    bundler.run("build", random, *here, "--output", out).expect(0)
    unchecked = bundler.run("verify", out / "random-linux-x64", "--strict").expect(8).err
    assert "cpu: not every output was checked" in unchecked
    readme = (out / "random-linux-x64" / "README.md").read_text("utf-8")
    assert "\n- Not shown by the golden set: output 'noise' could not be judged: " in readme
    for command in (("build", mlp, *here, "--no-prove"), ("verify", out / "mlp-linux-x64", "--digests-only")):
        assert "--strict" in bundler.run(*command, "--strict").expect(2).err


def test_a_packed_bundle_goes_into_a_relative_folder_as_well(
    bundler: CommandLine, here: tuple[str, ...], mlp: Path, tmp_path: Path
) -> None:
    """Its packers run in folders of their own, where a relative path would mean another place."""
    inside = dataclasses.replace(bundler, cwd=tmp_path)
    bundle = inside.build(mlp, *here, "--output", "out", "--format", "wheel", "--no-prove")["bundle"]
    assert list((tmp_path / bundle).glob("mlp-*.whl"))


def test_progress_as_json_lines_leaves_standard_output_to_the_result(
    bundler: CommandLine, here: tuple[str, ...], mlp: Path, tmp_path: Path
) -> None:
    options = ("--no-prove", "--progress", "json", "--json")
    answer = bundler.run("build", mlp, *here, "--output", tmp_path / "out", *options).expect(0)
    events = [json.loads(line)["event"] for line in answer.err.splitlines()]
    assert "StepFinished" in events
    assert answer.document["bundles"][0]["name"] == "mlp"


def _write_samples(folder: Path, kind: str, arrays: np.ndarray) -> Path:
    """`arrays` float32[samples, 1, 8] in one of the three forms."""
    if kind == "one-npz":
        np.savez(folder / "samples.npz", x=arrays)
        return folder / "samples.npz"
    place = folder / "samples"
    for index, array in enumerate(arrays):
        own = place / f"test_data_set_{index}"
        own.mkdir(parents=True)
        if kind == "npz-folder":
            np.savez(place / f"{index}.npz", x=array)
            own.rmdir()
        else:
            (own / "input_0.pb").write_bytes(numpy_helper.from_array(array, "x").SerializeToString())
    return place


@pytest.mark.parametrize("kind", ["npz-folder", "onnx-test-data", "one-npz"])
def test_samples_in_each_form_make_the_golden_set(
    bundler: CommandLine, here: tuple[str, ...], mlp: Path, tmp_path: Path, kind: str
) -> None:
    arrays = np.random.default_rng(3).standard_normal((3, 1, 8)).astype(np.float32)
    samples = _write_samples(tmp_path, kind, arrays)
    bundle = bundler.build(mlp, *here, "--output", tmp_path / "out", "--samples", samples)["bundle"]
    manifest = read_manifest(bundle)
    assert (manifest["synthetic_inputs"], manifest["proof"]["level"]) == (False, "executed")
    golden = Path(bundle) / manifest["payload"] / "golden"
    kept = [np.fromfile(golden / sample["inputs"]["x"]["file"], "<f4") for sample in read_golden(bundle)]
    np.testing.assert_array_equal(np.stack(kept), arrays.reshape(3, 8))


def test_a_fixed_dimension_is_in_the_signature(
    bundler: CommandLine, here: tuple[str, ...], mlp: Path, tmp_path: Path
) -> None:
    options = ("--dim", "batch=4", "--no-prove")
    bundle = Path(bundler.build(mlp, *here, "--output", tmp_path / "out", *options)["bundle"])
    runtime = read_document(bundle / read_manifest(bundle)["payload"] / "runtime.json")
    assert runtime["signature"]["inputs"][0]["type"]["shape"] == [4, 8]


@pytest.mark.quick
def test_diff_tells_what_two_bundles_do_differently(
    bundler: CommandLine, here: tuple[str, ...], mlp: Path, tmp_path: Path
) -> None:
    first = bundler.build(mlp, *here, "--output", tmp_path / "a", "--no-prove")["bundle"]
    basic = ("--set", "optimization.level=basic")
    second = bundler.build(mlp, *here, "--output", tmp_path / "b", "--no-prove", *basic)["bundle"]
    text = bundler.run("diff", first, second).expect(0).out
    assert "model" in text
    assert json.loads(bundler.run("diff", first, first, "--json").expect(0).out) is not None


@pytest.mark.quick
def test_a_bundle_that_was_altered_is_refused(
    bundler: CommandLine, here: tuple[str, ...], mlp: Path, tmp_path: Path
) -> None:
    bundle = Path(bundler.build(mlp, *here, "--output", tmp_path / "out", "--no-prove")["bundle"])
    verified = bundler.run("verify", bundle, "--json").expect(0).document
    assert (verified["proof"], verified["claimed"]) == ("executed", "resolved")
    (model,) = bundle.rglob("model.onnx")
    data = bytearray(model.read_bytes())
    data[len(data) // 2] ^= 1
    model.write_bytes(bytes(data))
    error = bundler.run("verify", bundle, "--json").expect(8).document["error"]
    assert any("model.onnx" in line for line in (error["message"], *error["details"]))


def test_a_file_added_to_a_bundle_is_refused(
    bundler: CommandLine, here: tuple[str, ...], mlp: Path, tmp_path: Path
) -> None:
    bundle = Path(bundler.build(mlp, *here, "--output", tmp_path / "out", "--no-prove")["bundle"])
    (bundle / read_manifest(bundle)["package"] / "extra.py").write_text("print('hello')")
    bundler.run("verify", bundle, "--json").expect(8)


@pytest.mark.quick
def test_help_and_version(bundler: CommandLine) -> None:
    assert "Exit codes: 0 done, 2 usage, 3 bad model" in bundler.run("--help").expect(0).out
    assert bundler.run("--version").expect(0).out.startswith("bundler ")
    for command in (
        "build",
        "plan",
        "inspect",
        "verify",
        "diff",
        "targets",
        "cache",
        "doctor",
        "init",
        "lock",
        "bench",
        "serve",
    ):
        assert "Usage" in bundler.run(command, "--help").expect(0).out


@pytest.mark.quick
def test_the_model_file_is_never_changed(bundler: CommandLine, here: tuple[str, ...], tmp_path: Path) -> None:
    path = models.save_external(models.cnn(), tmp_path / "in")
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.parent.iterdir()}
    bundler.build(path, *here, "--output", tmp_path / "out", "--no-prove")
    assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.parent.iterdir()} == before
    onnx.checker.check_model(str(path))
