"""The device's own copy: only the first start chooses a memory layout, and nothing can go wrong because of it."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime
import pytest

from bundler.emitters.contract import EmitRequest
from tests.integration.python.packages import Package, imported, write_package
from tests.integration.python.test_loader import an_image, flip_byte
from tests.support.bundles import make_variant, model_artifact, with_variants

OPEN = "import sys, {name}; print({name}.Model().report)"


@pytest.fixture
def copied_request(cnn_request: EmitRequest) -> EmitRequest:
    session = {"graph_optimization_level": "ORT_ENABLE_ALL", "intra_op_num_threads": 1}
    variant = make_variant("cpu", model_artifact(cnn_request), session=session, device_cache=True)
    return with_variants(cnn_request, variant)


@pytest.fixture
def package(copied_request: EmitRequest, tmp_path: Path) -> Package:
    return write_package(copied_request, tmp_path)


@pytest.fixture(params=["inline", "external"])
def any_size(request: pytest.FixtureRequest, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The package as for a small model, and as for a large one."""
    if request.param == "external":
        monkeypatch.setattr(part(module, "device_copy"), "EXTERNAL", 0)
        monkeypatch.setattr(part(module, "sessions"), "_SMALLEST_APART", "1")
    return module


def part(module: ModuleType, name: str) -> ModuleType:
    return importlib.import_module(f"{module.__name__}._loader.{name}")


def kept(package: Package) -> list[str]:
    """Names of what lies in the user's cache about copies."""
    folder = package.cache / "bundler-loader"
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def copy_of(package: Package) -> Path:
    (name,) = kept(package)
    return package.cache / "bundler-loader" / name


def plain_answer(package: Package) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(package.model), options, providers=["CPUExecutionProvider"])
    answer: np.ndarray = session.run(None, {"image": an_image()})[0]
    return answer


def move_weights_apart(package: Package) -> None:
    """As if the bundle had been built with every weight in a second file."""
    import onnx  # noqa: PLC0415

    model = onnx.load(package.model)
    options: dict[str, Any] = {"location": "weights.data", "size_threshold": 0, "all_tensors_to_one_file": True}
    onnx.save(model, package.model, save_as_external_data=True, **options)
    folder = package.model.parent
    files = [
        {
            "path": file.relative_to(package.payload).as_posix(),
            "size": file.stat().st_size,
            "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        }
        for file in sorted(folder.iterdir())
    ]
    package.rewrite(lambda component: component["variants"][0].update(files=files))


class TestUse:
    def test_the_second_start_runs_the_copy_with_equal_answers(self, any_size: ModuleType, package: Package) -> None:
        first, second = any_size.Model(), any_size.Model()
        assert (first.report.device_copy, second.report.device_copy) == (False, True)
        assert "from the device's own copy" in str(second.report)
        for model in (first, second):
            assert np.array_equal(model.run(image=an_image()).scores, plain_answer(package))
            assert model.self_test().passed

    def test_the_copy_has_the_layout_and_is_opened_without_optimising(
        self, module: ModuleType, package: Package
    ) -> None:
        module.Model()
        options = module.Model()._runner._session.get_session_options()
        assert options.graph_optimization_level == onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        assert options.intra_op_num_threads == 1
        assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
        if platform.machine() == "x86_64":
            assert b"nchwc" in (copy_of(package) / "model.onnx").read_bytes()

    def test_nothing_is_printed(self, package: Package) -> None:
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", OPEN.format(name=package.name)],
                cwd=package.root,
                capture_output=True,
                text=True,
                check=True,
            )
            assert done.stderr == ""
        assert "own copy" in done.stdout

    def test_weights_of_a_large_model_lie_apart(
        self, module: ModuleType, package: Package, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(part(module, "device_copy"), "EXTERNAL", 0)
        monkeypatch.setattr(part(module, "sessions"), "_SMALLEST_APART", "1")
        module.Model()
        assert sorted(path.name for path in copy_of(package).iterdir()) == ["kept.json", "model.onnx", "weights.bin"]
        assert module.Model().report.device_copy

    @pytest.mark.parametrize("smallest", ["1", "16384"])
    def test_a_model_with_external_weights_has_a_copy_of_its_own(
        self, package: Package, monkeypatch: pytest.MonkeyPatch, smallest: str
    ) -> None:
        """No reference into the bundle stays in it, however small the model and its tensors are."""
        move_weights_apart(package)
        with imported(package) as found:
            monkeypatch.setattr(part(found, "sessions"), "_SMALLEST_APART", smallest)
            found.Model()
            opened = found.Model()
            assert opened.report.device_copy
            assert opened.self_test().passed
        assert b"weights.data" not in (copy_of(package) / "model.onnx").read_bytes()

    @pytest.mark.parametrize("how", ["argument", "environment"])
    def test_it_can_be_left_out(
        self, module: ModuleType, package: Package, monkeypatch: pytest.MonkeyPatch, how: str
    ) -> None:
        module.Model()
        wanted = {"device_copy": False} if how == "argument" else {}
        if how == "environment":
            monkeypatch.setenv("BUNDLER_DEVICE_COPY", "0")
        assert not module.Model(**wanted).report.device_copy
        shutil.rmtree(copy_of(package))
        module.Model(**wanted)
        assert kept(package) == []

    def test_other_variants_have_none(self, cnn_request: EmitRequest, tmp_path: Path) -> None:
        plain = write_package(cnn_request, tmp_path / "plain")
        with imported(plain) as found:
            found.Model()
            assert not found.Model().report.device_copy
        assert kept(plain) == []


def test_the_readme_tells_of_it(package: Package, cnn_request: EmitRequest, tmp_path: Path) -> None:
    assert "BUNDLER_DEVICE_COPY=0" in (package.root / "README.md").read_text("utf-8")
    without = write_package(cnn_request, tmp_path / "plain")
    assert "DEVICE_COPY" not in (without.root / "README.md").read_text("utf-8")


class TestIntegrity:
    def test_an_altered_bundle_is_refused_though_its_copy_is_good(self, module: ModuleType, package: Package) -> None:
        module.Model()
        assert module.Model().report.device_copy
        flip_byte(package.model)
        with pytest.raises(module.IntegrityError, match="does not match its checksum"):
            module.Model()

    def test_no_copy_is_kept_of_an_altered_bundle(self, module: ModuleType, package: Package) -> None:
        data = bytearray(package.model.read_bytes())
        data[-1] ^= 1
        package.model.write_bytes(bytes(data))
        with pytest.raises(module.IntegrityError):
            module.Model()
        assert kept(package) == []

    @pytest.mark.parametrize("remembered", [False, True])
    @pytest.mark.parametrize("name", ["model.onnx", "weights.bin"])
    def test_an_altered_copy_is_dropped_and_made_anew(
        self, module: ModuleType, package: Package, monkeypatch: pytest.MonkeyPatch, name: str, *, remembered: bool
    ) -> None:
        monkeypatch.setattr(part(module, "device_copy"), "EXTERNAL", 0)
        monkeypatch.setattr(part(module, "sessions"), "_SMALLEST_APART", "1")
        if remembered:
            monkeypatch.setattr(part(module, "integrity"), "SETTLED_NS", 0)
        module.Model()
        assert module.Model().report.device_copy
        flip_byte(copy_of(package) / name)
        opened = module.Model()
        assert not opened.report.device_copy
        assert "own copy was removed" in str(opened.report)
        assert "SHA-256" in opened.report.remark
        assert np.array_equal(opened.run(image=an_image()).scores, plain_answer(package))
        again = module.Model()
        assert (again.report.device_copy, again.report.remark) == (True, "")

    @pytest.mark.parametrize("spoil", ["truncated", "missing model", "no record", "bad record", "other record", "list"])
    def test_a_damaged_copy_is_no_obstacle(self, module: ModuleType, package: Package, spoil: str) -> None:
        module.Model()
        copy = copy_of(package)
        record = copy / "kept.json"
        if spoil == "truncated":
            (copy / "model.onnx").write_bytes((copy / "model.onnx").read_bytes()[:-9])
        elif spoil == "missing model":
            (copy / "model.onnx").unlink()
        elif spoil == "no record":
            record.unlink()
        elif spoil == "bad record":
            record.write_bytes(record.read_bytes()[:20])
        elif spoil == "other record":
            record.write_text(json.dumps({**json.loads(record.read_text("utf-8")), "key": "other"}), "utf-8")
        else:
            record.write_text("[]", "utf-8")
        opened = module.Model()
        assert not opened.report.device_copy
        assert opened.self_test().passed
        module.Model()
        assert module.Model().report.device_copy

    def test_a_record_that_names_other_files_is_not_followed(self, module: ModuleType, package: Package) -> None:
        module.Model()
        record = copy_of(package) / "kept.json"
        data = json.loads(record.read_text("utf-8"))
        data["files"][0]["path"] = "../../../secret"
        record.write_text(json.dumps(data), "utf-8")
        assert "names another file" in module.Model().report.remark

    def test_it_is_checked_in_full_once_and_always_on_request(
        self, module: ModuleType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        integrity = part(module, "integrity")
        hashed: list[str] = []
        real = integrity.hash_file
        monkeypatch.setattr(integrity, "SETTLED_NS", 0)
        monkeypatch.setattr(integrity, "hash_file", lambda *given: hashed.append(given[0]) or real(*given))
        for _ in range(4):
            module.Model()
        assert sum(path.endswith(".copy/model.onnx") for path in hashed) == 1
        module.Model(always_check=True)
        assert sum(path.endswith(".copy/model.onnx") for path in hashed) == 2

    def test_a_copy_that_the_runtime_refuses_is_not_tried_again(self, module: ModuleType, package: Package) -> None:
        module.Model()
        copy = copy_of(package)
        (copy / "model.onnx").write_bytes(b"\x00 no model")
        data = json.loads((copy / "kept.json").read_text("utf-8"))
        data["files"] = [part(module, "keeping")._describe_file(str(copy), "model.onnx")]
        (copy / "kept.json").write_text(json.dumps(data), "utf-8")
        for _ in range(3):
            opened = module.Model()
            assert not opened.report.device_copy
            assert "could not open it" in opened.report.remark
            assert opened.self_test().passed


class TestKey:
    @pytest.mark.parametrize("change", ["processor", "runtime", "epoch", "settings"])
    def test_another_key_is_another_copy_and_replaces_the_old_one(
        self, module: ModuleType, package: Package, monkeypatch: pytest.MonkeyPatch, change: str
    ) -> None:
        module.Model()
        old = kept(package)
        device_copy = part(module, "device_copy")
        if change == "processor":
            monkeypatch.setattr(device_copy, "identify_processor", lambda: "another")
        elif change == "epoch":
            monkeypatch.setattr(device_copy, "EPOCH", 2)
        elif change == "runtime":
            real = device_copy._make_key
            monkeypatch.setattr(device_copy, "_make_key", lambda variant, _: real(variant, "9.9.9"))
        else:
            real = device_copy._make_key
            monkeypatch.setattr(device_copy, "_make_key", lambda *given: change_settings(real, *given))
        assert not module.Model().report.device_copy
        assert module.Model().report.device_copy
        assert len(kept(package)) == 1
        assert kept(package) != old

    def test_another_model_in_the_same_place_is_another_copy(
        self, copied_request: EmitRequest, package: Package, tmp_path: Path
    ) -> None:
        with imported(package) as found:
            found.Model()
        old = kept(package)
        artifact = model_artifact(copied_request)
        session = {"graph_optimization_level": "ORT_ENABLE_ALL", "intra_op_num_threads": 2}
        other = with_variants(copied_request, make_variant("cpu", artifact, session=session, device_cache=True))
        shutil.rmtree(package.root)
        again = write_package(other, tmp_path)
        with imported(again) as found:
            assert not found.Model().report.device_copy
        assert kept(again) != old

    def test_copies_of_bundles_that_are_gone_are_removed(self, copied_request: EmitRequest, tmp_path: Path) -> None:
        gone, here = (write_package(copied_request, tmp_path / name) for name in ("gone", "here"))
        for package in (gone, here):
            with imported(package) as found:
                found.Model()
            if package is gone:
                shutil.rmtree(package.root)
        names = [path.name for path in (tmp_path / "user-cache" / "bundler-loader").iterdir() if path.is_dir()]
        assert len(names) == 1

    def test_the_processor_is_distinguished_from_the_beginning_of_the_file(self, module: ModuleType) -> None:
        choose = part(module, "device")._choose_facts
        text = b"processor\t: 0\nmodel name\t: X\ncpu MHz\t: %d\nflags\t\t: a b\n\nprocessor\t: 1\nflags\t: c\n"
        assert choose(text % 1) == choose(text % 2) == "model name\t: X\nflags\t\t: a b"
        assert choose(text.replace(b"a b", b"a")) != choose(text)
        identify = part(module, "device").identify_processor
        assert identify() == identify() != ""


def change_settings(real: Any, variant: Any, runtime: str) -> str:
    text: str = real(variant, runtime)
    return text.replace("intra_op_num_threads", "inter_op_num_threads")


class TestFaults:
    @pytest.mark.parametrize("place", ["/proc/nowhere", "relative", "/dev/null", "/sys/kernel"])
    def test_a_cache_that_takes_no_files_is_no_obstacle(
        self, module: ModuleType, monkeypatch: pytest.MonkeyPatch, place: str
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", place)
        for _ in range(2):
            opened = module.Model()
            assert not opened.report.device_copy
            assert opened.run(image=an_image()).scores.shape == (2, 5)

    def test_without_room_none_is_made(
        self, module: ModuleType, package: Package, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(part(module, "keeping"), "_measure_room", lambda _: 100)
        assert not module.Model().report.device_copy
        assert kept(package) == []

    @pytest.mark.parametrize("limit", [1, 1000, 5000])
    @pytest.mark.parametrize("external", [False, True])
    def test_a_disk_that_fills_up_on_the_way_is_no_obstacle(
        self, package: Package, limit: int, *, external: bool
    ) -> None:
        """A limit on the size of files stands in for the disk: writing fails in the same place."""
        code = (
            f"import resource, {package.name}\n"
            f"from {package.name}._loader import device_copy as d, sessions as s\n"
            f"if {external}: d.EXTERNAL, s._SMALLEST_APART = 0, '1'\n"
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
            f"for _ in range(3): model = {package.name}.Model(); assert model.self_test().passed\n"
        )
        done = subprocess.run(  # -B, or half of a module's byte code is left
            [sys.executable, "-B", "-c", code], cwd=package.root, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert [name for name in kept(package) if name.endswith(".draft")] == []
        with imported(package) as found:
            for _ in range(3):
                assert found.Model().self_test().passed

    def test_two_processes_at_once(self, package: Package) -> None:
        command = [sys.executable, "-c", OPEN.format(name=package.name)]
        started = [
            subprocess.Popen(command, cwd=package.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        for process in started:
            _, errors = process.communicate(timeout=60)
            assert (process.returncode, errors) == (0, "")
        assert copy_of(package).name.endswith(".copy")
        with imported(package) as found:
            assert found.Model().report.device_copy

    @pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
    @pytest.mark.parametrize("moment", ["os.rename", "os.replace", "json.dump"])
    def test_killed_while_publishing(self, package: Package, moment: str) -> None:
        """The process kills itself at the moment of a call; a later start finds no copy or a whole one."""
        code = (
            f"import os, json, signal, {package.name}\n"
            f"{moment} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n{package.name}.Model()\n"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=package.root, capture_output=True, check=False)
        assert done.returncode == -signal.SIGKILL
        with imported(package) as found:
            found.Model()
            opened = found.Model()
            assert opened.report.device_copy
            assert opened.self_test().passed
            (draft,) = [name for name in kept(package) if name.endswith(".draft")]
            old = time.time() - 2 * part(found, "keeping").ABANDONED
            os.utime(package.cache / "bundler-loader" / draft, (old, old))
            shutil.rmtree(next((package.cache / "bundler-loader").glob("*.copy")))
            found.Model()
        assert [name for name in kept(package) if name.endswith(".draft")] == []


class TestSelfTest:
    def test_both_ways_are_tried(self, package: Package) -> None:
        (outcome,) = package.ask("self-test", "--json", "--variant", "each")["variants"]
        assert outcome["status"] == outcome["device_copy"]["status"] == "passed"
        assert outcome["outputs"][0].keys() == outcome["device_copy"]["outputs"][0].keys()
        assert outcome["figures"].keys() >= {"opening_seconds", "device_copy_opening_seconds"}
        assert list(outcome["nodes"]) == ["CPUExecutionProvider"]
        assert outcome["nodes"]["CPUExecutionProvider"] > 0
        assert "from the device's own copy: passed" in package.call("self-test").stdout

    def test_a_copy_that_answers_otherwise_fails_and_the_worse_counts(
        self, package: Package, module: ModuleType
    ) -> None:
        """Another network in place of the copy, with a record that fits: as a defect of the runtime would make it."""
        import onnx  # noqa: PLC0415

        module.Model()
        copy = copy_of(package)
        model = onnx.load(package.model)
        for tensor in model.graph.initializer:
            if tensor.data_type == onnx.TensorProto.FLOAT:
                tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) * 3, tensor.name))
        onnx.save(model, copy / "model.onnx")
        data = json.loads((copy / "kept.json").read_text("utf-8"))
        data["files"] = [part(module, "keeping")._describe_file(str(copy), "model.onnx")]
        (copy / "kept.json").write_text(json.dumps(data), "utf-8")
        done = package.call("self-test", "--json")
        assert done.returncode == 1
        (outcome,) = json.loads(done.stdout)["variants"]
        assert outcome["status"] == "failed"
        assert outcome["reason"].startswith("from the device's own copy: output 'scores'")
        assert outcome["outputs"][0]["max_absolute"] == outcome["device_copy"]["outputs"][0]["max_absolute"] > 0.01

    def test_where_none_can_be_kept_the_shipped_way_counts(self, package: Package) -> None:
        (outcome,) = package.ask("self-test", "--json", XDG_CACHE_HOME="/proc/nowhere")["variants"]
        assert outcome["status"] == "passed"
        assert outcome["device_copy"]["status"] == "unavailable"
        assert "could not be kept" in outcome["device_copy"]["reason"]
        (outcome,) = package.ask("self-test", "--json", BUNDLER_DEVICE_COPY="0")["variants"]
        assert "device_copy" not in outcome


def test_the_worse_of_two_figures(module: ModuleType) -> None:
    take_worse = part(module, "metrics").take_worse
    base = dict.fromkeys(("equal", "max_absolute", "mean_absolute", "max_relative", "cosine", "sqnr_db"), None)
    first = {**base, "name": "y", "equal": True, "max_absolute": 0.0, "top1_agreement": 1.0, "mismatch": None}
    second = {
        **base,
        "name": "y",
        "equal": False,
        "max_absolute": 0.5,
        "sqnr_db": 60.0,
        "mismatch": "NaN",
        "cosine": 0.9,
    }
    worse = take_worse(first, {**second, "top1_agreement": 0.75})
    assert (worse["equal"], worse["max_absolute"], worse["sqnr_db"], worse["cosine"]) == (False, 0.5, 60.0, 0.9)
    assert (worse["top1_agreement"], worse["mismatch"], worse["max_relative"]) == (0.75, "NaN", None)
