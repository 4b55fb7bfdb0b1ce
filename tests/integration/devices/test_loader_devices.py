"""Python bundles with a provider that a plugin carries: OpenVINO, for real, on this CPU."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bundler.emitters.contract import EmitRequest, ProofRequest
from bundler.emitters.python.emitter import EMITTER
from bundler.environments.registry import Environments
from bundler.model.events import ignore
from bundler.model.runtime import Compatibility, Compiled, Gate, Preparation, ProviderEntry, RuntimeVariant, Tolerance
from tests.integration.python.packages import Package, write_package
from tests.support import models
from tests.support.bundles import cache_root, make_request, make_variant, model_artifact, with_variants
from tests.support.openvino import require_openvino

PROVIDER, MODULE, DISTRIBUTION, VERSION = (
    "OpenVINOExecutionProvider",
    "onnxruntime_ep_openvino",
    "onnxruntime-ep-openvino",
    "1.8.1",
)
CONTEXT = Preparation(kind="context", thing="compiled OpenVINO context")
CACHED = Preparation(
    kind="cache",
    thing="OpenVINO cache",
    options={"load_config": json.dumps({"CPU": {"CACHE_DIR": "{folder}", "INFERENCE_PRECISION_HINT": "f32"}})},
)
ROUNDED = Gate(default=Tolerance(sqnr_db=20.0))
"""The plugin computes in bfloat16 where the CPU can."""

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the plugin onnxruntime-ep-openvino finds devices on Intel hardware only"
)


@dataclasses.dataclass(frozen=True)
class Installed:
    """A bundle's package, and the interpreter that has its runtime and plugin."""

    package: Package
    python: Path

    def start(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        variables = {**os.environ, "XDG_CACHE_HOME": str(self.package.cache), **environment}
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([str(self.python), *command], cwd=self.package.root, env=variables, **pipes)

    def call(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """`python -m <package> …` as a user would."""
        process = self.start("-m", self.package.name, *arguments, **environment)
        output, errors = process.communicate()
        return subprocess.CompletedProcess(arguments, process.returncode, output, errors)

    def ask(self, *arguments: str, **environment: str) -> Any:
        done = self.call(*arguments, **environment)
        return json.loads(done.stdout), done

    def open(self, arguments: str = "", **environment: str) -> dict[str, Any]:
        """What the report says of an opened model, with one answer's shape; or the error."""
        lines = [
            "import json, warnings; warnings.simplefilter('ignore')",
            f"import {self.package.name} as package, numpy as np",
            "try:",
            f"    model = package.Model({arguments})",
            "except package.BundleError as error:",
            "    print(json.dumps({'error': type(error).__name__, 'why': error.why})); raise SystemExit",
            "report = model.report",
            "shape = model.run(image=np.ones((1, 3, 16, 16), np.float32)).scores.shape",
            "print(json.dumps({'variant': report.variant, 'prepared': report.prepared, 'remark': report.remark,",
            "    'rejected': dict(report.rejected), 'providers': report.providers, 'nodes': report.nodes,",
            "    'shape': list(shape), 'text': str(report)}))",
        ]
        process = self.start("-c", "\n".join(lines), **environment)
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        found: dict[str, Any] = json.loads(output.splitlines()[-1])
        return found

    def kept(self) -> list[Path]:
        """What was prepared and lies there whole."""
        return sorted((self.package.cache / "bundler-loader").glob("*.prepared"))


Install = Callable[..., Installed]


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = cache_root(tmp_path_factory.mktemp("cache"))
    python = Environments(root).resolve("openvino").python
    require_openvino(python)
    return python


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    return make_request(models.cnn(batch=1), tmp_path_factory.mktemp("cnn"), name="tiny cnn")


def on_openvino(request: EmitRequest, prepare: Preparation | None = CONTEXT, **changes: Any) -> RuntimeVariant:
    select = changes.pop("select", {"ov_device": "CPU"})
    requires: dict[str, Any] = {"plugins": {DISTRIBUTION: VERSION}, **changes.pop("requires", {})}
    entry = ProviderEntry(name=PROVIDER, options={}, library=changes.pop("library", MODULE), select=select)
    here = Compatibility(systems=(platform.system(),), machines=(platform.machine(),), runtime="1.31.1")
    return make_variant(
        "openvino",
        model_artifact(request),
        **{
            "providers": (entry, ProviderEntry(name="CPUExecutionProvider", options={})),
            "requires": dataclasses.replace(here, **requires),
            "gate": ROUNDED,
            "prepare": prepare,
            **changes,
        },
    )


@pytest.fixture
def install(plain: EmitRequest, python: Path, tmp_path: Path) -> Install:
    def write(prepare: Preparation | None = CONTEXT, **changes: Any) -> Installed:
        variants = (on_openvino(plain, prepare, **changes), make_variant("cpu", model_artifact(plain)))
        package = write_package(with_variants(plain, *variants), tmp_path)
        _permit_all(package)
        return Installed(package, python)

    return write


def _permit_all(package: Package) -> None:
    """Let `runtime.json` ask for what these tests use and OpenVINO's bundles do not: a cache, and other plugins."""
    (path,) = package.root.rglob("_loader/permitted.json")
    permitted = json.loads(path.read_text("utf-8"))
    permitted["providers"][PROVIDER]["prepared"] += ["cache_dir", "load_config"]
    permitted["providers"][PROVIDER]["plugins"] += ["json", "no_such_plugin"]
    path.write_text(json.dumps(permitted), "utf-8")


@pytest.fixture(params=[CONTEXT, CACHED], ids=["context", "cache"])
def installed(request: pytest.FixtureRequest, install: Install) -> Installed:
    return install(request.param)


class TestPlugin:
    def test_a_plugin_runs_the_model(self, install: Install) -> None:
        found = install(None).open()
        assert (found["variant"], found["rejected"]) == ("openvino", {})
        assert found["providers"][0] == PROVIDER
        assert found["shape"] == [1, 5]

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"requires": {"plugins": {"onnxruntime-qnn": "2.7.0"}}}, "the plugin onnxruntime-qnn is not installed"),
            ({"requires": {"plugins": {DISTRIBUTION: "9.9"}}}, "it was built for onnxruntime-ep-openvino 9.9; found"),
            ({"library": "no_such_plugin"}, "the plugin no_such_plugin cannot be imported (ModuleNotFoundError"),
            ({"library": "json"}, "the plugin json cannot be imported (AttributeError"),
            ({"select": {"ov_device": "NPU"}}, "finds no device with ov_device NPU (found: ov_device CPU)"),
        ],
    )
    def test_what_stands_in_its_way_is_reported_and_the_next_variant_runs(
        self, install: Install, changes: dict[str, Any], words: str
    ) -> None:
        installed = install(None, **changes)
        found = installed.open()
        assert found["variant"] == "cpu"
        assert words in found["rejected"]["openvino"]
        assert words in installed.ask("info", "--json")[0]["variants"]["openvino"]
        strict = installed.open("strict=True")
        assert strict["error"] == "FallbackError"
        assert words in strict["why"]

    def test_a_context_that_does_not_fit_is_a_reason(self, install: Install) -> None:
        compiled = Compiled(
            provider=PROVIDER, devices=("AVX-1024",), sdk="2026.4.1", statement="what another plugin wrote"
        )
        found = install(None, requires={"compiled": compiled}).open()
        assert found["variant"] == "cpu"
        assert "compiled for AVX-1024 with 2026.4.1" in found["rejected"]["openvino"]

    def test_a_share_is_counted(self, install: Install) -> None:
        found = install(None, least_share=0.9).open()
        assert found["variant"] == "openvino"
        assert found["nodes"][PROVIDER] > 0

    def test_bench_times_it_beside_a_plain_session_on_the_same_device(self, install: Install) -> None:
        installed = install()
        arguments = ("-n", "3", "--openings", "2", "--seconds", "5", "--compare", str(installed.package.model))
        answer, done = installed.ask("bench", "--json", "--variant", "openvino", "--prewarm", *arguments)
        assert done.returncode == 0, done.stderr
        assert answer["variant"] == "openvino"
        assert answer["plain"]["latency_median_seconds"] > 0


class TestPrewarm:
    def test_until_it_is_made_the_next_variant_runs_and_says_what_to_do(self, installed: Installed) -> None:
        found = installed.open()
        assert found["variant"] == "cpu"
        assert "generated on this device yet; run `python -m tiny_cnn prewarm`" in found["rejected"]["openvino"]
        assert "has not been generated" in installed.open("strict=True")["why"]
        assert "cannot run here: its" in installed.call("info").stdout

    def test_once_made_every_later_start_takes_it(self, installed: Installed) -> None:
        done = installed.call("prewarm")
        assert done.returncode == 0, done.stderr
        assert "openvino: made" in done.stdout
        assert f"nodes assigned to {PROVIDER}" in done.stdout
        assert "reproducing the golden set" in done.stderr
        for _ in range(2):
            found = installed.open("strict=True")
            assert (found["variant"], found["prepared"]) == ("openvino", True)
            assert "on what was generated on this device" in found["text"]
        assert "openvino: can run here" in installed.call("info").stdout
        answer, _ = installed.ask("prewarm", "--json")
        assert [outcome["status"] for outcome in answer["prewarmed"]] == ["ready"]
        answer, _ = installed.ask("prewarm", "--json", "--force", "--variant", "openvino")
        assert [outcome["status"] for outcome in answer["prewarmed"]] == ["made"]
        assert len(installed.kept()) == 1

    def test_two_at_once_make_it_once(self, installed: Installed) -> None:
        command = ("-m", installed.package.name, "prewarm", "--json")
        started = [installed.start(*command) for _ in range(2)]
        answers = [json.loads(process.communicate()[0])["prewarmed"][0] for process in started]
        assert sorted(answer["status"] for answer in answers) == ["made", "ready"]
        assert len(installed.kept()) == 1

    def test_whoever_is_killed_leaves_nothing_that_counts(self, installed: Installed, tmp_path: Path) -> None:
        mark = tmp_path / "making"
        hang = f"import pathlib, time; pathlib.Path({str(mark)!r}).touch(); time.sleep(600)"
        lines = [
            f"import {installed.package.name}._loader.prewarming as prewarming, {installed.package.name} as package",
            f"def hang(*given): {hang}",
            "prewarming._prove = hang",
            "package.Model.prewarm()",
        ]
        process = installed.start("-c", "\n".join(lines))
        while not mark.exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        assert installed.open()["variant"] == "cpu"
        process.send_signal(signal.SIGKILL)
        process.communicate()
        drafts = list((installed.package.cache / "bundler-loader").glob("*.making"))
        assert len(drafts) == 1
        assert installed.open()["variant"] == "cpu"
        assert installed.call("prewarm").returncode == 0
        assert installed.open()["variant"] == "openvino"
        assert not list((installed.package.cache / "bundler-loader").glob("*.making"))

    def test_an_altered_file_is_found_and_dropped(self, installed: Installed) -> None:
        installed.call("prewarm")
        victim = max(installed.kept()[0].iterdir(), key=lambda path: (path.name != "kept.json", path.stat().st_size))
        data = bytearray(victim.read_bytes())
        data[len(data) // 2] ^= 0xFF
        victim.write_bytes(bytes(data))
        found = installed.open()
        assert found["variant"] == "cpu"
        assert "was removed" in found["rejected"]["openvino"]
        assert installed.kept() == []
        assert installed.call("prewarm").returncode == 0
        assert installed.open()["variant"] == "openvino"

    def test_another_model_needs_its_own(self, install: Install) -> None:
        installed = install()
        installed.call("prewarm")
        installed.package.model.write_bytes(models.cnn(batch=1, classes=5).SerializeToString() + b"\x0a\x00")
        data = installed.package.model.read_bytes()

        def alter(component: dict[str, Any]) -> None:
            for variant in component["variants"]:
                variant["files"][0].update(size=len(data), sha256=hashlib.sha256(data).hexdigest())
                (installed.package.payload / variant["files"][0]["path"]).write_bytes(data)

        installed.package.rewrite(alter)
        assert "has not been generated on this device yet" in installed.open()["rejected"]["openvino"]

    def test_what_does_not_reproduce_the_golden_set_is_not_used(self, install: Install) -> None:
        installed = install(gate=Gate(default=Tolerance(absolute=0.0, relative=0.0, sqnr_db=500.0)))
        done = installed.call("prewarm")
        assert done.returncode == 1
        assert "does not reproduce the golden set" in done.stdout
        found = installed.open()
        assert found["variant"] == "cpu"
        assert "does not reproduce the golden set" in found["rejected"]["openvino"]
        assert "--force" in found["rejected"]["openvino"]
        assert installed.call("prewarm").returncode == 1

    def test_a_cache_that_stays_empty_is_no_success(self, install: Install) -> None:
        installed = install(Preparation(kind="cache", thing="engine", options={"cache_dir": "{folder}"}))
        done = installed.call("prewarm")
        assert done.returncode == 1
        assert "the runtime wrote no engine to its folder" in done.stdout

    def test_it_lies_where_the_user_says_or_nowhere(self, install: Install, tmp_path: Path) -> None:
        installed, place = install(), tmp_path / "päth with \"quotes'"
        elsewhere = {"BUNDLER_PREPARED": str(place)}
        assert installed.call("prewarm", **elsewhere).returncode == 0
        assert installed.open(**elsewhere)["variant"] == "openvino"
        assert len(list(place.glob("*.prepared"))) == 1
        assert installed.open()["variant"] == "cpu"
        off = {"BUNDLER_PREPARED": "0"}
        assert installed.call("prewarm", **off).returncode == 3
        assert "turned off" in installed.open(**off)["rejected"]["openvino"]

    def test_a_place_that_takes_nothing_is_reported(self, install: Install) -> None:
        done = install().call("prewarm", BUNDLER_PREPARED="/proc/nowhere")
        assert done.returncode == 1
        assert "cannot be kept" in done.stdout

    def test_a_start_may_wait_for_it_or_leave_it_to_another_process(self, install: Install) -> None:
        installed = install()
        wrong = installed.open("prewarm='never'")
        assert wrong["error"] == "InputError"
        first = installed.open("prewarm='background'")
        assert first["variant"] == "cpu"
        assert "is being generated in the background" in first["remark"]
        waited = installed.open("prewarm='wait'")
        assert (waited["variant"], waited["prepared"]) == ("openvino", True)

    def test_self_test_makes_it_in_a_temporary_folder(self, installed: Installed) -> None:
        answer, done = installed.ask("self-test", "--json", "--variant", "each")
        assert done.returncode == 0, done.stderr
        outcomes = {outcome["variant"]: outcome for outcome in answer["variants"]}
        assert [outcome["status"] for outcome in outcomes.values()] == ["passed", "passed"]
        assert outcomes["openvino"]["nodes"][PROVIDER] > 0
        assert outcomes["openvino"]["figures"]["prewarm_seconds"] > 0
        assert installed.kept() == []


@pytest.mark.slow  # The plugin's wheel has 72 MB, and is put into the bundle.
@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("format_", ["dir", "wheel", "pex"])
def test_a_whole_bundle_carries_the_plugin_and_is_proven(plain: EmitRequest, tmp_path: Path, format_: str) -> None:
    request = with_variants(plain, on_openvino(plain), make_variant("cpu", model_artifact(plain)))
    runtime = request.profile.runtime.model_copy(update={"plugins": {DISTRIBUTION: VERSION}})
    python = request.profile.python.model_copy(update={"versions": ("3.11",)})
    profile = request.profile.model_copy(update={"runtime": runtime, "python": python})
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    emitted = EMITTER.emit(dataclasses.replace(request, profile=profile, format=format_), bundle)
    assert DISTRIBUTION in {component.name for component in emitted.dependencies}
    assert "prewarm" in (bundle / "README.md").read_text("utf-8")
    assert DISTRIBUTION in (bundle / "requirements.lock").read_text("utf-8")
    proofs = EMITTER.prove(ProofRequest(bundle=bundle, cache_root=request.environments.root, listener=ignore))
    assert [(proof.variant, proof.level, proof.passed) for proof in proofs] == [
        ("openvino", "executed", True),
        ("cpu", "executed", True),
    ]
    assert "on files that were generated for it" in proofs[0].reason
    assert proofs[0].nodes[PROVIDER] > 0
