"""What cannot become a bundle for an accelerator: one clear message each, and nothing half-written is left."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from syrupy.assertion import SnapshotAssertion

from tests.integration.devices.test_neutral import relist
from tests.integration.test_bad_input import PROFILE, STAGE, USAGE, VERIFICATION, check_refused
from tests.support import models
from tests.support.command_line import CommandLine, list_all, normalise
from tests.support.documents import read_document

ENVIRONMENT = 5
PHONE = "snapdragon-8g3"

Refuse = Callable[..., str]


@pytest.fixture
def refuse(warm: CommandLine, tmp_path: Path) -> Refuse:
    """`refuse(code, model, target, *options)` builds in vain: the error as a person reads it."""

    def build(
        code: int, model: onnx.ModelProto, target: str | Path, *options: str | Path, program: CommandLine = warm
    ) -> str:
        path = models.save(model, tmp_path / "in")
        output = tmp_path / "out"
        inside = dataclasses.replace(program, cwd=tmp_path)
        answer = inside.run("build", path, "--target", target, "--output", output, "--json", *options)
        check_refused(answer, code)
        assert list_all(output) == []
        text = answer.err[answer.err.index("error: ") :]
        return normalise(text, {"tmp": tmp_path, "cache": program.cache})

    return build


def npu(**options: str) -> str:
    """An override: other options for the phone's NPU."""
    given = ", ".join(f'{key} = "{value}"' for key, value in options.items())
    return f'--set=variants.htp.providers=[{{ name = "qnn", options = {{ backend_type = "htp", {given} }} }}]'


CHIPS = {
    "unknown-number": npu(soc_model="999", htp_arch="75"),
    "unknown-name": npu(soc_model="SM9999", htp_arch="75"),
    "not-its-architecture": npu(soc_model="57", htp_arch="73"),
    "fewer-architectures-than-chips": npu(soc_model="57,69", htp_arch="75"),
    "option-spelt-wrong": npu(soc_modell="57", htp_arch="75"),
    "value-that-does-not-exist": npu(soc_model="57", htp_arch="75", htp_performance_mode="turbo"),
    "half-precision-that-it-has-not": npu(soc_model="68", htp_arch="73", enable_htp_fp16_precision="1"),
}


@pytest.mark.parametrize("kind", CHIPS)
def test_a_chip_that_is_not_or_contradicts_itself(refuse: Refuse, kind: str, snapshot: SnapshotAssertion) -> None:
    """The compiler itself would silently leave the model to the CPU, or compile for another device."""
    assert refuse(USAGE, models.cnn(batch=1), PHONE, CHIPS[kind]) == snapshot


SETTINGS = {
    "spelt-wrong": (PHONE, "variants.htp.compile.embd=true"),
    "of-another-compiler": (PHONE, 'variants.htp.compile.compute_capabilities="8.9"'),
    "gpu-that-is-not": ("rtx-4090", 'variants.tensorrt-rtx.compile.compute_capabilities="9.9"'),
    "not-a-flag": (PHONE, "variants.htp.compile.here=sometimes"),
    "nothing-to-compile": (PHONE, "variants.cpu.compile.here=true"),
    "share-above-all": (PHONE, "variants.htp.least_share=1.5"),
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_settings_of_compiling_that_are_not(refuse: Refuse, kind: str, snapshot: SnapshotAssertion) -> None:
    target, override = SETTINGS[kind]
    assert refuse(USAGE, models.cnn(batch=1), target, "--set", override) == snapshot


def test_dimensions_that_nobody_fixes(refuse: Refuse, snapshot: SnapshotAssertion) -> None:
    """The profile fixes those of the usual names."""
    assert refuse(USAGE, models.cnn(batch="clips"), PHONE) == snapshot


def test_floating_point_for_a_chip_of_integers(refuse: Refuse, snapshot: SnapshotAssertion) -> None:
    assert refuse(USAGE, models.cnn(batch=1), "snapdragon-888") == snapshot


PROFILES = {
    "runtime-without-the-provider": """
extends = "linux-x64"
[[variants]]
name = "cann"
providers = [{ name = "cann" }, { name = "cpu" }]
""",
    "runtime-that-lost-the-provider": """
extends = "amd-mi300"
[[variants]]
name = "rocm"
providers = [{ name = "rocm" }, { name = "cpu" }]
""",
    "runtime-of-your-own-alone": """
extends = "linux-arm64"
[[variants]]
name = "npu"
custom_build = true
providers = [{ name = "rknpu" }]
""",
    "plugin-that-is-not-named": """
extends = "linux-x64"
[[variants]]
name = "openvino"
providers = [{ name = "openvino" }, { name = "cpu" }]
""",
}


@pytest.mark.parametrize("kind", PROFILES)
def test_a_provider_that_the_runtime_has_not(
    refuse: Refuse, tmp_path: Path, kind: str, snapshot: SnapshotAssertion
) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text(f'id = "mine"\ntitle = "Mine"{PROFILES[kind]}', encoding="utf-8")
    assert refuse(PROFILE, models.cnn(batch=1), profile) == snapshot


@pytest.mark.parametrize("device", ["frobnicator 9000", "", "\x1b[31mred"])
def test_a_device_that_nobody_knows(
    warm: CommandLine, tmp_path: Path, device: str, snapshot: SnapshotAssertion
) -> None:
    model = models.save(models.cnn(batch=1), tmp_path)
    answer = warm.run("targets", "recommend", model, "--device", device, "--json")
    check_refused(answer, USAGE)
    assert answer.err[answer.err.index("error: ") :] == snapshot


def strange() -> onnx.ModelProto:
    """Two convolutions around an operator that the NPU has not: Acosh, of what is 1 or more."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1, 1, 1, 1], name="first"),
        helper.make_node("Abs", ["a"], ["positive"]),
        helper.make_node("Add", ["positive", "one"], ["above"]),
        helper.make_node("Acosh", ["above"], ["b"], name="strange"),
        helper.make_node("Conv", ["b", "w2"], ["y"], pads=[1, 1, 1, 1], name="last"),
    ]
    kernels = [models.tensor(f"w{place}", models.weights(3, 3, 3, 3, seed=place)) for place in (1, 2)]
    one = models.tensor("one", np.array(1, np.float32))
    shape = [1, 3, 8, 8]
    return models.make_model(nodes, [models.value("x", shape)], [models.value("y", shape)], (*kernels, one))


def test_an_operator_that_no_npu_takes(refuse: Refuse, snapshot: SnapshotAssertion) -> None:
    assert refuse(STAGE, strange(), PHONE) == snapshot


def test_a_profile_may_go_on_with_less_and_says_so_everywhere(warm: CommandLine, tmp_path: Path) -> None:
    model = models.save(strange(), tmp_path, "strange.onnx")
    options = (model, "--target", PHONE, "--set", "variants.htp.shortfall=report", "--output", tmp_path / "out")
    answer = warm.run("build", *options, "--json").expect(0)
    reported = "variant htp: 4 of 5 nodes assigned to QNNExecutionProvider, and the profile requires 90%"
    assert f"strange → {PHONE}: warning: {reported}; the rest runs on the CPU" in answer.err
    (built,) = answer.document["bundles"]
    assert (built["placements"][0]["assigned"], built["placements"][0]["total"]) == (4, 5)
    report = Path(built["report"]).read_text("utf-8")
    assert ": fewer than the required 90%, which the profile tolerates" in report
    assert "operator not supported" in report
    again = warm.run("build", *options).expect(0)
    loud = "FEWER NODES THAN REQUIRED: htp: 4 of 5 nodes assigned to QNNExecutionProvider; the profile requires 90%"
    assert loud in again.out
    manifest = read_document(Path(built["bundle"]) / "bundle.json")
    (facts,) = (stage["facts"] for stage in manifest["stages"] if stage["step"] == "htp/compile_context")
    assert [node["operator"] for node in facts["left_nodes"]] == ["Acosh"]


def test_a_compiler_that_cannot_be_installed(tmp_path: Path) -> None:
    """No index, and nothing kept from before."""
    nowhere = {"UV_OFFLINE": "1", "UV_NO_CACHE": "1", "UV_NO_INDEX": "1", "PIP_NO_INDEX": "1", "PIP_NO_CACHE_DIR": "1"}
    offline = CommandLine(cache=tmp_path / "cache", env={**nowhere, "PIP_FIND_LINKS": str(tmp_path)})
    model = models.save(models.cnn(batch=1), tmp_path / "in")
    engine = ("--target", "rtx-4090", "--format", "files", "--output", tmp_path / "out")
    error = offline.run("build", model, *engine, "--json").expect(ENVIRONMENT).document["error"]
    assert error["kind"] == "environment"
    assert error["message"].startswith("could not install the packages of ")
    assert error["details"], "what the installer said"
    assert error["hint"].startswith("build once with a network")
    assert list_all(tmp_path / "out") == []
    assert not list((offline.cache / "environments").glob("tensorrt*")), "nothing half-made is left to be used"


@pytest.fixture(scope="module")
def phone(warm: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("phone")
    model = models.save(models.cnn(batch=1), folder, "cnn.onnx")
    return Path(warm.build(model, "--target", PHONE, "--format", "files", "--output", folder / "out")["bundle"])


def test_altered_bytes_of_a_context(
    warm: CommandLine, phone: Path, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    moved = shutil.copytree(phone, tmp_path / "altered")
    context = moved / "models" / "htp" / "context.bin"
    data = bytearray(context.read_bytes())
    data[len(data) // 2] ^= 1
    context.write_bytes(data)
    answer = warm.run("verify", moved, "--json")
    check_refused(answer, VERIFICATION)
    assert normalise(answer.err[answer.err.index("error: ") :], {"tmp": tmp_path}) == snapshot


def test_a_context_of_another_version_of_the_compiler(warm: CommandLine, phone: Path, tmp_path: Path) -> None:
    """Whose model it is, and by what it was compiled, is what the manifest lists, and nothing that looks like it."""
    moved = shutil.copytree(phone, tmp_path / "other")
    path = moved / "models" / "htp" / "model.onnx"
    model = onnx.load(path)
    for entry in model.metadata_props:
        assert "2.50.40" in entry.value
        entry.value = entry.value.replace("2.50.40", "2.40.0")
    onnx.save(model, path)
    answer = warm.run("verify", moved).expect(VERIFICATION)
    assert "altered: models/htp/model.onnx" in answer.err


def test_a_context_that_the_vendors_library_does_not_read(
    warm: CommandLine, phone: Path, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    """Whoever writes the manifest anew passes the digests, and is found when it is opened."""
    moved = shutil.copytree(phone, tmp_path / "forged")
    (moved / "models" / "htp" / "context.bin").write_bytes(bytes(4000))
    manifest = json.loads((moved / "bundle.json").read_text("utf-8"))
    manifest["files"] = [relist(moved, record) for record in manifest["files"]]
    (moved / "bundle.json").write_text(json.dumps(manifest))
    answer = warm.run("verify", moved, "--json")
    check_refused(answer, VERIFICATION)
    assert normalise(answer.err[answer.err.index("error: ") :], {"tmp": tmp_path}) == snapshot
