"""The five duties of the loader, on a package as a user has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

from bundler.emitters.contract import EmitRequest
from bundler.model.runtime import Compatibility, ProviderEntry
from tests.integration.python.packages import Package, imported, write_package
from tests.support import models
from tests.support.bundles import make_request, make_variant, model_artifact, model_outcome, with_variants


def an_image(batch: int = 2) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((batch, 3, 16, 16)).astype(np.float32)


def flip_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


class TestRunning:
    @pytest.mark.quick
    def test_answers_as_the_original_model_does(self, module: ModuleType, cnn_request: EmitRequest) -> None:
        source = model_outcome(cnn_request).path
        plain = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
        outputs = module.Model().run(image=an_image())
        assert outputs._fields == ("scores",)
        np.testing.assert_allclose(outputs.scores, plain.run(None, {"image": an_image()})[0], atol=1e-6)

    @pytest.mark.quick
    def test_scalars_of_numpy_are_taken_and_outputs_have_the_models_names_too(self, tmp_path: Path) -> None:
        text = (
            '<ir_version: 8, opset_import: ["" : 17]> scaled (int64 n, float[k] x) => (float[k] y, float[k] z)'
            "{ c = Cast<to = 1>(n) y = Mul(x, c) z = Add(x, c) }"
        )
        model = onnx.parser.parse_model(text)
        for port, name in zip(model.graph.output, ("a/scale_0.tmp_1", "a_scale_0_tmp_1"), strict=True):
            model.graph.node[1 if port.name == "y" else 2].output[0] = port.name = name
        request = make_request(model, tmp_path, name="scaled")
        with imported(write_package(request, tmp_path / "package")) as module:
            opened = module.Model()
            x = np.ones(2, np.float32)
            for _ in range(2):
                for five in (np.int64(5), np.asarray(5), np.array([5])[0]):
                    outputs = opened.run(n=five, x=x)
                    assert opened.run_named({"n": five, "x": x})["a/scale_0.tmp_1"].tolist() == [5, 5]
                    assert outputs[0] is outputs["a/scale_0.tmp_1"]
                    assert outputs["a/scale_0.tmp_1"].tolist() == [5, 5]
                    assert outputs["a_scale_0_tmp_1"].tolist() == [6, 6]  # the model's own name comes first
                    assert outputs[-1] is outputs["a_scale_0_tmp_1_"] is outputs.a_scale_0_tmp_1_
                    assert (
                        [value.tolist() for value in outputs] == [[5, 5], [6, 6]] == [list(one) for one in outputs[:]]
                    )
            with pytest.raises(KeyError, match="no output is named 'y'; they are a_scale_0_tmp_1, "):
                outputs["y"]
            with pytest.raises(module.InputError, match="has type int32, the model requires int64"):
                opened.run(n=np.int32(5), x=x)
            with pytest.raises(module.InputError, match="is not a NumPy array"):
                opened.run(n=5, x=x)

    def test_self_test_passes(self, module: ModuleType) -> None:
        result = module.Model().self_test()
        assert result.passed
        assert result.synthetic
        assert result.samples >= 1

    def test_shapes_may_change_from_call_to_call(self, module: ModuleType) -> None:
        model = module.Model()
        assert [model.run(image=an_image(batch)).scores.shape[0] for batch in (1, 3, 1, 2)] == [1, 3, 1, 2]

    def test_several_threads_share_one_model(self, module: ModuleType) -> None:
        model = module.Model()
        wanted = {batch: model.run(image=an_image(batch)).scores for batch in (1, 2, 3)}
        wrong: list[int] = []

        def work(batch: int) -> None:
            answers = [model.run(image=an_image(batch)).scores for _ in range(50)]
            wrong.extend(batch for answer in answers if not np.allclose(answer, wanted[batch], atol=1e-6))

        threads = [threading.Thread(target=work, args=(batch,)) for batch in (1, 2, 3, 1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []

    def test_session_is_opened_as_runtime_json_says(self, module: ModuleType) -> None:
        options = module.Model()._runner._session.get_session_options()
        assert options.intra_op_num_threads == 1
        assert options.graph_optimization_level == onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"

    def test_telemetry_is_off(self, package: Package) -> None:
        show = f"import {package.name}, os; print(os.environ['ORT_DISABLE_TELEMETRY'])"
        plain = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
        for given, seen in (({}, "1"), ({"ORT_DISABLE_TELEMETRY": "0"}, "0")):
            done = subprocess.run(
                [sys.executable, "-c", show], cwd=package.root, env={**plain, **given}, capture_output=True, check=True
            )
            assert done.stdout.decode().strip() == seen


class TestInputs:
    @pytest.mark.parametrize(
        ("value", "words"),
        [
            (an_image().astype(np.float64), ["float64", "float32", "astype"]),
            (an_image()[0], ["3 dimensions, not 4"]),
            (an_image()[:, :, :8], ["axis 2 is 8, not 16"]),
            (an_image().tolist(), ["not a NumPy array", "list"]),
            (an_image().astype(">f4"), [">f4", "float32"]),
            (None, ["missing"]),
        ],
    )
    def test_a_wrong_value_is_reported(self, module: ModuleType, value: Any, words: list[str]) -> None:
        model = module.Model()
        model.run(image=an_image())
        with pytest.raises(module.InputError) as caught:
            model.run(image=value)
        for word in ("image", *words):
            assert word in str(caught.value)

    def test_a_misspelt_name_is_corrected(self, module: ModuleType) -> None:
        with pytest.raises(module.InputError, match="did you mean 'image'"):
            module.Model().run_named({"imgae": an_image()})

    def test_one_symbol_has_one_size(self, bundle_of: Callable[..., Package]) -> None:
        nodes = [models.helper.make_node("Add", ["a", "b"], ["c"])]
        ports = [models.value("a", ["n", 2]), models.value("b", ["n", 2])]
        model = models.make_model(nodes, ports, [models.value("c", ["n", 2])])
        with imported(bundle_of(model)) as found, pytest.raises(found.InputError, match=r"n is 1 here .* but 3 in 'a'"):
            found.Model().run(a=np.zeros((3, 2), np.float32), b=np.zeros((1, 2), np.float32))

    def test_an_optional_input_may_be_left_out(self, bundle_of: Callable[..., Package]) -> None:
        with imported(bundle_of(models.overridable())) as found:
            model = found.Model()
            given = {
                port.python_name: np.ones([2 if not isinstance(d, int) else d for d in port.shape], np.float32)
                for port in model.inputs
                if not port.optional
            }
            assert any(port.optional for port in model.inputs)
            assert len(model.run(**given)) == len(model.outputs)

    @pytest.mark.parametrize(
        "make",
        [
            models.strings,
            models.zipmap,
            models.sequence_output,
            models.if_model,
            models.loop_model,
            models.bfloat16_model,
            models.nan_output,
            models.infinite_output,
            models.optional_output,
            models.sequence_input,
            models.optional_input,
        ],
    )
    def test_every_kind_of_value_reproduces_its_golden_set(
        self, bundle_of: Callable[..., Package], make: Callable[[], Any]
    ) -> None:
        with imported(bundle_of(make())) as found:
            assert found.Model().self_test().passed

    @pytest.mark.parametrize("name", ['"""\nimport os', "${HOME}", "</script>*/", "class", "図", "x" * 3000, "self"])
    def test_hostile_names_run(self, bundle_of: Callable[..., Package], name: str) -> None:
        with imported(bundle_of(models.hostile(name), name=name)) as found:
            model = found.Model()
            assert name in [port.name for port in (*model.inputs, *model.outputs)]
            assert model.self_test().passed


class TestIntegrity:
    @pytest.mark.quick
    def test_an_altered_model_is_refused(self, package: Package, module: ModuleType) -> None:
        flip_byte(package.model)
        with pytest.raises(module.IntegrityError, match="does not match its checksum"):
            module.Model()

    def test_an_altered_model_is_refused_after_it_was_remembered(
        self, package: Package, module: ModuleType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(f"{package.name}._loader.integrity.SETTLED_NS", 0)
        module.Model()
        assert list((package.cache / "bundler-loader").iterdir())
        flip_byte(package.model)
        with pytest.raises(module.IntegrityError):
            module.Model()

    def test_a_missing_model_is_reported(self, package: Package, module: ModuleType) -> None:
        package.model.unlink()
        with pytest.raises(module.IntegrityError, match="cannot read"):
            module.Model()

    def test_an_altered_configuration_is_refused(self, package: Package, module: ModuleType) -> None:
        path = package.payload / "runtime.json"
        path.write_text(path.read_text("utf-8").replace('"report"', '"strict"'), "utf-8")
        with pytest.raises(module.IntegrityError, match=r"runtime\.json does not match"):
            module.Model()

    def test_an_altered_golden_set_is_refused(self, package: Package, module: ModuleType) -> None:
        flip_byte(package.payload / "golden" / "000" / "out-0.bin")
        with pytest.raises(module.IntegrityError, match="golden set"):
            module.Model().self_test()

    def count_hashes(self, package: Package, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        import importlib  # noqa: PLC0415

        integrity = importlib.import_module(f"{package.name}._loader.integrity")
        hashed: list[str] = []
        real = integrity.hash_file
        monkeypatch.setattr(integrity, "SETTLED_NS", 0)
        monkeypatch.setattr(integrity, "hash_file", lambda path: hashed.append(path) or real(path))
        return hashed

    def test_a_file_is_hashed_once(self, package: Package, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        hashed = self.count_hashes(package, monkeypatch)
        module.Model()
        module.Model()
        assert len(hashed) == 1
        module.Model(always_check=True)
        assert len(hashed) == 2
        monkeypatch.setenv("BUNDLER_ALWAYS_CHECK", "1")
        module.Model()
        assert len(hashed) == 3

    def test_a_file_that_just_changed_is_not_remembered(
        self, package: Package, module: ModuleType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hashed = self.count_hashes(package, monkeypatch)
        monkeypatch.setattr(f"{package.name}._loader.integrity.SETTLED_NS", 3600 * 10**9)
        module.Model()
        module.Model()
        assert len(hashed) == 2

    @pytest.mark.parametrize("content", ["", "[]", "{", '{"models/cpu/model.onnx": 7}', "\x00"])
    def test_a_damaged_memory_is_no_memory(
        self, package: Package, module: ModuleType, monkeypatch: pytest.MonkeyPatch, content: str
    ) -> None:
        hashed = self.count_hashes(package, monkeypatch)
        module.Model()
        memory = next((package.cache / "bundler-loader").iterdir())
        memory.write_text(content, "utf-8")
        module.Model()
        assert len(hashed) == 2

    @pytest.mark.parametrize("place", ["/proc/nowhere", "relative", "/dev/null"])
    def test_a_home_that_takes_no_files_is_no_obstacle(
        self, module: ModuleType, monkeypatch: pytest.MonkeyPatch, place: str
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", place)
        assert module.Model().run(image=an_image()).scores.shape == (2, 5)

    def test_a_large_file_is_checked_beside_the_opening(self, package: Package, module: ModuleType) -> None:
        """Its error counts more than the runtime's, and comes whichever ends first."""
        path = package.model
        path.write_bytes(b"\x00" * path.stat().st_size)
        with pytest.raises(module.IntegrityError):
            module.Model()


class TestVariants:
    def build(self, request: EmitRequest, folder: Path, **first: Any) -> Package:
        artifact = model_artifact(request)
        variants = make_variant("fast", artifact, **first), make_variant("cpu", artifact)
        return write_package(with_variants(request, *variants), folder)

    @pytest.mark.quick
    @pytest.mark.parametrize(
        ("first", "reason"),
        [
            ({"providers": (ProviderEntry(name="NoSuchProvider", options={}),)}, "has no NoSuchProvider"),
            ({"requires": Compatibility(systems=("Plan9",), machines=(), runtime="1.31.1")}, "for Plan9"),
            ({"requires": Compatibility(systems=(), machines=("z80",), runtime="1.31.1")}, "for z80"),
            ({"requires": Compatibility(systems=(), machines=(), runtime="0.1")}, "onnxruntime 0.1"),
            ({"session_config": {"session.layer_assignment_settings": "x("}}, "could not open it"),
        ],
    )
    def test_the_next_variant_runs_and_the_report_says_why(
        self, cnn_request: EmitRequest, tmp_path: Path, first: dict[str, Any], reason: str
    ) -> None:
        with imported(self.build(cnn_request, tmp_path, **first)) as found:
            with pytest.warns(found.FallbackWarning, match="fast"):
                model = found.Model()
            assert model.report.variant == "cpu"
            assert model.report.fell_back
            assert reason in dict(model.report.rejected)["fast"]
            with pytest.raises(found.FallbackError, match="strict") as caught:
                found.Model(strict=True)
            assert reason in str(caught.value)
            with pytest.raises(found.IncompatibleError):
                found.Model("fast")

    def test_strict_is_the_default_where_the_bundle_says_so(self, cnn_request: EmitRequest, tmp_path: Path) -> None:
        artifact = model_artifact(cnn_request)
        missing = make_variant("fast", artifact, providers=(ProviderEntry(name="NoSuchProvider", options={}),))
        request = with_variants(cnn_request, missing, make_variant("cpu", artifact), fallback="strict")
        with imported(write_package(request, tmp_path)) as found:
            with pytest.raises(found.FallbackError):
                found.Model()
            with pytest.warns(found.FallbackWarning):
                assert found.Model(strict=False).report.variant == "cpu"

    def test_a_provider_that_the_runtime_drops_is_no_success(
        self, module: ModuleType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = onnxruntime.InferenceSession.get_providers
        monkeypatch.setattr(onnxruntime.InferenceSession, "get_providers", lambda self: ["SomethingElse", *real(self)])
        with pytest.raises(module.IncompatibleError, match="uses SomethingElse"):
            module.Model()

    def test_the_preferred_variant_runs_without_a_warning(self, module: ModuleType) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            report = module.Model().report
        assert (report.variant, report.fell_back, report.rejected) == ("cpu", False, [])
        assert str(report).startswith("variant cpu runs on")

    def test_an_unknown_variant_is_reported(self, module: ModuleType) -> None:
        with pytest.raises(module.InputError, match="the variants are cpu"):
            module.Model("gpu")

    def test_outputs_are_bound_on_a_device_provider(self, cnn_request: EmitRequest, tmp_path: Path) -> None:
        """The CPU stands in for the device: the binding path is the same."""
        artifact = model_artifact(cnn_request)
        entry = ProviderEntry(name="CPUExecutionProvider", options={}, device="cpu")
        request = with_variants(cnn_request, make_variant("cpu", artifact, providers=(entry,)))
        with imported(write_package(request, tmp_path)) as found:
            model = found.Model()
            assert model._runner._device == "cpu"
            assert model.self_test().passed


class TestGoldenSet:
    def spoil(self, package: Package, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Another reference, with every digest made to fit: as if the model had been recorded so."""
        path = package.payload / "golden" / "000" / "out-0.bin"
        path.write_bytes(change(np.fromfile(path, "<f4")).astype("<f4").tobytes())
        self.refit(package)

    def refit(self, package: Package) -> None:
        from bundler.model.artifacts import record_folder  # noqa: PLC0415

        digest = record_folder(package.payload / "golden").digest
        package.rewrite(lambda component: component.update(golden_digest=digest))

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda values: values + 1, "elements are out of tolerance"),
            (lambda values: np.where(np.arange(values.size) == 0, np.nan, values), "NaN"),
            (lambda values: np.where(np.arange(values.size) == 0, np.inf, values), "infinity"),
        ],
    )
    def test_another_answer_fails(
        self, package: Package, change: Callable[[np.ndarray], np.ndarray], words: str
    ) -> None:
        self.spoil(package, change)
        with imported(package) as found, pytest.raises(found.SelfTestError, match=words):
            found.Model().self_test()

    @pytest.mark.parametrize(
        ("left", "error", "words"),
        [(0, "IntegrityError", "has no samples"), (8, "SelfTestError", "sample 'seeded-001' has no recorded value")],
    )
    def test_what_was_not_recorded_is_not_reproduced(self, package: Package, left: int, error: str, words: str) -> None:
        place = package.payload / "golden" / "index.json"
        index = json.loads(place.read_text("utf-8"))
        index["samples"][1]["outputs"].clear()
        del index["samples"][left:]
        place.write_text(json.dumps(index), "utf-8")
        self.refit(package)
        with imported(package) as found, pytest.raises(getattr(found, error), match=words):
            found.Model().self_test()

    def test_a_random_output_promises_its_shape_alone(self, bundle_of: Callable[..., Package]) -> None:
        package = bundle_of(models.random_model())
        config = json.loads((package.payload / "runtime.json").read_text("utf-8"))
        unstable = config["components"][0]["unstable_outputs"]
        assert unstable
        with imported(package) as found:
            assert found.Model().self_test().passed


def test_importing_costs_little_beside_the_runtime(package: Package) -> None:
    """Counted in modules, which do not vary from run to run as times do."""
    code = (
        f"import sys, onnxruntime; before = set(sys.modules); import {package.name};"
        f"print(*sorted(name for name in set(sys.modules) - before if not name.startswith('{package.name}')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=package.root, capture_output=True, text=True, check=True)
    heavy = {"argparse", "dataclasses", "pathlib", "concurrent.futures", "difflib", "asyncio", "tempfile", "logging"}
    assert heavy.isdisjoint(done.stdout.split())
