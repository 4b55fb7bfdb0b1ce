"""Providers of plugins, shares and drivers, where the real thing cannot be made to fail."""

from __future__ import annotations

import dataclasses
import importlib
import json
import shutil
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest

from bundler.emitters.contract import EmitRequest
from bundler.model.runtime import Compiled, Preparation, ProviderEntry
from tests.integration.python.packages import Package, imported, write_package
from tests.support.bundles import make_variant, model_artifact, with_variants

NAME, MODULE = "FancyExecutionProvider", "fancy_plugin"
CPU = ProviderEntry(name="CPUExecutionProvider", options={})


def part(module: ModuleType, name: str) -> ModuleType:
    return importlib.import_module(f"{module.__name__}._loader.{name}")


class Runtime:
    """The runtime's side of plugins: `devices` appear once the library is registered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.devices = [self.device("npu-1"), self.device("npu-2")]
        self.registered: list[tuple[str, str]] = []
        self.given: list[tuple[list[Any], dict[str, str]]] = []
        self.refusal: Exception | None = None
        monkeypatch.setattr(onnxruntime, "register_execution_provider_library", self.register)
        monkeypatch.setattr(onnxruntime, "get_ep_devices", lambda: self.devices if self.registered else [])
        library = types.ModuleType(MODULE)
        library.get_library_path = lambda: "/plugins/libfancy.so"  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, MODULE, library)

    def device(self, model: str, kind: str = "NPU") -> Any:
        hardware = SimpleNamespace(vendor_id=1, device_id=2, metadata={}, type=SimpleNamespace(name=kind))
        return SimpleNamespace(
            ep_name=NAME, ep_vendor="Fancy", ep_metadata={"model": model, "library_path": "x"}, device=hardware
        )

    def register(self, name: str, path: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.registered.append((name, path))


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    return Runtime(monkeypatch)


Bundle = Callable[..., Any]


@pytest.fixture
def bundle(cnn_request: EmitRequest, tmp_path: Path) -> Bundle:
    """A bundle whose preferred variant runs on the plugin."""

    @contextmanager
    def write(**changes: Any) -> Iterator[ModuleType]:
        select, compiled = changes.pop("select", {}), changes.pop("compiled", None)
        entry = ProviderEntry(name=NAME, options={"mode": "fast"}, library=MODULE, select=select)
        plain = make_variant("cpu", model_artifact(cnn_request))
        requires = dataclasses.replace(plain.requires, compiled=compiled)
        fancy = make_variant("fancy", model_artifact(cnn_request), providers=(entry, CPU), requires=requires, **changes)
        with imported(write_package(with_variants(cnn_request, fancy, plain), tmp_path)) as module:
            yield module

    return write


def rejected(module: ModuleType) -> str:
    """Why the preferred variant does not run."""
    with pytest.warns(module.FallbackWarning):
        model = module.Model()
    assert model.report.variant == "cpu"
    assert model.run(image=np.ones((1, 3, 16, 16), np.float32)).scores.shape == (1, 5)
    return str(dict(model.report.rejected)["fancy"])


class TestPlugins:
    def test_a_library_that_does_not_load_is_a_reason(self, bundle: Bundle, runtime: Runtime) -> None:
        runtime.refusal = RuntimeError("libcuda.so.1: cannot open shared object file")
        with bundle() as module:
            assert "the library of fancy_plugin cannot be loaded (libcuda.so.1" in rejected(module)

    def test_where_packages_are_installed_is_no_part_of_the_reason(
        self, bundle: Bundle, runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It goes into manifests, which are the same on all machines; a long path would cut off what matters, too."""
        folder = tmp_path / ("a" * 200) / ("b" * 200)
        monkeypatch.syspath_prepend(str(folder))
        said = f"Failed to load library {folder}/fancy_plugin/libfancy.so with error: libcuda.so.1: cannot open"
        runtime.refusal = RuntimeError(said)
        with bundle() as module:
            assert (
                "(Failed to load library fancy_plugin/libfancy.so with error: libcuda.so.1: cannot open)"
                in rejected(module)
            )

    def test_no_device_is_a_reason(self, bundle: Bundle, runtime: Runtime) -> None:
        runtime.devices = []
        with bundle() as module:
            assert "finds no device that it supports here" in rejected(module)

    def test_the_device_that_was_asked_for_is_taken_and_the_library_loaded_once(
        self, bundle: Bundle, runtime: Runtime
    ) -> None:
        with bundle(select={"model": "npu-2"}) as module:
            plugins = part(module, "plugins")
            options = SimpleNamespace(
                add_provider_for_devices=lambda devices, given: runtime.given.append((devices, given)),
                add_provider=lambda name, given: runtime.given.append((name, given)),
            )
            variant = module.Model.pins.read().variants[0]
            for _ in range(2):
                assert plugins.find_plugin_obstacle(variant) is None
                plugins.add_providers(options, variant, dict)
        assert runtime.registered == [(NAME, "/plugins/libfancy.so")]
        assert runtime.given[:2] == [([runtime.devices[1]], {"mode": "fast"}), ("CPUExecutionProvider", {})]

    def test_a_device_that_goes_away_is_a_reason(
        self, bundle: Bundle, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Or one that the runtime does not take: these are no devices of its own."""
        with bundle() as module:
            monkeypatch.setattr(part(module, "plugins"), "find_plugin_obstacle", lambda _: None)
            runtime.devices = []
            assert "the runtime could not open it (FancyExecutionProvider finds no device" in rejected(module)

    @pytest.mark.parametrize(
        ("judgement", "found"),
        [
            ("EP_UNSUPPORTED", "unsupported"),
            ("EP_SUPPORTED_PREFER_RECOMPILATION", "outdated"),
            ("EP_NOT_APPLICABLE", ""),
        ],
    )
    def test_the_runtime_judges_what_was_compiled(
        self, bundle: Bundle, runtime: Runtime, monkeypatch: pytest.MonkeyPatch, judgement: str, found: str
    ) -> None:
        compiled = Compiled(provider=NAME, devices=("57", "69"), sdk="2.51", statement="v2:57")
        with bundle(compiled=compiled) as module:
            plugins, variants = part(module, "plugins"), part(module, "variants")
            native = SimpleNamespace(
                get_model_compatibility_for_ep_devices=lambda devices, text: SimpleNamespace(
                    name=judgement if (devices, text) == ([runtime.devices[0]], "v2:57") else "wrong"
                )
            )
            monkeypatch.setattr(plugins, "_native", native)
            variant = module.Model.pins.read().variants[0]
            assert plugins.judge_compiled(variant) == found
            obstacle = variants.find_obstacle(variant)
            assert (obstacle is not None) == (found == "unsupported")
            if obstacle:
                assert "it was compiled for 57, 69 with 2.51" in obstacle
            assert bool(variants._describe_compiled(variant)) == (found == "outdated")
            monkeypatch.setattr(plugins, "_native", SimpleNamespace())
            assert plugins.judge_compiled(variant) == "", "an older runtime has no opinion"

    def test_self_test_of_what_cannot_be_prepared_is_reported(
        self,
        bundle: Bundle,
        runtime: Runtime,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        assert runtime.devices

        def give_up(*_: object) -> None:
            raise RuntimeError("the compiler gave up")

        with bundle(prepare=Preparation(kind="context", thing="context")) as module:
            monkeypatch.setattr(part(module, "plugins"), "add_providers", give_up)
            assert part(module, "cli").main("tiny", module.Model, ["self-test", "--variant", "each"]) == 0
            assert part(module, "cli").main("tiny", module.Model, ["prewarm"]) == 3
        shown = capsys.readouterr().out
        assert "fancy: unavailable, the runtime could not generate its context (the compiler gave up)" in shown
        assert "cpu: passed" in shown

    def test_what_cannot_be_prepared_for_want_of_a_device_is_reported(self, bundle: Bundle, runtime: Runtime) -> None:
        runtime.devices = []
        with bundle(prepare=Preparation(kind="context", thing="context")) as module:
            (outcome,) = module.Model.prewarm()
            assert (outcome["status"], "finds no device" in outcome["reason"]) == ("unavailable", True)


class TestShares:
    ASSIGNED = (("A", "Conv"), ("A", "QuantizeLinear"), ("B", "Relu"), ("B", "DequantizeLinear"), ("B", "Gemm"))

    def test_nodes_that_fold_into_others_do_not_count(self, module: ModuleType) -> None:
        judge = part(module, "variants").judge_share
        assert judge(list(self.ASSIGNED), "A", 0.3, compiled=False) is None
        assert judge(list(self.ASSIGNED), "A", 0.5, compiled=False) == "1 of 3 nodes are assigned to A (min 50%)"

    def test_of_what_was_compiled_all_must_be_taken(self, module: ModuleType) -> None:
        judge = part(module, "variants").judge_share
        parts = [("A", "EPContext"), ("CPU", "EPContext"), ("CPU", "Relu")]
        assert judge(parts[:1] + parts[2:], "A", 1.0, compiled=True) is None
        assert judge(parts, "A", 1.0, compiled=True) == "1 of 2 compiled parts are assigned to A (min 100%)"
        assert "0 of 0" in str(judge(parts[2:], "A", 1.0, compiled=True))

    def test_a_variant_with_too_few_nodes_is_refused(
        self, cnn_request: EmitRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        artifact = model_artifact(cnn_request)
        request = with_variants(
            cnn_request, make_variant("fancy", artifact, least_share=0.9), make_variant("cpu", artifact)
        )
        with imported(write_package(request, tmp_path)) as module:
            model = module.Model()
            assert model.report.variant == "fancy"
            assert sum(model.report.nodes.values()) > 1
            elsewhere = [("OtherExecutionProvider", "Conv"), ("CPUExecutionProvider", "Gemm")]
            monkeypatch.setattr(part(module, "variants"), "list_assigned", lambda _: elsewhere)
            assert "1 of 2 nodes are assigned to CPUExecutionProvider (min 90%)" in rejected(module)
            with pytest.raises(module.FallbackError, match="1 of 2 nodes"):
                module.Model(strict=True)


class TestPreparing:
    """On the runtime's own provider, which prepares nothing."""

    @pytest.fixture
    def package(self, cnn_request: EmitRequest, tmp_path: Path) -> Package:
        prepare = Preparation(kind="context", thing="context")
        artifact = model_artifact(cnn_request)
        variants = (make_variant("fancy", artifact, prepare=prepare), make_variant("cpu", artifact))
        return write_package(with_variants(cnn_request, *variants), tmp_path)

    def test_a_provider_that_compiles_nothing_is_reported(self, package: Package) -> None:
        done = package.call("prewarm")
        assert done.returncode == 1
        assert "fancy: failed" in done.stdout
        assert "Traceback" not in done.stderr
        assert not [path for path in (package.cache / "bundler-loader").iterdir() if path.name.endswith(".making")]

    def test_a_provider_that_does_not_come_up_is_no_lasting_failure(
        self, module: ModuleType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A library that is missing today may be installed tomorrow."""
        prewarming, words = part(module, "prewarming"), "the runtime uses B instead of A, B"
        monkeypatch.setattr(prewarming, "compare_providers", lambda *_: words)
        (outcome,) = module.Model.prewarm()
        assert (outcome["status"], outcome["reason"]) == ("unavailable", words)
        assert "has not been generated on this device yet" in rejected(module)

    def test_no_room_is_reported(self, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(part(module, "keeping"), "_measure_room", lambda _: 10)
        (outcome,) = module.Model.prewarm()
        assert outcome["status"] == "failed"
        assert "no space or no permission" in outcome["reason"]

    def test_no_cache_folder_is_reported(self, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        assert "name one in BUNDLER_PREPARED" in rejected(module)
        (outcome,) = module.Model.prewarm()
        assert outcome["status"] == "unavailable"

    def test_an_altered_bundle_is_not_prepared(self, package: Package) -> None:
        package.model.write_bytes(package.model.read_bytes()[:-1])
        done = package.call("prewarm", "--json")
        assert done.returncode == 3
        assert json.loads(done.stdout)["error"]["kind"] == "IntegrityError"

    def test_an_interruption_is_reported_without_a_trace(
        self, package: Package, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        with imported(package) as module:
            monkeypatch.setattr(part(module, "prewarming"), "_fill", interrupt)
            assert part(module, "cli").main(package.name, module.Model, ["prewarm"]) == 130
        assert not list((package.cache / "bundler-loader").glob("*.making"))

    def test_there_may_be_nothing_to_make(self, package: Package) -> None:
        done = package.call("prewarm", "--variant", "cpu")
        assert (done.returncode, done.stdout) == (0, "no variant requires anything to be generated on the device\n")
        assert package.call("prewarm", "--variant", "gpu").returncode == 2


class TestProof:
    def test_an_accelerator_that_does_not_open_is_unavailable_and_the_cpu_is_still_proven(
        self,
        cnn_request: EmitRequest,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        artifact = model_artifact(cnn_request)
        entry = ProviderEntry(name="FancyExecutionProvider", options={})
        request = with_variants(
            cnn_request, make_variant("fancy", artifact, providers=(entry, CPU)), make_variant("cpu", artifact)
        )
        monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [entry.name, CPU.name])
        with imported(write_package(request, tmp_path)) as module:
            variants = part(module, "variants")
            plainly = variants.open_plainly

            def open_plainly(variant: Any, memory: Any) -> Any:
                if variant.name == "fancy":
                    raise RuntimeError("no such device")
                return plainly(variant, memory)

            monkeypatch.setattr(variants, "open_plainly", open_plainly)
            code = part(module, "cli").main("tiny", module.Model, ["self-test", "--variant", "each", "--json"])
        outcomes = json.loads(capsys.readouterr().out)["variants"]
        assert code == 0
        assert [outcome["status"] for outcome in outcomes] == ["unavailable", "passed"]
        assert outcomes[0]["reason"] == "the runtime could not open it (no such device)"


class TestDrivers:
    @pytest.fixture
    def drivers(self, prepared: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
        found = part(prepared, "drivers")
        monkeypatch.setattr(found, "_NVIDIA", str(tmp_path / "nvidia"))
        monkeypatch.setattr(found, "_SYSFS", str(tmp_path / "module"))
        return found

    @pytest.mark.skipif(sys.platform != "linux", reason="the files are those of Linux")
    def test_drivers_and_cards_are_distinguished(self, drivers: ModuleType, tmp_path: Path) -> None:
        assert drivers.identify_drivers() == "unknown"
        (tmp_path / "module" / "intel_vpu").mkdir(parents=True)
        (tmp_path / "nvidia" / "gpus" / "0").mkdir(parents=True)
        (tmp_path / "nvidia" / "version").write_text("NVRM version: 570.1\n", "utf-8")
        (tmp_path / "nvidia" / "gpus" / "0" / "information").write_text("Model: \t RTX\nIRQ: 7\n", "utf-8")
        first = drivers.identify_drivers()
        assert "570.1" in first
        assert "RTX" in first
        assert "IRQ" not in first
        (tmp_path / "module" / "intel_vpu" / "version").write_text("1.2.3\n", "utf-8")
        assert "intel_vpu 1.2.3" in drivers.identify_drivers()
        assert drivers.identify_drivers() != first

    def test_a_device_is_its_plugins_word_without_its_place(
        self, bundle: Bundle, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with bundle(prepare=Preparation(kind="context", thing="context")) as module:
            drivers, variant = part(module, "drivers"), module.Model.pins.read().variants[0]
            first = drivers.identify_device(variant)
            runtime.devices[0].ep_metadata["library_path"] = "elsewhere"
            runtime.devices[0].ep_metadata["NPU_DEVICE_ALLOC_MEM_SIZE"] = "4711"
            runtime.devices[0].device.metadata["LUID"] = "another since the last boot"
            assert drivers.identify_device(variant) == first
            monkeypatch.setattr(drivers, "identify_drivers", lambda: "another")
            assert drivers.identify_device(variant) != first
            runtime.devices = [runtime.device("cpu", "CPU")]
            alone = drivers.identify_device(variant)
            monkeypatch.setattr(drivers, "identify_drivers", lambda: "a third")
            assert drivers.identify_device(variant) == alone, "a CPU has no driver"


def test_a_lock_is_held_by_one_and_the_other_is_reported(prepared: ModuleType, tmp_path: Path) -> None:
    hold, path = part(prepared, "locking").hold, str(tmp_path / "folder" / "lock")
    notified, entered = threading.Event(), threading.Event()

    def work() -> None:
        with hold(path, notified.set):
            entered.set()

    with hold(path, lambda: None):
        other = threading.Thread(target=work)
        other.start()
        assert notified.wait(60)
        assert not entered.is_set()
    other.join()
    assert entered.is_set()


def test_a_long_work_gives_signs_of_life(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heartbeat = part(module, "heartbeat")
    monkeypatch.setattr(heartbeat, "PAUSE", 0.001)
    seen = ""
    with heartbeat.Heartbeat() as beating:
        beating.tell(0.5, "making its engine")
        while "still making its engine after" not in seen:
            seen += capsys.readouterr().err
    assert "prewarm  50%: making its engine" in seen


def test_a_plain_bundle_pays_for_nothing_of_this(package: Package) -> None:
    names = ("plugins", "prepared", "prewarming", "locking", "drivers", "device_copy", "keeping", "cli")
    ours = f"[name for name in {names} if '{package.name}._loader.' + name in sys.modules]"
    show = f"import sys, {package.name}; {package.name}.Model(); print({ours})"
    done = subprocess.run([sys.executable, "-c", show], cwd=package.root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("gcc") is None, reason="builds libraries with gcc")
class TestCarriedLibraries:
    """A wheel holds no links, so that a library has one name in it: its longest."""

    def build(self, folder: Path, name: str, code: str, *options: str) -> Path:
        source, library = folder / f"{name}.c", folder / name
        source.write_text(code, "utf-8")
        subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(library), *options], check=True)
        return library

    def make_plugin(self, folder: Path) -> Path:
        """As onnxruntime-ep-nv-tensorrt-rtx-cu13 0.5.0 is: it carries `libcudart.so.13.4.36`, is linked to
        `libcudart.so.13`, and has no path to look for it. The factory of this one offers no device.
        """
        folder.mkdir()
        for name, version in (("libcudart_like", "13.4.36"), ("libbase_like", "1.7.1")):
            soname = f"{name}.so.{version.partition('.')[0]}"
            code = f"int {name}(void) {{ return 1; }}"
            self.build(folder, f"{name}.so.{version}", code, f"-Wl,-soname,{soname}")
        code = (
            "#include <stddef.h>\nint libcudart_like(void); int libbase_like(void);\n"
            "void *CreateEpFactories(const char *n, const void *a, const void *l, void **f, size_t most, size_t *count)"
            "{ *count = libcudart_like() - libbase_like(); return 0; }\n"
            "void *ReleaseEpFactory(void *f) { return 0; }\n"
        )
        carried = [str(path) for path in folder.glob("*.so.*[0-9]")]
        return self.build(folder, "libfancy.so", code, *carried)

    def register(self, library: Path, package: Package) -> subprocess.CompletedProcess[str]:
        """In a process of its own, by the real runtime: what is loaded stays."""
        words = f"from {package.name}._loader.plugins import _register_library as r; r('Fancy', {str(library)!r})"
        return subprocess.run(
            [sys.executable, "-c", words], cwd=package.root, capture_output=True, text=True, check=False
        )

    @pytest.fixture
    def package(self, cnn_request: EmitRequest, tmp_path: Path) -> Package:
        entry = ProviderEntry(name=NAME, options={}, library=MODULE)
        return write_package(
            with_variants(cnn_request, make_variant("fancy", model_artifact(cnn_request), providers=(entry, CPU))),
            tmp_path,
        )

    def test_they_are_loaded_by_their_real_names(self, package: Package, tmp_path: Path) -> None:
        library = self.make_plugin(tmp_path / "plugin")
        plain = f"import onnxruntime; onnxruntime.register_execution_provider_library('Fancy', {str(library)!r})"
        alone = subprocess.run([sys.executable, "-c", plain], capture_output=True, text=True, check=False)
        assert "_like.so." in alone.stderr, "the runtime alone does not find them"
        done = self.register(library, package)
        assert done.returncode == 0, done.stderr

    def test_one_that_the_plugin_does_not_carry_is_named(self, package: Package, tmp_path: Path) -> None:
        library = self.make_plugin(tmp_path / "plugin")
        (tmp_path / "plugin" / "libbase_like.so.1.7.1").unlink()
        done = self.register(library, package)
        assert done.returncode == 1
        assert "libbase_like.so.1: cannot open shared object file" in done.stderr
