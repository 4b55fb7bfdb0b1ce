"""Which device a bundle is run on: the one that is named, or the first that suits."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bundler.devices import qemu, registry
from bundler.devices.contract import Need, Opening
from bundler.devices.local import LocalKind
from bundler.devices.registry import check_device, device_names, find_kind, open_device
from bundler.environments.sandbox import Sandbox
from bundler.model.errors import DeviceMissingError, EnvironmentMissingError, UsageError
from bundler.model.events import ignore
from bundler.pipeline.build import build
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.workspace import open_workspace
from tests.support import models

HERE = Need(runs="programs", systems=(platform.system(),), machines=(platform.machine(),))
ARM = Need(runs="programs", systems=("Linux",), machines=("aarch64",))
MAC = Need(runs="programs", systems=("Darwin",), machines=("arm64",))

Ask = Callable[..., Opening]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Makes an opening; `said` is what a person was reported."""

    def make(need: Need, said: list[str] | None = None, **more: Any) -> Opening:
        return Opening(need=need, cache_root=tmp_path, say=(said if said is not None else []).append, **more)

    return make


@pytest.fixture
def no_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "find_emulator", lambda _: None)


def test_the_devices_that_are_built_in_register_as_others_do() -> None:
    assert device_names()[0] == "local"
    assert {"browser", "qemu-aarch64"} <= set(device_names())


def test_an_unknown_device_is_refused_with_those_that_exist() -> None:
    with pytest.raises(UsageError) as caught:
        find_kind("brwoser")
    assert "the devices are local, browser, jvm, qemu-aarch64" in caught.value.details[0]
    assert caught.value.hint is not None
    assert "--on browser" in caught.value.hint
    assert caught.value.exit_code == 2


def test_where_bundler_is_not_installed_whole_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "registered_names", lambda _: ())
    with pytest.raises(EnvironmentMissingError, match="no device is registered"):
        device_names()


@pytest.mark.usefixtures("no_emulator")
def test_a_named_device_that_is_not_here_says_what_to_install(ask: Ask) -> None:
    with pytest.raises(DeviceMissingError) as caught:
        check_device("qemu-aarch64", Path())
    assert caught.value.exit_code == 5
    assert caught.value.hint is not None
    assert "qemu-user-static" in caught.value.hint
    with (
        pytest.raises(DeviceMissingError, match="no emulator for aarch64 is installed"),
        open_device("qemu-aarch64", ask(ARM)),
    ):
        pass


@pytest.mark.parametrize(("on", "need", "runs"), [("local", MAC, "programs for"), ("browser", HERE, "pages of web")])
def test_a_named_device_that_runs_no_such_bundles_is_refused(ask: Ask, on: str, need: Need, runs: str) -> None:
    if on == "browser" and not find_kind(on).examine(Path()).found:
        pytest.skip("no browser is here")
    with pytest.raises(UsageError) as caught, open_device(on, ask(need)):
        pass
    assert need.describe() in caught.value.message
    assert runs in caught.value.message


@pytest.mark.parametrize(
    ("on", "what"), [("local:there", "does not accept a setting"), ("qemu-aarch64:z80", "unknown core")]
)
def test_a_setting_that_a_device_does_not_take_is_refused(ask: Ask, on: str, what: str) -> None:
    with pytest.raises(UsageError, match=what), open_device(on, ask(HERE)):
        pass


def test_the_first_that_suits_is_this_machine(ask: Ask) -> None:
    with open_device(None, ask(HERE)) as device:
        assert not isinstance(device, str)
        assert (device.facts.name, device.facts.level, device.facts.is_here) == ("local", "executed", True)


def test_a_system_that_nothing_here_runs_is_a_reason_and_no_error(ask: Ask) -> None:
    with open_device(None, ask(MAC)) as device:
        assert isinstance(device, str)
        assert device.startswith("it is for Darwin on arm64, this machine is ")


@pytest.mark.usefixtures("no_emulator")
@pytest.mark.skipif(platform.machine() == "aarch64" or platform.system() != "Linux", reason="nothing to emulate")
def test_an_emulator_that_is_not_here_is_a_reason_and_no_error(ask: Ask) -> None:
    with open_device(None, ask(ARM)) as device:
        assert isinstance(device, str)
        assert device.endswith("no emulator for aarch64 is installed (qemu-user-static)")


@pytest.mark.skipif(platform.machine() == "aarch64" or platform.system() != "Linux", reason="nothing to emulate")
def test_nothing_is_emulated_outside_of_the_sandbox(ask: Ask) -> None:
    with open_device(None, ask(ARM, sandbox=Sandbox(program=Path("bwrap")))) as device:
        assert isinstance(device, str)
        assert device.endswith("--sandbox cannot be used with emulation")


@pytest.mark.parametrize(("on", "prove", "what"), [("moon", True, "unknown device"), ("local", False, "--no-prove")])
def test_a_build_refuses_where_it_cannot_run_before_anything_takes_time(
    tmp_path: Path, on: str, what: str, *, prove: bool
) -> None:
    request = BuildRequest(
        model=models.save(models.cnn(), tmp_path / "in"),
        target="linux-x64",
        output=tmp_path / "out",
        on=on,
        prove=prove,
    )
    with open_workspace(str(tmp_path / "cache"), 1) as workspace, pytest.raises(UsageError, match=what):
        build(request, workspace, ignore)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("target", "format_", "on", "why"),
    [
        ("web-wasm", None, "local", "the bundle is for browsers, and local runs programs for"),
        ("linux-arm64", None, "local", "the bundle is for Linux on aarch64"),
        ("linux-x64", None, "qemu-aarch64", "qemu-aarch64 runs programs for Linux on aarch64"),
        ("linux-x64", "files", "qemu-aarch64", "a bundle of files has no runtime that could start there"),
        ("linux-x64", None, "qemu-aarch64:z80", "unknown core 'z80'"),
        ("linux-x64", None, "local:there", "does not accept a setting"),
        ("web-wasm", None, "browser:/nowhere", "the browser /nowhere does not exist"),
    ],
)
@pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.system() != "Linux", reason="the refusals are of such one"
)
def test_a_device_that_does_not_fit_the_target_is_refused_before_the_model_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, *, format_: str | None, on: str, why: str
) -> None:
    monkeypatch.setattr(qemu.QemuKind, "examine", LocalKind.examine)  # it is here, wherever this runs
    monkeypatch.setattr(qemu, "make_image", None)
    request = BuildRequest(
        model=tmp_path / "never opened.onnx", target=target, format=format_, output=tmp_path / "out", on=on
    )
    with (
        open_workspace(str(tmp_path / "cache"), 1) as workspace,
        pytest.raises((UsageError, EnvironmentMissingError)) as caught,
    ):
        build(request, workspace, ignore)
    assert why in caught.value.message
    assert not (tmp_path / "out").exists()
