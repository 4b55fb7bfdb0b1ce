"""Bundles of files, as a user builds them for any target and verifies them from their folder alone."""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path
from typing import Any

import pytest

from bundler.model.artifacts import record_folder
from tests.support import models
from tests.support.command_line import CommandLine
from tests.support.recurrent_models import make_gru


def proofs(bundle: Path) -> dict[str, dict[str, Any]]:
    manifest = json.loads((bundle / "bundle.json").read_text("utf-8"))
    assert (manifest["ecosystem"], manifest["payload"]) == ("neutral", ".")
    return {record["variant"]: record for record in manifest["proof"]["variants"]}


@pytest.fixture(scope="module")
def bundle(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For a machine of another kind, whose own ecosystem is Python's."""
    folder = tmp_path_factory.mktemp("neutral")
    model = models.save(models.cnn(), folder, "cnn.onnx")
    bundler.build(model, "--target", "linux-arm64", "--format", "files", "--output", folder / "out")
    return folder / "out" / "cnn-linux-arm64"


def test_any_target_can_be_written_as_files(bundle: Path) -> None:
    held = {path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()}
    assert {"README.md", "runtime.json", "bundle.json", "sbom.cdx.json", "NOTICES", "golden/index.json"} <= held
    assert not [name for name in held if name.endswith((".whl", ".py"))]


def test_the_model_was_run_where_it_was_built_and_no_more_is_claimed(bundle: Path) -> None:
    assert proofs(bundle)["cpu"] == {
        "component": "model",
        "variant": "cpu",
        "level": "stand-in",
        "passed": True,
        "reason": "ran with onnxruntime 1.31.1 for Python on this machine",
        "place": "",
        "stand_in": True,
        "means": "",
        "unrun": [],
        "ran_on": {
            "device": "local",
            "system": platform.system(),
            "processor": platform.machine(),
            "runtime": "onnxruntime 1.31.1",
        },
    }


@pytest.mark.quick
def test_it_is_verified_from_its_folder_alone(bundler: CommandLine, bundle: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(bundle, tmp_path / "elsewhere")
    answer = bundler.run("verify", moved, "--json").expect(0).document
    assert (answer["proof"], answer["claimed"]) == ("stand-in", "stand-in")


@pytest.mark.parametrize("name", ["runtime.json", "golden/index.json", "README.md"])
def test_altered_bytes_are_refused(bundler: CommandLine, bundle: Path, tmp_path: Path, name: str) -> None:
    moved = shutil.copytree(bundle, tmp_path / "altered")
    data = bytearray((moved / name).read_bytes())
    data[-2] ^= 1
    (moved / name).write_bytes(data)
    assert f"altered: {name}" in bundler.run("verify", moved).expect(8).err


def test_an_altered_model_is_refused_though_it_still_opens(bundler: CommandLine, bundle: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(bundle, tmp_path / "altered")
    (model,) = moved.glob("models/*/model.*")
    model.write_bytes(model.read_bytes() + b"\0")
    assert "altered: models/" in bundler.run("verify", moved).expect(8).err


def test_answers_that_are_not_the_model_s_are_refused(bundler: CommandLine, bundle: Path, tmp_path: Path) -> None:
    """Whoever writes the manifest anew passes the digests, and still has to give the golden answers."""
    moved = shutil.copytree(bundle, tmp_path / "forged")
    answer = moved / "golden" / "000" / "out-0.bin"
    answer.write_bytes(bytes(len(answer.read_bytes())))
    forge_manifest(moved)
    assert "its golden set is not the one" in bundler.run("verify", moved).expect(8).err
    config = json.loads((moved / "runtime.json").read_text("utf-8"))
    config["components"][0]["golden_digest"] = record_folder(moved / "golden").digest
    (moved / "runtime.json").write_text(json.dumps(config))
    forge_manifest(moved)
    assert "does not reproduce its golden set" in bundler.run("verify", moved).expect(8).err


@pytest.mark.parametrize("forged", ["samples", "judged", "unstable"])
def test_where_nothing_was_judged_nothing_is_verified(
    bundler: CommandLine, bundle: Path, tmp_path: Path, forged: str
) -> None:
    """A bundle that holds itself to nothing, while its manifest says that all was judged."""
    moved = shutil.copytree(bundle, tmp_path / "forged")
    config = json.loads((moved / "runtime.json").read_text("utf-8"))
    index = json.loads((moved / "golden" / "index.json").read_text("utf-8"))
    (component,) = config["components"]
    names = [port["name"] for port in component["signature"]["outputs"]]
    if forged == "samples":
        index["samples"] = []
    elif forged == "unstable":
        component["unstable_outputs"] = names
    for variant in component["variants"] if forged == "judged" else ():
        variant["gate"] = {"default": {**variant["gate"]["default"], "judged": False}, "outputs": {}}
    (moved / "golden" / "index.json").write_text(json.dumps(index))
    component["golden_digest"] = record_folder(moved / "golden").digest
    (moved / "runtime.json").write_text(json.dumps(config))
    forge_manifest(moved)
    answer = bundler.run("verify", moved, "--json").expect(0).document
    assert (answer["proof"], answer["claimed"]) == ("ran-unchecked", "stand-in")


def test_several_models_are_one_bundle_and_each_is_judged_by_its_own_golden_set(
    bundler: CommandLine, tmp_path: Path
) -> None:
    named = [
        f"{name}={models.save(model, tmp_path / 'in', f'{name} file.onnx')}"
        for name, model in (("detect", models.cnn()), ("recognise", models.mlp()))
    ]
    bundler.run("build", *named, "--bundle", "ocr", "--target", "linux-arm64", "--format", "files",
                "--output", tmp_path).expect(0)  # fmt: skip
    bundle = tmp_path / "ocr-linux-arm64"
    manifest = json.loads((bundle / "bundle.json").read_text("utf-8"))
    assert [part["model"]["name"] for part in manifest["components"]] == ["detect-file", "recognise-file"]
    line = "Stand-in  detect/cpu, recognise/cpu: ran on this host in place of the device"
    assert line in bundler.run("verify", bundle).expect(0).out
    for name in ("detect", "recognise"):
        assert (bundle / "golden" / name / "index.json").is_file()
        assert [path.name for path in (bundle / "models" / name).iterdir()] == ["cpu"]
    answer = bundle / "golden" / "recognise" / "000" / "out-0.bin"
    answer.write_bytes(bytes(len(answer.read_bytes())))
    forge_manifest(bundle)
    assert "the golden set of recognise is not the one" in bundler.run("verify", bundle).expect(8).err


@pytest.mark.parametrize(
    ("state", "fault"),
    [
        ([], "its state is not that of the golden set"),
        ([{"initial": "constant", "value": 0.5}], "the initial value of 'h0' is not that of the golden set"),
        ([{"initial": "constant", "value": 1e308}], "its golden set has no initial state that can be read"),
        (
            [{"initial": "file", "file": "runtime.json", "shape": [1, 8], "sha256": "0" * 64}],
            "the initial value of 'h0' is not that of the golden set",
        ),
    ],
    ids=["none", "constant", "infinite", "file"],
)
def test_a_stream_that_begins_otherwise_than_its_golden_set_is_refused(
    bundler: CommandLine, stream: Path, tmp_path: Path, state: list[dict[str, Any]], fault: str
) -> None:
    moved = shutil.copytree(stream, tmp_path / "forged")
    config = json.loads((moved / "runtime.json").read_text("utf-8"))
    (link,) = config["components"][0]["state"]
    config["components"][0]["state"] = [{**link, **given} for given in state]
    (moved / "runtime.json").write_text(json.dumps(config))
    forge_manifest(moved)
    assert fault in bundler.run("verify", moved).expect(8).err


@pytest.fixture(scope="module")
def stream(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stream")
    model = models.save(make_gru(), folder, "gru.onnx")
    options = ("--target", "linux-arm64", "--format", "files", "--output", folder / "out")
    bundler.build(model, "--state", "h0=hn", *options)
    bundler.run("verify", folder / "out" / "gru-linux-arm64").expect(0)
    return folder / "out" / "gru-linux-arm64"


@pytest.mark.parametrize("initial", ["-0.0", "0.3"])
def test_a_stream_that_begins_with_a_number_is_verified(bundler: CommandLine, tmp_path: Path, initial: str) -> None:
    model = models.save(make_gru(), tmp_path, "gru.onnx")
    options = ("--target", "linux-arm64", "--format", "files", "--output", tmp_path / "out")
    built = bundler.build(model, "--state", f"h0=hn,initial={initial}", *options)
    bundler.run("verify", built["bundle"]).expect(0)


def forge_manifest(moved: Path) -> None:
    """Make bundle.json fit what lies there: its files, and each component's golden set as runtime.json has it."""
    manifest = json.loads((moved / "bundle.json").read_text("utf-8"))
    components = json.loads((moved / "runtime.json").read_text("utf-8"))["components"]
    for described, component in zip(manifest["components"], components, strict=True):
        (golden,) = (item for item in described["artifacts"] if item["kind"] == "golden")
        golden["digest"] = component["golden_digest"]
    manifest["files"] = [relist(moved, record) for record in manifest["files"]]
    (moved / "bundle.json").write_text(json.dumps(manifest))


def relist(folder: Path, record: dict[str, Any]) -> dict[str, Any]:
    from bundler.model.digests import digest_file  # noqa: PLC0415 (this test alone forges)

    path = folder / record["path"]
    return {**record, "size": path.stat().st_size, "sha256": digest_file(path)}


def test_equal_input_gives_equal_bytes(bundler: CommandLine, bundle: Path, tmp_path: Path) -> None:
    model = bundle.parents[1] / "cnn.onnx"
    bundler.build(model, "--target", "linux-arm64", "--format", "files", "--output", tmp_path)
    again = tmp_path / bundle.name
    for path in sorted(bundle.rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (again / path.relative_to(bundle)).read_bytes(), path.name


@pytest.mark.slow
def test_a_phone_s_context_is_run_in_emulation_and_what_is_left_says_why(bundler: CommandLine, tmp_path: Path) -> None:
    """The compiler's environment is a download of some hundred megabytes."""
    model = models.save(models.cnn(batch=1), tmp_path / "in", "cnn.onnx")
    bundler.build(model, "--target", "snapdragon-8g3", "--format", "files", "--output", tmp_path)
    bundle = tmp_path / "cnn-snapdragon-8g3"
    levels = {name: record["level"] for name, record in proofs(bundle).items()}
    assert (levels["htp"], levels["cpu"]) == ("emulated", "stand-in")
    context = bundle / "models" / "htp" / "context.bin"
    data = bytearray(context.read_bytes())
    data[len(data) // 2] ^= 1
    context.write_bytes(data)
    assert "altered: models/htp/context.bin" in bundler.run("verify", bundle).expect(8).err


@pytest.mark.slow
def test_a_context_for_several_phones_is_run_nowhere_here(bundler: CommandLine, tmp_path: Path) -> None:
    model = models.save(models.cnn(batch=1), tmp_path / "in", "cnn.onnx")
    bundler.build(model, "--target", "snapdragon-8-series", "--format", "files", "--output", tmp_path)
    record = proofs(tmp_path / "cnn-snapdragon-8-series")["htp"]
    assert record["level"] == "resolved"
    assert "compiled for several devices at once" in record["reason"]
