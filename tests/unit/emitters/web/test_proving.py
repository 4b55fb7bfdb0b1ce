import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bundler.devices.browser import programs, visiting
from bundler.devices.browser.programs import VARIABLE
from bundler.devices.registry import open_device
from bundler.emitters.brought import BY_LOADER
from bundler.emitters.contract import ProofRequest
from bundler.emitters.web import proving
from bundler.emitters.web.measuring import measure_bundle
from bundler.emitters.web.proving import _join_golden, prove_bundle
from bundler.model.errors import EnvironmentMissingError, VerificationError
from bundler.model.events import Message
from tests.support import fake_browser
from tests.support.web_packages import write_package

DONE = {"kind": "done"}
NAME = {"kind": "browser", "name": "Chromium 156.0.1"}
OUTPUT = {
    "name": "y",
    "equal": False,
    "max_absolute": 1e-7,
    "mean_absolute": 1e-8,
    "max_relative": "Infinity",
    "cosine": 1.0,
    "sqnr_db": None,
    "top1_agreement": None,
    "mismatch": None,
}

Browse = Callable[..., Path]


def began(variant: str) -> dict[str, Any]:
    return {"kind": "began", "variant": variant}


def outcome(variant: str, status: str = "passed", **changes: Any) -> dict[str, Any]:
    reported = {
        "samples": 3,
        "outputs": [OUTPUT],
        "figures": {"opening_seconds": 0.1},
        "nodes": {"CPU": 4},
        "reason": "",
    }
    return {"kind": "outcome", "variant": variant, "status": status, **reported, **changes}


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(proving, "guess_adapter", lambda: "software")


@pytest.fixture
def browse(tmp_path: Path) -> Browse:
    """Makes a browser whose runs are reported beforehand."""

    def make(*runs: list[Any]) -> Path:
        script, program = tmp_path / "script.json", tmp_path / "browser"
        script.write_text(json.dumps(runs))
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake_browser.__file__}" "{script}" "$@"\n')
        program.chmod(0o755)
        return program

    return make


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_package(tmp_path / "package", {"webgpu": {}, "wasm": {}})


def ask(package: Path, browser: Path | None, messages: list[Any] | None = None) -> ProofRequest:
    listener = (messages if messages is not None else []).append
    on = None if browser is None else f"browser:{browser}"
    return ProofRequest(bundle=package, cache_root=package / "cache", listener=listener, on=on)


def starts(browser: Path) -> list[list[str]]:
    return [json.loads(line) for line in (browser.parent / "script.log").read_text().splitlines()]


def test_a_variant_that_reproduces_is_executed(package: Path, browse: Browse) -> None:
    software = outcome("webgpu", software=True, threads=4, nodes={"WebGpu": 8})
    browser = browse(["hold", NAME, began("webgpu"), software, began("wasm"), outcome("wasm"), DONE])
    webgpu, wasm = prove_bundle(ask(package, browser))
    assert (webgpu.level, webgpu.passed, webgpu.nodes) == ("executed", True, {"WebGpu": 8})
    where = "ran with onnxruntime-web 1.30.0 in Chromium 156.0.1"
    assert webgpu.reason == f"{where}, 4 threads, on the software adapter{BY_LOADER}"
    assert wasm.reason == f"{where}{BY_LOADER}"
    assert wasm.figures == {"opening_seconds": 0.1}
    assert wasm.comparison is not None
    assert wasm.comparison.samples == 3
    assert wasm.comparison.outputs[0].max_relative == math.inf


def test_a_browser_that_is_emulated_proves_no_more_than_that(
    package: Path, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device of another package says what a run there proves."""
    real = open_device

    @contextmanager
    def emulate(*asked: Any) -> Iterator[Any]:
        with real(*asked) as device:
            device.facts = replace(device.facts, level="emulated")
            yield device

    monkeypatch.setattr(proving, "open_device", emulate)
    browser = browse(["hold", NAME, outcome("webgpu"), outcome("wasm"), DONE])
    proofs = prove_bundle(ask(package, browser))
    assert {proof.level for proof in proofs} == {"emulated"}


def test_what_of_a_variant_was_not_run_is_reported(package: Path, browse: Browse) -> None:
    ran = outcome("webgpu", build="jspi")
    webgpu, wasm = prove_bundle(ask(package, browse(["hold", NAME, ran, outcome("wasm", build="wasm"), DONE])))
    assert (webgpu.means, webgpu.unrun) == ("the build jspi", ("the build asyncify",))
    assert (wasm.means, wasm.unrun) == ("", ("Node.js",))


def test_an_output_that_could_not_be_judged_has_its_reason_and_no_figures(tmp_path: Path, browse: Browse) -> None:
    package = write_package(tmp_path / "own", {"webgpu": {}, "wasm": {}}, unjudged="it differs from run to run")
    blank = {name: "y" if name == "name" else None for name in OUTPUT}
    reported = outcome("webgpu", outputs=[blank], unjudged={"y": "it differs from run to run"})
    webgpu, _ = prove_bundle(ask(package, browse(["hold", NAME, reported, outcome("wasm"), DONE])))
    assert webgpu.comparison is not None
    (output,) = webgpu.comparison.outputs
    assert (output.equal, output.sqnr_db) == (False, None)
    assert output.reference is not None
    assert output.reference.unjudged == "it differs from run to run"


def test_an_output_may_be_called_like_a_number_that_is_none(tmp_path: Path, browse: Browse) -> None:
    package = write_package(tmp_path / "own", {"webgpu": {}, "wasm": {}}, output="Infinity")
    odd = outcome("webgpu", outputs=[{**OUTPUT, "name": "Infinity"}])
    webgpu, _ = prove_bundle(ask(package, browse(["hold", NAME, odd, outcome("wasm"), DONE])))
    assert webgpu.comparison is not None
    assert webgpu.comparison.outputs[0].name == "Infinity"


def test_a_variant_that_the_browser_lacks_is_not_run(package: Path, browse: Browse) -> None:
    lacking = {"kind": "outcome", "variant": "webgpu", "status": "unavailable", "reason": "there is no WebGPU"}
    webgpu, wasm = prove_bundle(ask(package, browse(["hold", NAME, lacking, outcome("wasm"), DONE])))
    assert (webgpu.level, webgpu.passed) == ("resolved", None)
    assert webgpu.reason == "Chromium 156.0.1 cannot run it: there is no WebGPU"
    assert wasm.passed is True


def test_a_variant_that_differs_is_failed_with_its_figures(package: Path, browse: Browse) -> None:
    wrong = outcome("webgpu", "failed", reason="output 'y': error 0.5")
    webgpu, _ = prove_bundle(ask(package, browse(["hold", NAME, wrong, outcome("wasm"), DONE])))
    assert (webgpu.passed, webgpu.reason) == (False, "output 'y': error 0.5")
    assert webgpu.comparison is not None


def test_a_tab_that_dies_fails_its_variant_and_the_next_runs_in_a_new_browser(package: Path, browse: Browse) -> None:
    browser = browse(["hold", NAME, began("webgpu"), "die"], ["hold", NAME, began("wasm"), outcome("wasm"), DONE])
    start = time.monotonic()
    webgpu, wasm = prove_bundle(ask(package, browser))
    assert time.monotonic() - start < 15
    assert (webgpu.passed, wasm.passed) == (False, True)
    assert "the tab crashed" in webgpu.reason


def test_what_was_posted_before_the_end_counts(package: Path, browse: Browse) -> None:
    browser = browse(["hold", NAME, outcome("webgpu"), outcome("wasm"), DONE, "die"])
    assert all(proof.passed for proof in prove_bundle(ask(package, browser)))


def test_a_variant_that_never_ends_is_failed(package: Path, browse: Browse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "TIME_LIMIT", 3.0)
    browser = browse(["hold", NAME, began("webgpu"), "sleep"], ["hold", NAME, outcome("wasm"), DONE])
    webgpu, wasm = prove_bundle(ask(package, browser))
    assert (webgpu.passed, webgpu.reason) == (False, "it did not end within 3 s")
    assert wasm.passed is True


def test_without_a_gpu_adapter_the_software_adapter_takes_over(
    package: Path, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proving, "guess_adapter", lambda: "hardware")
    messages: list[Any] = []
    browser = browse(
        ["hold", NAME, {"kind": "no-adapter"}, DONE], ["hold", NAME, outcome("webgpu"), outcome("wasm"), DONE]
    )
    assert all(proof.passed for proof in prove_bundle(ask(package, browser, messages)))
    hardware, software = starts(browser)
    assert "--use-webgpu-adapter=swiftshader" not in hardware
    assert "--use-webgpu-adapter=swiftshader" in software
    assert any(isinstance(reported, Message) and "software adapter" in reported.note.text for reported in messages)


def test_only_root_goes_without_the_sandbox(package: Path, browse: Browse) -> None:
    browser = browse(["hold", NAME, outcome("webgpu"), outcome("wasm"), DONE])
    prove_bundle(ask(package, browser))
    assert ("--no-sandbox" in starts(browser)[0]) == (os.geteuid() == 0)


@pytest.mark.parametrize(
    "nonsense",
    [
        {"outputs": [{"name": "y"}]},
        {"outputs": [{**OUTPUT, "more": 1}]},
        {"outputs": "text"},
        {"figures": {"opening_seconds": "soon"}},
        {"figures": 3},
        {"nodes": {"CPU": None}},
        {"samples": None},
    ],
)
def test_figures_that_are_none_prove_nothing(package: Path, browse: Browse, nonsense: dict[str, Any]) -> None:
    reported = outcome("webgpu", **nonsense)
    webgpu, _ = prove_bundle(ask(package, browse(["hold", NAME, [1], reported, outcome("wasm"), DONE])))
    assert (webgpu.level, webgpu.passed) == ("resolved", False)
    assert "cannot be read" in webgpu.reason


def test_a_page_that_keeps_a_variant_to_itself_has_not_proven_it(package: Path, browse: Browse) -> None:
    _, wasm = prove_bundle(ask(package, browse(["hold", NAME, outcome("webgpu"), DONE])))
    assert (wasm.passed, wasm.reason) == (False, "the page did not report it")


def test_a_machine_without_a_browser_leaves_the_variants_unproven(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_installed", lambda: iter(()))
    proofs = prove_bundle(ask(package, None))
    assert [(proof.level, proof.passed) for proof in proofs] == [("resolved", None)] * 2
    assert proofs[0].reason.startswith("no Chromium-family browser was found")
    assert measure_bundle(ask(package, None)) == ()


def test_a_named_browser_that_does_not_start_is_an_error(package: Path, browse: Browse) -> None:
    with pytest.raises(EnvironmentMissingError, match="does not run our page") as caught:
        prove_bundle(ask(package, browse(["complain"])))
    assert caught.value.details == ("the browser did not keep running: it ended with code 1: no usable sandbox",)


def test_a_browser_that_was_found_and_does_not_start_proves_nothing(
    package: Path, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = browse(["complain"])
    monkeypatch.setattr(programs, "_installed", lambda: iter((browser,)))
    messages: list[Any] = []
    proofs = prove_bundle(ask(package, None, messages))
    assert [proof.passed for proof in proofs] == [None, None]
    assert any("no usable sandbox" in reported.note.text for reported in messages), "a person reads what it said"
    assert "no usable sandbox" not in proofs[0].reason, "a manifest does not: it would differ from run to run"
    assert str(browser.parent) not in proofs[0].reason


def test_a_browser_that_a_signal_of_real_time_ended_is_said_to_be(package: Path, browse: Browse) -> None:
    with pytest.raises(EnvironmentMissingError, match="does not run our page") as caught:
        prove_bundle(ask(package, browse(["interrupt"])))
    assert caught.value.details == (
        f"the browser did not keep running: it was ended by signal {signal.SIGRTMIN + 3}: no output",
    )


def test_a_message_that_nests_without_end_is_none(package: Path, browse: Browse) -> None:
    browser = browse(["hold", NAME, "[" * 100_000, outcome("webgpu"), outcome("wasm"), DONE])
    assert all(proof.passed for proof in prove_bundle(ask(package, browser)))


def test_what_is_no_program_is_an_error(package: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("\x7fno program")
    (tmp_path / "text").chmod(0o755)
    with pytest.raises(EnvironmentMissingError) as caught:
        prove_bundle(ask(package, tmp_path / "text"))
    assert str(tmp_path / "text") in caught.value.message


def test_a_browser_that_hangs_at_its_start_is_noticed(
    package: Path, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visiting, "START_SECONDS", 1.5)
    with pytest.raises(EnvironmentMissingError) as caught:
        prove_bundle(ask(package, browse(["sleep"])))
    assert "did not open the page within 2 s" in caught.value.details[0]


def test_nothing_of_the_browser_outlives_the_proof(package: Path, browse: Browse, tmp_path: Path) -> None:
    browser = browse(["spawn", "hold", NAME, outcome("webgpu"), outcome("wasm"), DONE])
    prove_bundle(ask(package, browser))
    running = subprocess.run(("ps", "-ww", "-eo", "args"), capture_output=True, text=True, check=True).stdout
    assert str(tmp_path / "script.json") not in running
    profile = next(flag for flag in starts(browser)[0] if flag.startswith("--user-data-dir="))
    assert not Path(profile.partition("=")[2]).parent.exists()


@pytest.mark.parametrize("text", [None, "{", "[]", '{"schema": 1}'])
def test_what_is_no_web_bundle_is_said(tmp_path: Path, text: str | None) -> None:
    (tmp_path / "payload").mkdir()
    if text is not None:
        (tmp_path / "payload" / "runtime.json").write_text(text)
    with pytest.raises(
        VerificationError, match=r"is not a complete (web )?bundle|runtime.json has schema 1; this bundler reads"
    ):
        prove_bundle(ask(tmp_path, None))


def test_a_golden_set_that_is_stored_in_parts_is_joined(tmp_path: Path) -> None:
    stored = tmp_path / "payload" / "golden"
    (stored / "000").mkdir(parents=True)
    (stored / "index.json").write_text("{}")
    for name, data in (("in-0.bin.001", b"cd"), ("in-0.bin.000", b"ab"), ("out-0.bin", b"e")):
        (stored / "000" / name).write_bytes(data)
    joined = _join_golden(stored, tmp_path / "joined")
    assert {path.name: path.read_bytes() for path in joined.rglob("*") if path.is_file()} == {
        "index.json": b"{}",
        "in-0.bin": b"abcd",
        "out-0.bin": b"e",
    }
    assert _join_golden(stored, joined) == joined
    (stored / "000" / "in-0.bin.000").unlink()
    (stored / "000" / "in-0.bin.001").unlink()
    assert _join_golden(stored, tmp_path / "other") == stored
