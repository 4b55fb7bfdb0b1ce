"""Bundles of several components: opened together or lazily, each on its own variant or all on one, closed together."""

from __future__ import annotations

import dataclasses
import gc
import json
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime
import pytest

from bundler.emitters.contract import EmitRequest
from bundler.model.runtime import Preparation, ProviderEntry, RuntimeVariant
from tests.integration.python.packages import Package, imported, write_package
from tests.integration.python.test_device_copy import kept, part
from tests.integration.python.test_lifetime import run_program
from tests.integration.python.test_loader import an_image, flip_byte
from tests.support import models
from tests.support.bundles import combine_requests, make_request, make_variant, model_artifact, with_variants

ABSENT = {"providers": (ProviderEntry(name="NoSuchProvider", options={}),)}
MODELS = {"detect": models.cnn, "classify": models.mlp, "encode": models.token_encoder}


@pytest.fixture(scope="session")
def requests(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, EmitRequest]:
    folder = tmp_path_factory.mktemp("several")
    return {name: make_request(model(), _make(folder / name), name=f"tiny {name}") for name, model in MODELS.items()}


def _make(folder: Path) -> Path:
    folder.mkdir()
    return folder


Vary = Callable[..., Package]


@pytest.fixture
def vary(requests: Mapping[str, EmitRequest], tmp_path: Path) -> Vary:
    """Writes the package of three models: those named have other variants, by the changes of each."""

    def write(together: tuple[str, ...] = (), **variants: Mapping[str, Mapping[str, Any]]) -> Package:
        varied = {
            name: with_variants(request, *_make_variants(request, variants.get(name, {"cpu": {}})))
            for name, request in requests.items()
        }
        return write_package(combine_requests(varied, name="ocr", together=together), tmp_path)

    return write


def _make_variants(request: EmitRequest, variants: Mapping[str, Mapping[str, Any]]) -> list[RuntimeVariant]:
    """All of the first one's model, as bundles ship equal files once."""
    artifact = model_artifact(request)
    plain = make_variant(next(iter(variants)), artifact)
    return [dataclasses.replace(plain, name=name, **changes) for name, changes in variants.items()]


@pytest.fixture
def package(vary: Vary) -> Package:
    return vary()


@pytest.fixture
def module(package: Package) -> Iterator[ModuleType]:
    with imported(package) as found:
        yield found


def a_row() -> np.ndarray:
    return np.ones((2, 8), np.float32)


def count_sessions() -> int:
    gc.collect()
    return sum(isinstance(found, onnxruntime.InferenceSession) for found in gc.get_objects())


class TestOpening:
    def test_each_component_is_a_typed_member(self, module: ModuleType) -> None:
        with module.Bundle.open() as bundle:
            assert isinstance(bundle.detect, module.Detect)
            outputs = bundle.detect.run(image=an_image())
            assert isinstance(outputs, module.DetectOutputs)
            np.testing.assert_array_equal(outputs.scores, module.Detect().run(image=an_image()).scores)
            assert bundle.classify.run(x=a_row()).y.shape == (2, 4)
            assert {name: report.variant for name, report in bundle.report.items()} == dict.fromkeys(MODELS, "cpu")
            assert repr(bundle.report["detect"]) == "<LoadReport: variant cpu runs on CPUExecutionProvider>"
            assert repr(bundle) == "<ocr.Bundle: detect on cpu, classify on cpu, encode on cpu>"
            assert {name: test.passed for name, test in bundle.self_test().items()} == dict.fromkeys(MODELS, True)

    def test_a_lazy_one_opens_each_at_its_first_use(self, module: ModuleType) -> None:
        bundle = module.Bundle.open(lazy=True)
        assert repr(bundle) == "<ocr.Bundle: detect not open, classify not open, encode not open>"
        first = bundle.classify
        assert list(bundle.report) == ["classify"]
        assert bundle.classify is first

    def test_others_than_those_asked_for_are_not_there(self, module: ModuleType) -> None:
        for only in ("detect", ["detect"], iter({"detect": 1})):
            bundle = module.Bundle.open(only=only)
            assert list(bundle.report) == ["detect"]
        with pytest.raises(module.InputError, match="opened without component classify"):
            _ = bundle.classify
        with pytest.raises(AttributeError, match="no component 'nothing'"):
            _ = bundle.nothing
        for wrong in (["detect", "nothing"], "nothing", []):
            with pytest.raises(module.InputError, match="the components are detect, classify, encode"):
                module.Bundle.open(only=wrong)

    def test_arguments_reach_each_component(self, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        seen = []
        real = onnxruntime.InferenceSession.__init__

        def see(session: Any, path: str, options: Any, **more: Any) -> None:
            seen.append(options.intra_op_num_threads)
            real(session, path, options, **more)

        monkeypatch.setattr(onnxruntime.InferenceSession, "__init__", see)
        module.Bundle.open(threads=3).close()
        assert seen == [3, 3, 3]
        with pytest.raises(module.InputError, match="threads=-1"):
            module.Bundle.open(threads=-1)
        with pytest.raises(module.InputError, match="prewarm='now'"):
            module.Bundle.open(prewarm="now")

    def test_they_open_at_the_same_time(self, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each waits for the others: one after the other, they would wait in vain."""
        monkeypatch.setattr(part(module, "together"), "_count_processors", lambda: 3)
        meeting = threading.Barrier(3, timeout=60)
        together = part(module, "together")
        real = together.open_first

        def open_first(*arguments: Any, **named: Any) -> Any:
            meeting.wait()
            return real(*arguments, **named)

        monkeypatch.setattr(together, "open_first", open_first)
        module.Bundle.open().close()

    def test_on_one_processor_no_thread_is_started(self, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(part(module, "together"), "_count_processors", lambda: 1)
        monkeypatch.setattr(threading.Thread, "start", None)
        module.Bundle.open().close()

    def test_two_threads_open_a_lazy_component_once(self, module: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
        bundle, meeting = module.Bundle.open(lazy=True), threading.Barrier(8)

        def use(number: int) -> Any:
            meeting.wait()
            return bundle.detect if number % 2 else bundle.classify

        with caplog.at_level(logging.INFO, logger=module.__name__), ThreadPoolExecutor(8) as pool:
            assert len(set(map(id, pool.map(use, range(8))))) == 2
        messages = sorted(record.getMessage() for record in caplog.records)
        assert messages == [f"{name}: variant cpu runs on CPUExecutionProvider" for name in ("classify", "detect")]

    def test_one_model_alone_loads_as_little_as_before(self, package: Package) -> None:
        program = f"""
            import sys
            from {package.name} import Detect

            Detect()
            print([name for name in ("logging", "asyncio", "concurrent.futures", "contextlib") if name in sys.modules])
        """
        with imported(package) as module:
            module.Bundle.open().close()  # the digests are known
        bare = run_program(
            package,
            "import sys, onnxruntime; print([name for name in ('logging', 'asyncio', "
            "'concurrent.futures', 'contextlib') if name in sys.modules])",
        )
        assert run_program(package, program).stdout == bare.stdout


class TestRemembering:
    def test_what_was_checked_is_remembered_for_all(
        self, module: ModuleType, package: Package, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        integrity = part(module, "integrity")
        monkeypatch.setattr(integrity, "SETTLED_NS", 0)
        bundle = module.Bundle.open(lazy=True)
        for name in MODELS:
            getattr(bundle, name)
        (record,) = (package.cache / "bundler-loader").glob("*.json")
        known = json.loads(record.read_text("utf-8"))
        assert sorted(known) == [*(f"models/{name}/cpu/model.onnx" for name in sorted(MODELS)), "runtime.json"]
        monkeypatch.setattr(integrity, "hash_file", None)
        module.Bundle.open().close()
        with pytest.raises(TypeError):
            module.Bundle.open(always_check=True)

    def test_each_component_keeps_a_copy_of_its_own(self, vary: Vary) -> None:
        session = {"graph_optimization_level": "ORT_ENABLE_ALL", "intra_op_num_threads": 1}
        copied = {"cpu": {"device_cache": True, "session": session}}
        package = vary(detect=copied, classify=copied)
        with imported(package) as module:
            for expected in (False, True):
                report = module.Bundle.open().report
                assert [report[name].device_copy for name in MODELS] == [expected, expected, False]
            assert len(kept(package)) == 2


class TestFaults:
    @pytest.mark.parametrize("lazy", [False, True])
    def test_an_altered_file_is_reported_with_its_component(self, package: Package, *, lazy: bool) -> None:
        before = count_sessions()
        flip_byte(package.payload / "models" / "classify" / "cpu" / "model.onnx")
        with imported(package) as module:
            with pytest.raises(module.IntegrityError, match=r"^component classify: .*does not match its checksum"):
                module.Bundle.open(lazy=lazy).classify.run(x=a_row())
            assert count_sessions() == before
            with module.Bundle.open(only=["detect", "encode"]) as bundle:
                assert bundle.detect.run(image=an_image()).scores.shape == (2, 5)

    def test_an_altered_golden_set_is_reported_with_its_component(self, package: Package) -> None:
        flip_byte(package.payload / "golden" / "detect" / "000" / "out-0.bin")
        with imported(package) as module, module.Bundle.open() as bundle:
            with pytest.raises(module.IntegrityError, match="component detect: the golden set"):
                bundle.self_test()
            assert bundle.classify.self_test().passed

    def test_a_component_that_cannot_run_keeps_none_open(self, vary: Vary) -> None:
        before = count_sessions()
        with imported(vary(classify={"npu": ABSENT})) as module:
            with pytest.raises(module.IncompatibleError, match="component classify: no variant") as caught:
                module.Bundle.open()
            assert "npu: the runtime here has no NoSuchProvider" in caught.value.why
            assert count_sessions() == before
            assert list(module.Bundle.open(only=["detect", "encode"]).report) == ["detect", "encode"]
            lazy = module.Bundle.open(lazy=True)
            assert lazy.encode.self_test().passed
            for _ in range(2):
                with pytest.raises(module.IncompatibleError, match="component classify"):
                    _ = lazy.classify
            assert lazy.detect.run(image=an_image()).scores.shape == (2, 5)

    def test_of_two_that_cannot_run_the_same_is_reported_each_time(self, vary: Vary) -> None:
        with imported(vary(detect={"npu": ABSENT}, encode={"npu": ABSENT})) as module:
            found = set()
            for _ in range(5):
                with pytest.raises(module.IncompatibleError) as caught:
                    module.Bundle.open()
                found.add(caught.value.what)
        assert len(found) == 1

    def test_a_fallback_is_reported_with_its_component(self, vary: Vary) -> None:
        with imported(vary(classify={"npu": ABSENT, "cpu": {}})) as module:
            with pytest.warns(module.FallbackWarning, match="component classify: variant cpu") as caught:
                bundle = module.Bundle.open()
            with pytest.warns(module.FallbackWarning) as lazily:
                _ = module.Bundle.open(lazy=True).classify
            assert {record.filename for record in (*caught, *lazily)} == {__file__}
            assert bundle.report["classify"].rejected == [("npu", "the runtime here has no NoSuchProvider")]
            assert not bundle.report["detect"].fell_back
            with pytest.raises(module.FallbackError, match="component classify: variant npu cannot run here"):
                module.Bundle.open(strict=True)

    def test_a_warning_that_is_an_error_leaves_nothing_open(self, vary: Vary) -> None:
        before = count_sessions()
        with imported(vary(classify={"npu": ABSENT, "cpu": {}})) as module, warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(module.FallbackWarning):
                module.Bundle.open()
            assert count_sessions() == before


class TestTogether:
    BOUND = ("detect", "encode")

    def test_they_take_the_variant_of_one_name(self, vary: Vary) -> None:
        package = vary(
            together=self.BOUND,
            detect={"npu": {}, "gpu": {}, "cpu": {}},
            encode={"npu": ABSENT, "cpu": {}},
            classify={"npu": {}, "cpu": {}},
        )
        with imported(package) as module:
            with pytest.warns(module.FallbackWarning, match="variant npu does not: encode: the runtime here has no"):
                bundle = module.Bundle.open()
            taken = {name: report.variant for name, report in bundle.report.items()}
            assert taken == {"detect": "cpu", "classify": "npu", "encode": "cpu"}
            with pytest.raises(module.FallbackError, match="component detect and encode: variant npu cannot run here"):
                module.Bundle.open(strict=True)
            assert module.Bundle.open(only=["detect"]).report["detect"].variant == "npu"

    def test_one_that_fails_when_it_is_opened_closes_the_other(self, vary: Vary) -> None:
        before = count_sessions()
        refused = {"session_config": {"session.layer_assignment_settings": "x("}}
        package = vary(together=self.BOUND, detect={"npu": {}, "cpu": {}}, encode={"npu": refused, "cpu": {}})
        with imported(package) as module:
            with pytest.warns(module.FallbackWarning, match="encode: the runtime could not open it"):
                bundle = module.Bundle.open()
            assert count_sessions() == before + 3
            bundle.close()
        assert count_sessions() == before

    def test_an_error_of_one_leaves_the_other_closed(self, vary: Vary) -> None:
        before = count_sessions()
        package = vary(together=self.BOUND)
        flip_byte(package.payload / "models" / "encode" / "cpu" / "model.onnx")
        with imported(package) as module:
            with pytest.raises(module.IntegrityError, match="component detect and encode: ") as caught:
                module.Bundle.open()
            assert caught.value.args == (caught.value.what,)
            assert count_sessions() == before + 1  # the altered one's, as long as its traceback is there

    def test_the_first_use_of_one_opens_all_of_them(self, vary: Vary) -> None:
        with imported(vary(together=self.BOUND)) as module:
            bundle = module.Bundle.open(lazy=True)
            assert bundle.encode
            assert list(bundle.report) == ["detect", "encode"]

    def test_without_a_variant_for_all_none_runs(self, vary: Vary) -> None:
        package = vary(together=self.BOUND, detect={"npu": {}, "cpu": ABSENT}, encode={"npu": ABSENT, "cpu": {}})
        with imported(package) as module:
            with pytest.raises(module.IncompatibleError, match="component detect and encode: no variant") as caught:
                module.Bundle.open()
            absent = "the runtime here has no NoSuchProvider"
            assert caught.value.why == f"npu: encode: {absent}; cpu: detect: {absent}"

    def test_names_that_they_do_not_share_are_no_choice(self, vary: Vary) -> None:
        package = vary(together=self.BOUND, detect={"npu": {}}, encode={"cpu": {}})
        with imported(package) as module, pytest.raises(module.IncompatibleError, match="no variant of the same name"):
            module.Bundle.open()


class TestEnding:
    def test_after_closing_every_use_says_so(self, module: ModuleType) -> None:
        before = count_sessions()
        with module.Bundle.open() as bundle:
            detect = bundle.detect
        assert count_sessions() == before
        for use in (
            lambda: bundle.detect.run(image=an_image()),
            lambda: detect.run(image=an_image()),
            bundle.self_test,
        ):
            with pytest.raises(module.ClosedError, match=r"^component detect is closed") as caught:
                use()
            assert caught.value.hint == "open another with Bundle.open()"
        assert repr(bundle) == "<ocr.Bundle: closed>"
        assert bundle.report["detect"].variant == "cpu"
        bundle.close()  # once more does no harm
        lazy = module.Bundle.open(lazy=True)
        lazy.close()
        with pytest.raises(module.ClosedError, match="this bundle is closed"):
            _ = lazy.detect

    def test_closed_while_a_component_opens(self, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        before = count_sessions()
        bundle = module.Bundle.open(lazy=True)
        together = part(module, "together")
        real = together.open_first

        def open_first(*arguments: Any, **named: Any) -> Any:
            bundle.close()
            return real(*arguments, **named)

        monkeypatch.setattr(together, "open_first", open_first)
        with pytest.raises(module.ClosedError, match="this bundle is closed"):
            _ = bundle.detect
        assert count_sessions() == before

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
    def test_a_forked_child_opens_its_own(self, package: Package) -> None:
        program = f"""
            import os, sys, threading
            import numpy as np
            from {package.name} import Bundle, ClosedError

            image = np.zeros((2, 3, 16, 16), np.float32)
            bundle = Bundle.open(lazy=True)
            bundle.detect.run(image=image)
            bundle._lock.acquire()  # as if another thread opened one just now
            bundle._groups["classify"].lock.acquire()
            child = os.fork()
            if not child:
                try:
                    bundle.detect.run(image=image)
                except ClosedError as error:
                    print(error, flush=True)
                print(bundle.classify.run(x=np.zeros((2, 8), np.float32)).y.shape, flush=True)
                print(Bundle.open(only="detect").detect.run(image=image).scores.shape, flush=True)
                sys.exit(7)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            print(code, bundle.detect.run(image=image).scores.shape)
        """
        done = run_program(package, program)
        lines = done.stdout.splitlines()
        assert lines[0] == "component detect was opened before the process was forked", done.stderr
        assert "call Bundle.open() in each worker process" in lines[2]
        assert lines[3:] == ["(2, 4)", "(2, 5)", "7 (2, 5)"]


class TestCommandLine:
    def test_info_shows_each_component(self, package: Package) -> None:
        text = package.call("info").stdout
        assert text.startswith("ocr for linux-x64\n\ncomponent detect\ninputs\n  image: float32")
        found = package.ask("info", "--json")
        assert found["name"] == "ocr"
        assert found["components"]["classify"]["variants"] == {"cpu": None}
        assert list(package.ask("info", "--json", "--component", "encode")["components"]) == ["encode"]

    def test_the_self_test_runs_each_variant_of_each_component(self, vary: Vary) -> None:
        package = vary(classify={"npu": ABSENT, "cpu": {}})
        done = package.call("self-test", "--variant", "each")
        assert done.returncode == 0, done.stderr
        starts = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
        assert starts[0] == "detect/cpu: passed"
        assert starts[1].startswith("classify/npu: unavailable, the runtime here has no NoSuchProvider")
        assert starts[2:] == ["classify/cpu: passed", "encode/cpu: passed"]
        outcomes = package.ask("self-test", "--json", "--component", "classify")["variants"]
        assert [(outcome["component"], outcome["variant"]) for outcome in outcomes] == [("classify", "cpu")]

    def test_an_error_names_the_component(self, vary: Vary) -> None:
        done = vary(classify={"npu": ABSENT}).call("self-test", "--json")
        assert done.returncode == 3
        assert json.loads(done.stdout)["error"]["message"].startswith("component classify: no variant")

    def test_one_component_is_run_at_a_time(self, package: Package, tmp_path: Path) -> None:
        np.savez(tmp_path / "in.npz", x=a_row())
        done = package.call("run", str(tmp_path / "in.npz"))
        assert done.returncode == 2
        assert "this bundle has 3 components" in done.stderr
        assert "--component detect (or classify, encode)" in done.stderr
        chosen = ("--component", "classify", "-o", str(tmp_path / "out.npz"))
        assert package.call("run", str(tmp_path / "in.npz"), *chosen).returncode == 0
        assert np.load(tmp_path / "out.npz")["y"].shape == (2, 4)
        unknown = package.call("info", "--component", "nothing")
        assert unknown.returncode == 2
        assert "invalid choice" in unknown.stderr

    def test_bench_times_each_component_or_one(self, package: Package) -> None:
        found = package.ask("bench", "--json", "--seconds", "0.3")
        assert [timed["component"] for timed in found["components"]] == list(MODELS)
        one = package.ask("bench", "--json", "--seconds", "0.1", "--component", "encode", "--callers", "1,2")
        assert (one["component"], one["variant"], len(one["throughput"])) == ("encode", "cpu", 2)
        text = package.call("bench", "--seconds", "0.3").stdout
        assert [line for line in text.splitlines() if line.startswith("component")] == [
            f"component {name}, variant cpu" for name in MODELS
        ]
        refused = package.call("bench", "--compare", "model.onnx")
        assert (refused.returncode, "--component NAME" in refused.stderr) == (2, True)

    def test_prewarming_names_the_component(self, vary: Vary) -> None:
        package = vary(encode={"npu": {"prepare": Preparation(kind="cache", thing="engine")}, "cpu": {}})
        with imported(package) as module:
            assert [outcome["component"] for outcome in module.Bundle.prewarm()] == ["encode"]
            assert module.Bundle.prewarm(only="detect") == []
        done = package.call("prewarm", "--component", "encode", "--force")
        assert done.stdout.startswith("encode/npu: ")

    def test_prewarming_in_the_background_is_of_the_component(
        self, vary: Vary, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started: list[list[str]] = []
        package = vary(encode={"npu": {"prepare": Preparation(kind="cache", thing="engine")}, "cpu": {}})
        with imported(package) as module:
            popen = lambda command, **_: started.append(command)  # noqa: E731
            monkeypatch.setattr(part(module, "prewarming").subprocess, "Popen", popen)
            with pytest.warns(module.FallbackWarning, match="engine of variant encode/npu is being generated"):
                module.Bundle.open(prewarm="background")
        assert [command[1:] for command in started] == [
            ["-m", "ocr", "prewarm", "--component", "encode", "--variant", "npu"]
        ]


def test_a_bundle_of_an_earlier_bundler_says_which_wrote_it(package: Package) -> None:
    path = package.payload / "runtime.json"
    for schema, writer in ((3, "an earlier"), (5, "a later")):
        path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "schema": schema}), "utf-8")
        package.repin()
        error = package.ask("info", "--json")["error"]
        assert error["message"] == f"runtime.json has schema {schema}"
        assert error["why"] == f"{writer} version of bundler wrote it, and this loader reads schema 4"


def test_a_golden_set_outside_is_refused(package: Package) -> None:
    package.rewrite(lambda component: component.update(golden="../elsewhere"))
    error = package.ask("self-test", "--json")["error"]
    assert error["why"] == "detect/golden: the folder ../elsewhere is outside"
