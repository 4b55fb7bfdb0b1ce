"""Whole bundles: written, installed with no index, proven, and the same each time."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bundler import api
from bundler.devices.emulation import find_emulator
from bundler.emitters.contract import EmitRequest, ProofRequest
from bundler.emitters.python.emitter import EMITTER
from bundler.emitters.python.layout import read_layout
from bundler.emitters.registry import emitter_names, find_emitter
from bundler.model.artifacts import record_folder
from bundler.model.errors import UsageError, VerificationError
from bundler.model.events import ignore
from bundler.model.measurement import Timing
from bundler.model.proof import Emitted
from bundler.model.runtime import Compatibility
from bundler.profiles.resolve import resolve_target
from tests.integration.python.packages import Package, imported
from tests.support import models
from tests.support.bundles import (
    combine_requests,
    make_request,
    make_variant,
    model_artifact,
    model_outcome,
    sole_component,
    with_variants,
)
from tests.support.command_line import ONE_PYTHON

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def request_(tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    folder = tmp_path_factory.mktemp("bundles")
    return make_request(models.cnn(), folder, name="tiny cnn", overrides=(f"python.versions=['{HERE}']",))


def emit(request: EmitRequest, format_: str, folder: Path) -> tuple[Path, Emitted]:
    bundle = folder / "bundle"
    bundle.mkdir(parents=True)
    emitted = find_emitter("python").emit(dataclasses.replace(request, format=format_), bundle)
    return bundle, emitted


def _ask(bundle: Path, root: Path, **models: Path) -> ProofRequest:
    return ProofRequest(bundle=bundle, cache_root=root, listener=ignore, models=models)


def prove(request: EmitRequest, bundle: Path) -> dict[str, object]:
    proof = find_emitter("python").prove(_ask(bundle, request.environments.root))[0]
    return {"level": proof.level, "passed": proof.passed, "reason": proof.reason, "comparison": proof.comparison}


@pytest.mark.parametrize("format_", ["dir", "wheel", "pex"])
def test_a_bundle_is_proven_in_its_own_runtime_and_is_the_same_each_time(
    request_: EmitRequest, tmp_path: Path, format_: str
) -> None:
    bundle, emitted = emit(request_, format_, tmp_path / "a")
    again, _ = emit(request_, format_, tmp_path / "elsewhere" / "b")
    assert record_folder(bundle) == record_folder(again)
    found = prove(request_, bundle)
    assert (found["level"], found["passed"]) == ("executed", True)
    assert found["comparison"].samples >= 1  # type: ignore[attr-defined]
    assert record_folder(bundle) == record_folder(again), "a proof leaves nothing behind"
    assert {component.name for component in emitted.dependencies} >= {"onnxruntime", "numpy"}


@pytest.fixture(scope="module")
def several(request_: EmitRequest, tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    other = make_request(models.mlp(), tmp_path_factory.mktemp("other"), name="tiny mlp")
    return combine_requests({"detect": request_, "classify": other}, name="tiny two")


@pytest.mark.parametrize("format_", ["dir", "wheel", "pex"])
def test_several_models_are_proven_by_component(several: EmitRequest, tmp_path: Path, format_: str) -> None:
    bundle, emitted = emit(several, format_, tmp_path)
    assert emitted.package == "tiny_two"
    proofs = EMITTER.prove(_ask(bundle, several.environments.root))
    found = [(proof.component, proof.variant, proof.level, proof.passed) for proof in proofs]
    assert found == [(name, "cpu", "executed", True) for name in ("detect", "classify")]


def test_several_models_are_timed_by_component(several: EmitRequest, tmp_path: Path) -> None:
    bundle, _ = emit(several, "dir", tmp_path)
    ask = _ask(bundle, several.environments.root, detect=several.components["detect"].artifacts["cpu"][0].path)
    beside, alone = EMITTER.measure(dataclasses.replace(ask, timing=Timing(seconds=0.5)))
    assert [(times.component, times.variant) for times in (beside, alone)] == [("detect", "cpu"), ("classify", "cpu")]
    assert beside.latency_ms
    assert beside.baseline_latency_ms
    assert alone.latency_ms
    assert not alone.baseline_latency_ms


def test_several_models_are_built_and_opened(shared: Path, tmp_path: Path) -> None:
    """By the same API that builds one, in the runtime of this environment."""
    made = {"detect": models.cnn(), "classify": models.mlp(), "read": models.token_encoder()}
    saved = {name: models.save(model, tmp_path, f"{name}.onnx") for name, model in made.items()}
    parts = {
        name: api.BuildRequest(model=model, target="linux-x64", output=tmp_path / "dist", overrides=(ONE_PYTHON,))
        for name, model in saved.items()
    }
    request = api.combine_requests(parts, name="ocr", together=("detect", "read"))
    result = api.build(request, api.Settings(cache=str(shared / "cache")))
    package = Package(root=result.bundle, name="ocr", cache=tmp_path / "user-cache")
    with imported(package) as module, module.Bundle.open() as bundle:
        assert {name: report.variant for name, report in bundle.report.items()} == dict.fromkeys(made, "cpu")
        assert all(test.passed for test in bundle.self_test().values())
        assert bundle.classify.run(x=np.ones((2, 8), np.float32)).y.shape == (2, 4)
    assert [proof.passed for proof in EMITTER.prove(_ask(result.bundle, shared / "cache"))] == [True] * 3
    assert api.verify(result.bundle, settings=api.Settings(cache=str(shared / "cache"))).proof == "executed"


def test_the_folder_installs_with_no_index_and_runs(request_: EmitRequest, tmp_path: Path) -> None:
    bundle, emitted = emit(request_, "dir", tmp_path)
    environment = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = str(environment / "bin" / "python")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    install = [python, "-m", "pip", "install", "-q", "--no-index", "--find-links", "wheels", "."]
    subprocess.run(install, cwd=bundle, env=plain, check=True, capture_output=True)
    done = subprocess.run(
        [python, "-m", emitted.package, "self-test", "--json", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["variants"][0]["status"] == "passed"


def test_components_carry_their_licences(request_: EmitRequest, tmp_path: Path) -> None:
    bundle, emitted = emit(request_, "dir", tmp_path)
    *wheels, loader = emitted.dependencies
    assert (bundle / str(loader.file)).is_dir()
    for component in wheels:
        assert component.licence != "unknown"
        assert component.file is not None
        assert (bundle / component.file).is_file()
        plain = f"pkg:pypi/{component.name.lower().replace('_', '-')}@{component.version}"
        assert component.purl == f"{plain}?file_name={Path(component.file).name}"
    named = {component.name: component for component in wheels}
    assert {pin.name for pin in read_layout(bundle).lock.pins} == {name.replace("_", "-") for name in named}
    assert [part.name for part in named["flit_core"].parts] == ["tomli"]
    texts = {component.name: component.licence_text for component in wheels}
    assert "MIT License" in texts["onnxruntime"]
    assert "Permission is hereby granted" in texts["onnxruntime"]


def test_an_altered_wheel_is_noticed(request_: EmitRequest, tmp_path: Path) -> None:
    bundle, _ = emit(request_, "dir", tmp_path)
    wheel = next((bundle / "wheels").glob("packaging-*.whl"))
    wheel.write_bytes(wheel.read_bytes() + b"\x00")
    with pytest.raises(VerificationError, match="do not match the lock"):
        prove(request_, bundle)


def test_an_altered_model_fails_its_proof(request_: EmitRequest, tmp_path: Path) -> None:
    bundle, emitted = emit(request_, "dir", tmp_path)
    model = next((bundle / emitted.package / "payload" / "models").glob("*/*.onnx"))
    data = bytearray(model.read_bytes())
    data[-20] ^= 1
    model.write_bytes(bytes(data))
    found = prove(request_, bundle)
    assert found["passed"] is False
    assert "does not match its checksum" in str(found["reason"])


def test_a_crash_is_a_failure_with_a_reason(request_: EmitRequest, tmp_path: Path) -> None:
    bundle, emitted = emit(request_, "dir", tmp_path)
    main = bundle / emitted.package / "__main__.py"
    main.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "utf-8")
    found = prove(request_, bundle)
    assert found["passed"] is False
    assert "SIGSEGV" in str(found["reason"])


def test_a_hang_is_a_failure_with_a_reason(
    request_: EmitRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bundler.emitters.python.launching.TIME_LIMIT", 1.0)
    bundle, emitted = emit(request_, "dir", tmp_path)
    (bundle / emitted.package / "__main__.py").write_text("import time\ntime.sleep(600)\n", "utf-8")
    assert "did not finish" in str(prove(request_, bundle)["reason"])


def test_a_bundle_for_another_system_is_resolved_and_says_why(request_: EmitRequest, tmp_path: Path) -> None:
    requires = Compatibility(systems=("Darwin",), machines=("arm64",), runtime="1.31.1")
    request = with_variants(request_, make_variant("cpu", model_artifact(request_), requires=requires))
    bundle, _ = emit(request, "dir", tmp_path)
    found = prove(request, bundle)
    assert (found["level"], found["passed"]) == ("resolved", None)
    assert "Darwin on arm64" in str(found["reason"])


def test_a_folder_that_is_no_bundle_is_reported(request_: EmitRequest, tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="not a complete Python bundle"):
        prove(request_, tmp_path)


def test_a_wheel_holds_the_model_and_its_pins(request_: EmitRequest, tmp_path: Path) -> None:
    bundle, _ = emit(request_, "wheel", tmp_path)
    with zipfile.ZipFile(next(bundle.glob("*.whl"))) as wheel:
        names = wheel.namelist()
        metadata = wheel.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert "tiny_cnn/payload/runtime.json" in names
    assert "tiny_cnn/py.typed" in names
    assert "Requires-Dist: onnxruntime==1.31.1" in metadata


def test_unknown_names_are_reported(request_: EmitRequest, tmp_path: Path) -> None:
    assert "python" in emitter_names()
    with pytest.raises(UsageError, match="no emitter"):
        find_emitter("cobol")
    with pytest.raises(UsageError, match="no format"):
        emit(request_, "floppy", tmp_path)


def test_a_bundle_is_timed_beside_the_raw_model(request_: EmitRequest, tmp_path: Path) -> None:
    bundle, _ = emit(request_, "dir", tmp_path)
    source = model_outcome(request_).path
    (measured,) = EMITTER.measure(_ask(bundle, request_.environments.root, model=source))
    assert measured.variant == sole_component(request_).variants[0].name
    assert len(measured.opening_ms) == len(measured.baseline_opening_ms) > 0
    assert len(measured.latency_ms) == len(measured.baseline_latency_ms) > 0
    assert min(*measured.opening_ms, *measured.latency_ms) > 0
    (alone,) = EMITTER.measure(_ask(bundle, request_.environments.root))
    assert alone.opening_ms
    assert alone.baseline_opening_ms == alone.baseline_latency_ms == ()


def test_a_bundle_for_another_machine_is_not_timed(request_: EmitRequest, tmp_path: Path) -> None:
    elsewhere = Compatibility(systems=("Plan9",), machines=("z80",), runtime="1.31.1")
    request = with_variants(request_, make_variant("cpu", model_artifact(request_), requires=elsewhere))
    bundle, _ = emit(request, "dir", tmp_path)
    assert EMITTER.measure(_ask(bundle, request.environments.root)) == ()


@pytest.mark.parametrize("format_", ["dir", "wheel", "pex"])
def test_a_bundle_is_the_same_in_a_folder_of_any_name(request_: EmitRequest, tmp_path: Path, format_: str) -> None:
    plain, _ = emit(request_, format_, tmp_path / "plain")
    other, _ = emit(request_, format_, tmp_path / "ünï 码 %41")
    assert record_folder(other) == record_folder(plain)


FULL = 'mount -t tmpfs -o size=4m tmpfs /mnt && HOME=/mnt TMPDIR=/mnt exec "$@"'
READ_ONLY = (
    "mount --bind {bundle} /mnt && mount -o remount,ro,bind /mnt && cd /mnt && "
    'for place in /tmp /var/tmp; do mount -t tmpfs -o ro tmpfs "$place"; done; '
    'HOME=/mnt TMPDIR=/mnt exec "$1" /mnt/*.pex info'
)


@pytest.mark.parametrize(
    ("script", "why"), [(FULL, "No space left on device"), (READ_ONLY, "No usable temporary directory found")]
)
def test_a_single_file_that_finds_no_room_to_unpack_says_so(
    request_: EmitRequest, tmp_path: Path, script: str, why: str
) -> None:
    """Before anything of the package runs."""
    bundle, _ = emit(request_, "pex", tmp_path)
    (file,) = bundle.glob("*.pex")
    alone = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
    if subprocess.run([*alone, "mount -t tmpfs tmpfs /mnt"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a file system of their own")
    if script is READ_ONLY and sys.prefix.startswith(("/tmp/", "/var/tmp/")):  # noqa: S108 - nothing is written there
        pytest.skip("this Python stands in the very folder that the test makes read-only")
    command = [*alone, script.format(bundle=shlex.quote(str(bundle))), "sh", sys.executable, str(file), "info"]
    environment = {"PATH": os.environ["PATH"], "PEX_EMIT_WARNINGS": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 3
    assert done.stderr.startswith(f"error: this file cannot unpack itself\n  why:  {why}")
    assert done.stderr.count("\n") == 3
    assert "PEX_ROOT" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["dir", "wheel", "pex"])
def test_an_arm_bundle_is_proven_under_emulation(request_: EmitRequest, tmp_path: Path, format_: str) -> None:
    if find_emulator("aarch64") is None:
        pytest.skip("no qemu-aarch64-static here")
    requires = Compatibility(systems=("Linux",), machines=("aarch64",), runtime="1.31.1")
    request = with_variants(
        request_, make_variant("cpu", model_artifact(request_), requires=requires), target="raspberry-pi-5"
    )
    request = dataclasses.replace(request, profile=resolve_target("raspberry-pi-5"))
    bundle, _ = emit(request, format_, tmp_path)
    found = prove(request, bundle)
    assert (found["level"], found["passed"]) == ("emulated", True)
