"""Plugins of providers: what is missing is named, with what is there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import onnxruntime
import pytest

from bundler.model.errors import StageError
from bundler.onnxkit import plugins
from bundler.onnxkit.plugins import Plugin
from bundler.onnxkit.sessions import SessionSettings, open_session, read_settings, session_options
from tests.support import models

PROVIDER = "FakeExecutionProvider"


@dataclass
class Device:
    ep_name: str = PROVIDER
    ep_metadata: dict[str, str] = field(default_factory=dict)


class Options:
    """Session options that remember what was added."""

    def __init__(self) -> None:
        self.added: list[tuple[Device, dict[str, str]]] = []

    def add_provider_for_devices(self, devices: list[Device], values: dict[str, str]) -> None:
        self.added.append((devices[0], values))


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The libraries that were registered; the runtime itself sees none of them."""
    calls: list[tuple[str, str]] = []
    monkeypatch.setattr(plugins, "_registered", {})
    monkeypatch.setattr(onnxruntime, "register_execution_provider_library", lambda *given: calls.append(given))
    return calls


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """Make a module with a library."""

    def make(name: str = "fake_plugin", path: object = None) -> str:
        module = ModuleType(name)
        library = tmp_path / "libfake.so"
        library.write_bytes(b"not really")
        if path != "none":
            module.get_library_path = lambda: str(path or library)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
        return name

    return make


def show(monkeypatch: pytest.MonkeyPatch, *devices: Device) -> None:
    monkeypatch.setattr(onnxruntime, "get_ep_devices", lambda: list(devices))


def test_a_library_is_registered_once_and_its_first_fitting_device_taken(
    registered: list[tuple[str, str]], give: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show(
        monkeypatch,
        Device("OtherExecutionProvider", {"kind": "NPU"}),
        Device(ep_metadata={"kind": "CPU"}),
        Device(ep_metadata={"kind": "NPU", "number": "1"}),
        Device(ep_metadata={"kind": "NPU", "number": "2"}),
    )
    options, plugin = Options(), Plugin(library=give(), select={"kind": "NPU"})
    assert plugins.is_fresh(PROVIDER)
    for _ in range(2):
        plugins.add_plugin(options, PROVIDER, {"a": "b"}, plugin)
    assert not plugins.is_fresh(PROVIDER)
    assert len(registered) == 1
    assert [(device.ep_metadata["number"], values) for device, values in options.added] == [("1", {"a": "b"})] * 2


def test_no_fitting_device_lists_those_that_are_there(
    registered: list[tuple[str, str]], give: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show(monkeypatch, Device("CPUExecutionProvider"), Device(ep_metadata={"kind": "CPU", "library_path": "/secret"}))
    with pytest.raises(StageError, match="has no device on this machine with kind=NPU") as caught:
        plugins.add_plugin(Options(), PROVIDER, {}, Plugin(library=give(), select={"kind": "NPU"}))
    assert registered
    assert caught.value.details == (f"found {PROVIDER}: kind=CPU",)


def test_a_plugin_without_any_device_here(
    registered: list[tuple[str, str]], give: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show(monkeypatch, Device("CPUExecutionProvider"))
    with pytest.raises(StageError, match=r"has no device on this machine$") as caught:
        plugins.add_plugin(Options(), PROVIDER, {}, Plugin(library=give()))
    assert registered
    assert caught.value.details == ("the plugin lists no device; other devices are of CPUExecutionProvider",)


@pytest.mark.parametrize("library", ["", "a b", "../../evil", "a..b", "os;os", "é" * 200])
def test_what_is_no_module_name_is_never_imported(registered: list[tuple[str, str]], library: str) -> None:
    with pytest.raises(StageError, match="is not the name of a Python module"):
        plugins.register_plugin(PROVIDER, Plugin(library=library))
    assert not registered


def test_a_missing_module_is_named(registered: list[tuple[str, str]]) -> None:
    with pytest.raises(StageError, match="no module onnxruntime_nowhere") as caught:
        plugins.register_plugin(PROVIDER, Plugin(library="onnxruntime_nowhere"))
    assert caught.value.hint
    assert not registered


@pytest.mark.parametrize(("path", "said"), [("none", "get_library_path"), ("/nowhere/libgone.so", "libgone.so")])
def test_a_module_without_its_library(
    registered: list[tuple[str, str]], give: Callable[..., str], path: str, said: str
) -> None:
    with pytest.raises(StageError, match="names no existing library") as caught:
        plugins.register_plugin(PROVIDER, Plugin(library=give(path=path)))
    assert said in caught.value.details[0]
    assert not registered


def test_two_plugins_of_one_provider_are_refused(registered: list[tuple[str, str]], give: Callable[..., str]) -> None:
    plugins.register_plugin(PROVIDER, Plugin(library=give()))
    with pytest.raises(StageError, match="two plugins provide"):
        plugins.register_plugin(PROVIDER, Plugin(library=give("other_plugin")))
    assert len(registered) == 1


def test_a_library_that_the_runtime_refuses(give: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_registered", {})
    settings = SessionSettings(providers=((PROVIDER, {}),), plugins={PROVIDER: Plugin(library=give())})
    with pytest.raises(StageError, match=f"{PROVIDER} cannot be used here") as caught:
        session_options(settings)
    assert caught.value.details
    assert plugins.is_fresh(PROVIDER)


def test_a_checked_session_must_run_something_on_its_first_provider(tmp_path: Path) -> None:
    model = models.save(models.cnn(), tmp_path)
    checked = read_settings({"providers": [["CPUExecutionProvider", {}]], "check_providers": True})
    assert open_session(model, checked).get_providers() == ["CPUExecutionProvider"]
    empty = models.save(models.make_model([], [models.value("x", [1])], [models.value("x", [1])]), tmp_path / "empty")
    with pytest.raises(StageError, match="CPUExecutionProvider does not run this model") as caught:
        open_session(empty, checked)
    assert "no node is assigned" in caught.value.details[0]
