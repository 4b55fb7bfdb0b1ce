"""Which variants of a bundle of files can be run where it was built, and what that proves."""

from __future__ import annotations

import dataclasses
import json
import platform
from pathlib import Path
from typing import Any

import pytest

from bundler.emitters.contract import EmitRequest, ProofRequest
from bundler.emitters.neutral import proving
from bundler.emitters.neutral.emitter import EMITTER
from bundler.emitters.neutral.proving import Way, find_way, prove_bundle
from bundler.emitters.neutral.running import Bench, session_options
from bundler.environments.lockfiles import render_pins
from bundler.environments.registry import Environment, Environments
from bundler.model.errors import EnvironmentMissingError, StageError, VerificationError
from bundler.model.events import Event, ignore
from bundler.model.proof import VariantProof
from bundler.model.results import Comparison, OutputComparison
from bundler.model.runtime import Compatibility, Compiled, RuntimeComponent, RuntimeVariant
from bundler.pipeline.build import build
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.workspace import open_workspace
from tests.support import models
from tests.support.bundles import with_component
from tests.support.neutral_bundles import OPENVINO, QNN, make_files_request


def variant(request: EmitRequest, name: str) -> RuntimeVariant:
    return next(variant for variant in request.config.components[0].variants if variant.name == name)


def compile_for(base: RuntimeVariant, provider: str, *, native: bool) -> RuntimeVariant:
    here = Compatibility(
        systems=(platform.system(),) if native else ("Android",),
        machines=(platform.machine(),) if native else ("aarch64",),
        runtime="1.31.1",
        compiled=Compiled(provider=provider, devices=("CPU",), sdk="1"),
    )
    entry = dataclasses.replace(base.providers[0], name=provider, library=None)
    return dataclasses.replace(base, requires=here, providers=(entry,))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("series", "it was compiled for several devices at once (43, 57, 69), and only a device can pick its part"),
        ("tensorrt", "its TensorRT engine is generated on the device"),
        ("openvino", "its OpenVINO blob is generated on the device"),
        ("xnnpack", "onnxruntime for Python, which would run it here, has no XnnpackExecutionProvider"),
    ],
)
def test_what_only_the_device_can_run_says_why(request_: EmitRequest, name: str, reason: str) -> None:
    assert find_way(variant(request_, name)) == reason


def test_a_variant_of_the_cpu_runs_on_the_same_version_of_the_runtime(request_: EmitRequest) -> None:
    way = find_way(variant(request_, "cpu"))
    assert way == Way(
        environment="onnxruntime==1.31.1",
        level="stand-in",
        remark="ran with onnxruntime 1.31.1 for Python on this machine",
    )


def test_a_context_runs_in_its_compiler_s_environment(request_: EmitRequest) -> None:
    way = find_way(compile_for(variant(request_, "htp"), QNN, native=False))
    assert isinstance(way, Way)
    assert (way.environment, way.level, way.plugin) == ("qnn", "emulated", "onnxruntime_qnn")


def test_a_context_for_a_machine_like_this_one_is_no_emulation(request_: EmitRequest) -> None:
    way = find_way(compile_for(variant(request_, "htp"), QNN, native=True))
    assert isinstance(way, Way)
    assert way.level == "stand-in"


def test_an_engine_whose_compiler_cannot_run_it_says_so(request_: EmitRequest) -> None:
    name = "NvTensorRTRTXExecutionProvider"
    assert find_way(compile_for(variant(request_, "htp"), name, native=True)) == (
        f"the file compiled for {name} runs on the device only"
    )


def test_a_provider_that_nobody_knows_says_so(request_: EmitRequest) -> None:
    strange = compile_for(variant(request_, "htp"), "MoonExecutionProvider", native=True)
    assert find_way(strange) == "the file compiled for MoonExecutionProvider runs on the device only"


def test_the_session_is_opened_as_the_device_will(request_: EmitRequest) -> None:
    assert session_options(variant(request_, "htp")) == {
        "providers": [[QNN, {"backend_type": "htp", "soc_model": "57", "htp_arch": "75"}]],
        "session": {"graph_optimization_level": "ORT_ENABLE_EXTENDED", "intra_op_num_threads": 1},
        "session_config": {"session.intra_op.allow_spinning": "0"},
        "disabled_optimizers": [],
        "plugins": {QNN: {"library": "onnxruntime_qnn", "select": {}}},
        "check_providers": True,
    }


def test_a_provider_that_the_device_s_runtime_has_comes_from_a_plugin_here(request_: EmitRequest) -> None:
    built_in = compile_for(variant(request_, "htp"), OPENVINO, native=True)
    options = session_options(built_in, "onnxruntime_ep_openvino")
    assert options["plugins"] == {OPENVINO: {"library": "onnxruntime_ep_openvino", "select": {}}}


class FakeBench:
    """Stands in for the workers: what a comparison finds is reported beforehand."""

    def __init__(self, found: Comparison | Exception) -> None:
        self.found = found

    def compare(self, *_: Any) -> Comparison:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def prove(request: EmitRequest, folder: Path, monkeypatch: pytest.MonkeyPatch, found: Any) -> VariantProof:
    EMITTER.emit(request, folder)
    monkeypatch.setattr(Bench, "compare", FakeBench(found).compare)
    (proof,) = prove_bundle(ProofRequest(bundle=folder, cache_root=folder / "cache", listener=ignore))
    return proof


def output(**changes: Any) -> Comparison:
    figures: dict[str, Any] = {
        "max_absolute": 0.0,
        "mean_absolute": 0.0,
        "max_relative": 0.0,
        "cosine": 1.0,
        "sqnr_db": None,
        "top1_agreement": 1.0,
    }
    return Comparison(samples=3, outputs=(OutputComparison(name="scores", equal=False, **{**figures, **changes}),))


@pytest.fixture
def plain(tmp_path: Path) -> EmitRequest:
    (tmp_path / "bundle").mkdir()
    return make_files_request(models.cnn(), tmp_path / "made")


def test_answers_within_the_gate_pass(plain: EmitRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proof = prove(plain, tmp_path / "bundle", monkeypatch, output())
    assert (proof.level, proof.passed) == ("stand-in", True)


def test_answers_beyond_the_gate_fail_and_say_which(
    plain: EmitRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = prove(plain, tmp_path / "bundle", monkeypatch, output(sqnr_db=12.0, max_absolute=0.5))
    assert proof.passed is False
    assert "output 'scores': SQNR 12 dB (min 40)" in proof.reason


def test_a_model_that_does_not_open_fails(plain: EmitRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = StageError("ONNX Runtime cannot load the model", details=("no such operator",))
    proof = prove(plain, tmp_path / "bundle", monkeypatch, error)
    assert (proof.passed, proof.reason) == (False, "ONNX Runtime cannot load the model; no such operator")


def test_without_the_environment_nothing_is_claimed(
    plain: EmitRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Environment:
        raise EnvironmentMissingError("no network")

    monkeypatch.setattr(Environments, "resolve", refuse)
    proof = prove(plain, tmp_path / "bundle", monkeypatch, output())
    assert (proof.level, proof.passed) == ("resolved", None)
    assert proof.reason == "the environment onnxruntime==1.31.1 is not available here: no network"


def test_what_is_going_on_is_reported(plain: EmitRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Event] = []
    monkeypatch.setattr(Bench, "compare", FakeBench(output()).compare)
    EMITTER.emit(plain, tmp_path / "bundle")
    proving.prove_bundle(ProofRequest(bundle=tmp_path / "bundle", cache_root=tmp_path, listener=events.append))
    assert [getattr(event, "note").text for event in events] == ["verifying variant cpu in onnxruntime==1.31.1"]  # noqa: B009


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": 3}', json.dumps({"variants": 1})])
def test_a_damaged_configuration_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "runtime.json").write_text(text)
    with pytest.raises(VerificationError, match="is not a complete bundle"):
        prove_bundle(ProofRequest(bundle=tmp_path, cache_root=tmp_path / "cache", listener=ignore))


def test_its_times_are_nobody_s(plain: EmitRequest, tmp_path: Path) -> None:
    EMITTER.emit(plain, tmp_path / "bundle")
    assert EMITTER.measure(ProofRequest(bundle=tmp_path / "bundle", cache_root=tmp_path, listener=ignore)) == ()


def test_a_proof_has_the_versions_that_the_build_locked(
    plain: EmitRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "onnxruntime==1.27.0"
    shipped = Environments(tmp_path / "cache").lock(name)
    older = [dataclasses.replace(pin, version="2.0.0") if pin.name == "numpy" else pin for pin in shipped.pins]
    ours = Environments(tmp_path / "cache", {name: render_pins(older)})
    requires = dataclasses.replace(variant(plain, "cpu").requires, runtime="1.27.0")
    changed = dataclasses.replace(variant(plain, "cpu"), requires=requires)
    request = with_component(plain, variants=(changed,))
    EMITTER.emit(request, tmp_path / "bundle")
    used: list[Environment] = []

    def compare(
        _: Bench, __: RuntimeComponent, ___: RuntimeVariant, environment: Environment, plugin: str
    ) -> Comparison:
        del plugin
        used.append(environment)
        return output()

    monkeypatch.setattr(Environments, "_ensure", lambda *_: tmp_path)
    monkeypatch.setattr(Bench, "compare", compare)
    prove_bundle(
        ProofRequest(bundle=tmp_path / "bundle", cache_root=tmp_path / "cache", listener=ignore, environments=ours)
    )
    assert [found.versions["numpy"] for found in used] == ["2.0.0"]


def test_a_build_proves_with_its_own_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ProofRequest] = []

    def prove_nothing(request: ProofRequest) -> tuple[VariantProof, ...]:
        asked.append(request)
        return ()

    monkeypatch.setattr(proving, "prove_bundle", prove_nothing)
    request = BuildRequest(
        model=models.save(models.cnn(), tmp_path / "source"),
        target="linux-x64",
        format="files",
        output=tmp_path / "out",
    )
    with open_workspace(str(tmp_path / "cache"), 1) as workspace:
        build(request, workspace, ignore)
        assert [found.environments for found in asked] == [workspace.environments]
