"""Proofs in a real browser: of packages that misbehave, and of real bundles."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from bundler.emitters.brought import BY_LOADER
from bundler.emitters.contract import Compare, ProofRequest
from bundler.emitters.web.proving import prove_bundle
from bundler.model.digests import digest_file
from bundler.model.events import ignore
from bundler.model.proof import VariantProof
from tests.support import models
from tests.support.command_line import CommandLine, end_group
from tests.support.web_packages import write_package

pytestmark = pytest.mark.timeout(600)


def prove(package: Path, browser: Path) -> dict[str, VariantProof]:
    return {proof.variant: proof for proof in prove_all(package, browser)}


def prove_all(package: Path, browser: Path, compare: Compare | None = None) -> tuple[VariantProof, ...]:
    request = ProofRequest(
        bundle=package, cache_root=package / "cache", listener=ignore, on=f"browser:{browser}", compare=compare
    )
    return prove_bundle(request)


def test_each_variant_has_its_own_outcome(chromium: Path, tmp_path: Path) -> None:
    behaviours: dict[str, dict[str, object]] = {
        "fine": {"threads": 2},
        "lacking": {"unavailable": "there is no WebNN here"},
        "wrong": {"faults": ["output 'y': error 0.5"]},
        "broken": {"throws": "model.onnx was altered"},
        "empty": {"samples": 0},
        "other": {"opens": "fine"},
        "threads": {"code": "needIsolation"},
    }
    proofs = prove(write_package(tmp_path / "package", behaviours), chromium)
    assert {name: proof.passed for name, proof in proofs.items()} == {
        "fine": True,
        "lacking": None,
        "wrong": False,
        "broken": False,
        "empty": False,
        "other": False,
        "threads": True,
    }
    assert "2 threads" in proofs["fine"].reason
    assert "cannot run it: there is no WebNN here" in proofs["lacking"].reason
    assert proofs["broken"].reason == "IntegrityError: model.onnx was altered; build it again"
    assert proofs["empty"].reason == "no sample was compared"
    assert "variant fine was opened in its place" in proofs["other"].reason


def test_a_loader_that_says_more_than_it_did_is_not_believed(chromium: Path, tmp_path: Path) -> None:
    behaviours: dict[str, dict[str, object]] = {
        "silent": {"outputs": []},
        "renamed": {"outputs": [{"name": "other"}]},
        "twice": {"outputs": [{}, {}]},
        "hasty": {"samples": 1},
        "loud": {"outputs": [{"max_absolute": 1.0}]},
        "mismatched": {"outputs": [{"mismatch": "shape [1] instead of [2]"}]},
        "absent": {"unavailable": "there is no WebAssembly here"},
    }
    proofs = prove(write_package(tmp_path / "package", behaviours), chromium)
    assert [name for name, proof in proofs.items() if proof.passed is not False] == []
    assert {name: proof.reason for name, proof in proofs.items()} == {
        "silent": "it compared the outputs (none), and the model has 'y'",
        "renamed": "it compared the outputs 'other', and the model has 'y'",
        "twice": "it compared the outputs 'y', 'y', and the model has 'y'",
        "hasty": "it compared 1 of 3 recorded samples",
        "loud": "output 'y': error 1 where the reference is 2 (max 0.00021: 1e-05 + 0.0001 of the reference)",
        "mismatched": "output 'y': shape [1] instead of [2]",
        "absent": "it reports that it cannot run here, where it must: there is no WebAssembly here",
    }


def test_a_breach_of_the_policy_is_reported(chromium: Path, tmp_path: Path) -> None:
    behaviours: dict[str, dict[str, object]] = {"inline": {"code": "inline"}, "elsewhere": {"code": "elsewhere"}}
    proofs = prove(write_package(tmp_path / "package", behaviours), chromium)
    assert "the content security policy (script-src-elem) refused inline" in proofs["inline"].reason
    assert proofs["elsewhere"].passed is False
    assert "fetch" in proofs["elsewhere"].reason


def test_a_package_that_cannot_be_imported_fails_in_all_variants(chromium: Path, tmp_path: Path) -> None:
    package = write_package(tmp_path / "package", {"webgpu": {}, "wasm": {}})
    (package / "index.js").write_text("export const load = ;")
    proofs = prove(package, chromium)
    assert {proof.passed for proof in proofs.values()} == {False}
    assert "the package cannot be imported" in proofs["wasm"].reason


def test_a_tab_that_runs_out_of_memory_fails_its_variant_alone(chromium: Path, tmp_path: Path) -> None:
    package = write_package(tmp_path / "package", {"greedy": {"code": "exhaust"}, "modest": {}})
    proofs = prove(package, chromium)
    assert (proofs["greedy"].passed, proofs["modest"].passed) == (False, True)
    assert "the tab crashed" in proofs["greedy"].reason


@pytest.mark.quick
def test_a_real_bundle_is_executed_and_says_on_what(bundler: CommandLine, unproven: Path, chromium: Path) -> None:
    answer = bundler.run("verify", unproven, "--on", f"browser:{chromium}", "--json").expect(0).document
    assert answer["proof"] == "executed"
    variants = {variant["variant"]: variant for variant in answer["variants"]}
    assert variants["wasm"]["passed"] is True
    assert variants["wasm"]["comparison"]["samples"] == 8
    assert variants["wasm"]["comparison"]["outputs"][0]["max_absolute"] < 1e-5
    assert variants["wasm"]["nodes"].keys() == {"CPUExecutionProvider"}
    assert "onnxruntime-web 1.30.0 in " in variants["wasm"]["reason"]
    assert variants["webgpu"]["passed"] is True
    assert "WebGpuExecutionProvider" in variants["webgpu"]["nodes"]
    if not Path("/dev/dri").exists():
        assert "on the software adapter" in variants["webgpu"]["reason"]
    assert variants["webgpu"]["reason"].endswith(f"{BY_LOADER}; bundler compared 1 of 8 samples itself")


def test_a_packed_bundle_is_executed(bundler: CommandLine, packed: Path, chromium: Path) -> None:
    out = bundler.run("verify", packed, "--on", f"browser:{chromium}").expect(0).out
    assert re.search(r"^  Verified  .*\bin Chrom", out, re.MULTILINE)


def test_other_results_than_the_golden_ones_are_noticed(
    bundler: CommandLine, unproven: Path, chromium: Path, tmp_path: Path
) -> None:
    bundle = spoil_golden(Path(shutil.copytree(unproven, tmp_path / "bundle")))
    answer = bundler.run("verify", bundle, "--on", f"browser:{chromium}", "--json").expect(8)
    assert "does not reproduce its golden set" in answer.document["error"]["message"]
    assert any(line.startswith("wasm: ") for line in answer.document["error"]["details"])


def spoil_golden(bundle: Path) -> Path:
    """Another reference output, with every digest brought in line: as if the runtime computed something else."""
    golden = bundle / "payload" / "golden" / "000" / "out-0.bin"
    before = digest_file(golden)
    golden.write_bytes(bytes(reversed(golden.read_bytes())))
    after = digest_file(golden)
    runtime, manifest = bundle / "golden.js", bundle / "bundle.json"
    old = digest_file(runtime)
    runtime.write_text(runtime.read_text("utf-8").replace(before, after), "utf-8")
    text = manifest.read_text("utf-8").replace(before, after).replace(old, digest_file(runtime))
    manifest.write_text(text, "utf-8")
    return bundle


@pytest.mark.parametrize("subpath", ["wasm", "webgpu/asyncify"])
def test_an_import_of_other_files_than_the_package_is_noticed(
    bundler: CommandLine, unproven: Path, chromium: Path, tmp_path: Path, subpath: str
) -> None:
    bundle = Path(shutil.copytree(unproven, tmp_path / "bundle"))
    module, manifest = bundle / f"runtime.{subpath.replace('/', '.')}.js", bundle / "bundle.json"
    text, old = module.read_text("utf-8"), digest_file(module)
    module.write_text(text.replace('URL("./payload/models/', 'URL("./payload/modelz/'), "utf-8")
    manifest.write_text(manifest.read_text("utf-8").replace(old, digest_file(module)), "utf-8")
    answer = bundler.run("verify", bundle, "--on", f"browser:{chromium}", "--json").expect(8)
    (line,) = answer.document["error"]["details"]
    assert f"import ./{subpath}: it names another payload/models/" in line


def test_a_random_model_passes_through_its_imports(bundler: CommandLine, chromium: Path, tmp_path: Path) -> None:
    model = models.save(models.random_model(), tmp_path, "random.onnx")
    built = bundler.build(model, "--target", "web-wasm", "--on", f"browser:{chromium}", "--output", tmp_path / "out")
    (variant,) = (
        bundler.run("verify", built["bundle"], "--on", f"browser:{chromium}", "--json").expect(0).document["variants"]
    )
    assert variant["passed"] is True


def test_a_bundle_is_timed_beside_the_original_model(
    bundler: CommandLine, packed: Path, tiny_model: Path, chromium: Path
) -> None:
    answer = bundler.run("bench", packed, "--on", f"browser:{chromium}", "--baseline", tiny_model, "--json").expect(0)
    (wasm,) = answer.document["variants"]
    assert wasm["variant"] == "wasm"
    for series in ("opening", "latency", "baseline_opening", "baseline_latency"):
        assert wasm[series]["median"] > 0


def test_a_browser_that_is_not_there_is_an_error(bundler: CommandLine, unproven: Path) -> None:
    answer = bundler.run("verify", unproven, "--on", "browser:/nowhere/chromium", "--json").expect(5)
    assert answer.document["error"]["message"] == "the browser /nowhere/chromium does not exist"


def test_a_build_without_a_browser_claims_nothing_and_says_why(
    bundler: CommandLine, tiny_model: Path, tmp_path: Path
) -> None:
    if any(Path(place).exists() for place in ("/Applications", "C:/Program Files")):
        pytest.skip("here, browsers are also looked for beside the path")
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("node", "npm", "tar", "sh"):
        found = shutil.which(name)
        if found:
            (path / name).symlink_to(found)
    bare = dataclasses.replace(bundler, env={"PATH": str(path)})
    answer = bare.run("build", tiny_model, "--target", "web-wasm", "--output", tmp_path / "out", "--json").expect(0)
    (bundle,) = answer.document["bundles"]
    assert bundle["proof"] == "resolved"
    assert "wasm not run: no Chromium-family browser was found on this machine" in answer.err
    reported = bare.run("verify", bundle["bundle"]).expect(0).out
    assert "\n  Not run   wasm: no Chromium-family browser was found" in reported


def test_killed_in_the_middle_nothing_of_the_browser_is_left(
    bundler: CommandLine, chromium: Path, unproven: Path
) -> None:
    """Even where bundler has no chance to end it."""
    process = bundler.start("verify", unproven, "--on", f"browser:{chromium}")
    children = wait_for_children(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    try:
        until = time.monotonic() + 30
        while any(alive(child) for child in children) and time.monotonic() < until:
            time.sleep(0.2)
        assert not [child for child in children if alive(child)]
    finally:
        end_group(process)
        process.communicate()
        for child in children:
            if alive(child):
                os.killpg(child, signal.SIGKILL)


def wait_for_children(parent: int) -> list[int]:
    """The browser, once its first tab runs."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        listed = subprocess.run(
            ("ps", "-ww", "-eo", "pid,ppid,args"), capture_output=True, text=True, check=True
        ).stdout
        rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
        browsers = [int(pid) for pid, ppid, args in rows if int(ppid) == parent and "--user-data-dir" in args]
        if browsers and any("type=renderer" in args and "/bundler-browser-" in args for _, _, args in rows):
            time.sleep(1.0)
            return browsers
        time.sleep(0.1)
    raise AssertionError(f"the browser did not start:\n{listed}")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_doctor_names_the_browser(bundler: CommandLine, chromium: Path) -> None:
    found = {tool["name"]: tool for tool in bundler.run("doctor", "--json").expect(0).document["tools"]}
    assert found["device browser"]["found"]
    bare = dataclasses.replace(bundler, env={"BUNDLER_BROWSER": "/nowhere"})
    found = {tool["name"]: tool for tool in json.loads(bare.run("doctor", "--json").expect(0).out)["tools"]}
    assert not found["device browser"]["found"]
    assert chromium
