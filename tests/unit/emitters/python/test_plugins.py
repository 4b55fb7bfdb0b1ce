"""What the emitter asks for where a target has plugins beside its runtime."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bundler.emitters.contract import EmitRequest
from bundler.emitters.python import wheelhouse
from bundler.emitters.python.context import describe_compiled, make_context
from bundler.emitters.python.emitter import EMITTER
from bundler.emitters.python.names import make_package_name
from bundler.emitters.python.project import write_python_project
from bundler.emitters.python.wheelhouse import fetch_runtime, name_runtime_lock
from bundler.environments.registry import PythonPackages
from bundler.model.errors import EnvironmentMissingError
from bundler.model.runtime import Compiled, Preparation
from bundler.profiles.resolve import resolve_target
from tests.support import models
from tests.support.bundles import make_request, make_variant, model_artifact, with_variants

PLUGINS = {"onnxruntime-qnn": "2.7.0", "onnxruntime-ep-openvino": "1.8.1"}


@pytest.fixture
def request_(tmp_path: Path) -> EmitRequest:
    made = make_request(models.cnn(), tmp_path / "made", name="tiny cnn")
    compiled = Compiled(provider="Q", devices=("57", "69"), sdk="2.51")
    plain = make_variant("cpu", model_artifact(made))
    variants = (
        make_variant("npu", model_artifact(made), requires=dataclasses.replace(plain.requires, compiled=compiled)),
        make_variant("gpu", model_artifact(made), prepare=Preparation(kind="cache", thing="TensorRT engine")),
        plain,
    )
    runtime = made.profile.runtime.model_copy(update={"plugins": PLUGINS})
    return dataclasses.replace(
        with_variants(made, *variants), profile=made.profile.model_copy(update={"runtime": runtime})
    )


def test_plugins_are_pinned_with_the_runtime(request_: EmitRequest) -> None:
    wanted = ("onnxruntime==1.31.1", "onnxruntime-ep-openvino==1.8.1", "onnxruntime-qnn==2.7.0")
    assert make_context(request_, "0").requirements[:3] == wanted
    name = "python-runtime-onnxruntime-1.31.1-onnxruntime-ep-openvino-1.8.1-onnxruntime-qnn-2.7.0"
    source = EMITTER.locks(request_.profile, "dir")[name]
    assert isinstance(source, PythonPackages)
    assert source.requirements[:3] == wanted


def test_a_runtime_without_plugins_keeps_its_lock() -> None:
    assert name_runtime_lock(resolve_target("linux-x64").runtime) == "python-runtime-onnxruntime-1.31.1"


def test_wheels_that_are_not_to_be_had_name_what_to_change(
    request_: EmitRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise EnvironmentMissingError("no matching distribution", hint="try again", details=("cp399",))

    monkeypatch.setattr(wheelhouse, "fetch_wheels", fail)
    monkeypatch.setattr(
        "bundler.environments.registry.Environments.lock_for", lambda *_: wheelhouse.parse_lock("x", "")
    )
    with pytest.raises(EnvironmentMissingError) as caught:
        fetch_runtime(request_)
    error = caught.value
    assert error.message.startswith(
        "the wheels of onnxruntime==1.31.1, onnxruntime-ep-openvino==1.8.1, onnxruntime-qnn"
    )
    assert "`python.versions`" in (error.hint or "")
    assert error.details == ("no matching distribution", "cp399")


def test_the_readme_tells_what_is_made_on_the_device(request_: EmitRequest, tmp_path: Path) -> None:
    write_python_project(request_, tmp_path / "bundle")
    text = (tmp_path / "bundle" / "README.md").read_text("utf-8")
    for words in (
        "Variant npu was compiled ahead of time: Q for 57, 69, with 2.51",
        "Variant gpu requires its TensorRT engine, which is generated on the device",
        "onnxruntime-ep-openvino 1.8.1, onnxruntime-qnn 2.7.0",
        "`python -m tiny_cnn prewarm` generates what is missing",
        'Model(prewarm="background")',
    ):
        assert words in text
    assert "\n\n\n" not in text


def test_the_readme_of_a_plain_bundle_says_nothing_of_it(tmp_path: Path) -> None:
    write_python_project(make_request(models.cnn(), tmp_path / "made"), tmp_path / "bundle")
    text = (tmp_path / "bundle" / "README.md").read_text("utf-8")
    assert "prewarm" not in text
    assert "On the device" not in text
    assert "\n\n\n" not in text


def test_what_was_compiled_is_reported_without_a_compilers_version() -> None:
    assert describe_compiled(Compiled(provider="Q", devices=(), sdk="")) == "Q for the device"


@pytest.mark.parametrize("name", ["onnxruntime_qnn", "onnxruntime-ep-openvino", "coloredlogs"])
def test_a_model_hides_no_plugin(name: str) -> None:
    assert make_package_name(name).endswith("_model")
