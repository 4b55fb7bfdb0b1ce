"""When a model ends, who may still use it, and the other ways to call it: from an event loop, and in batches."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from bundler.emitters.contract import EmitRequest
from bundler.model.requirements import Need
from bundler.model.runtime import Compatibility, Preparation, ProviderEntry
from tests.integration.python.packages import Package, imported, write_package
from tests.integration.python.test_loader import an_image
from tests.support.bundles import make_variant, model_artifact, with_variants


def run_program(package: Package, program: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, which must end by itself."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=package.root,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def run_loop(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """What `work` comes to in an event loop of its own: this thread may have one, of a browser that tests drive."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


class TestClosing:
    def test_a_closed_model_says_so(self, module: ModuleType) -> None:
        with module.Model() as model:
            model.run(image=an_image())
        calls: list[Callable[[], object]] = [
            lambda: model.run(image=an_image()),
            lambda: model.run_named({"image": an_image()}),
            lambda: run_loop(lambda: model.run_async(image=an_image())),
            model.self_test,
        ]
        for call in calls:
            with pytest.raises(module.ClosedError, match="this model is closed"):
                call()
        model.close()  # once more does no harm
        assert repr(model) == f"<{module.__name__}.Model: closed>"
        assert model.report.variant == "cpu"

    def test_closing_frees_the_session(self, module: ModuleType) -> None:
        model = module.Model()
        session = model._runner._session
        model.close()
        gc.collect()
        assert sys.getrefcount(session) == 2  # this name, and the argument

    def test_a_call_in_another_thread_ends_in_order(self, module: ModuleType) -> None:
        model, faults, started = module.Model(), list[BaseException](), threading.Barrier(5)

        def work() -> None:
            started.wait()
            try:
                while True:
                    assert model.run(image=an_image()).scores.shape[0] == 2
            except BaseException as error:  # noqa: BLE001 - to look at
                faults.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        started.wait()
        model.close()
        for thread in threads:
            thread.join(30)
        assert [type(fault) for fault in faults] == [module.ClosedError] * 4

    def test_repr_says_what_runs(self, module: ModuleType) -> None:
        assert repr(module.Model()) == f"<{module.__name__}.Model: cpu on CPUExecutionProvider>"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
class TestForking:
    PROGRAM = """
        import os, sys
        import numpy as np
        from {name} import ClosedError, Model

        image = np.zeros((2, 3, 16, 16), np.float32)
        class Own(Model):
            def __eq__(self, other):
                return True

        model = Own(threads=2)
        model.run(image=image)
        child = os.fork()
        if not child:
            try:
                model.run(image=image)
            except ClosedError as error:
                print(error, flush=True)
            print(Model(threads=2).run(image=image).scores.shape, flush=True)
            sys.exit(7)  # destroys what it has, as workers do
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(code, model.run(image=image).scores.shape)
    """

    def test_a_child_is_told_to_open_its_own_and_ends(self, package: Package) -> None:
        done = run_program(package, self.PROGRAM.format(name=package.name))
        lines = done.stdout.splitlines()
        assert lines[0] == "this model was opened before the process was forked", done.stderr
        assert "post_fork" in lines[2]
        assert lines[3].startswith("(2, ")  # its own model
        assert lines[4].startswith("7 (2, ")  # and the parent's goes on


class TestEventLoop:
    def test_calls_run_while_the_loop_goes_on(self, module: ModuleType) -> None:
        async def use() -> list[np.ndarray]:
            with module.Model() as model:
                outputs = await asyncio.gather(*(model.run_async(image=an_image(batch)) for batch in (1, 2, 3)))
                return [output.scores for output in outputs]

        with module.Model() as plain:
            for batch, scores in zip((1, 2, 3), run_loop(use), strict=True):
                np.testing.assert_allclose(scores, plain.run(image=an_image(batch)).scores, atol=1e-6)

    def test_a_wrong_input_is_refused_there_too(self, module: ModuleType) -> None:
        with module.Model() as model, pytest.raises(module.InputError, match="has type float64"):
            run_loop(lambda: model.run_async(image=an_image().astype(np.float64)))


class TestLogging:
    def test_the_logger_of_the_package_says_what_was_opened(
        self, module: ModuleType, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO, logger=module.__name__):
            model = module.Model()
        assert [(record.name, record.getMessage()) for record in caplog.records] == [
            (module.__name__, str(model.report))
        ]

    def test_opening_loads_no_logging(self, package: Package) -> None:
        program = f"""
            import sys
            from {package.name} import Model

            Model()
            print("logging" in sys.modules, "asyncio" in sys.modules)
        """
        assert run_program(package, program).stdout == "False False\n"


def sums(size: int | str, rows: int | str | None = None) -> onnx.ModelProto:
    """A network that adds up each row; its output says that it has `rows`."""
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [size, 3]), ("y", [size, 3]), ("sum", [size if rows is None else rows]))
    ]
    nodes = [
        helper.make_node("Add", ["x", "y"], ["both"]),
        helper.make_node("ReduceSum", ["both", "axes"], ["sum"], keepdims=0),
    ]
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    graph = helper.make_graph(nodes, "sums", infos[:2], infos[2:], [axes])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class TestBatches:
    @pytest.mark.parametrize("count", [1, 3, 4, 5, 9])
    def test_any_number_of_rows_of_a_fixed_batch(self, bundle_of: Callable[..., Package], count: int) -> None:
        x, y = np.random.default_rng(count).standard_normal((2, count, 3)).astype(np.float32)
        with imported(bundle_of(sums(4))) as module, module.Model() as model:
            outputs = model.run_many(x=x, y=y)
            assert type(outputs) is module.Outputs
            np.testing.assert_allclose(outputs.sum, (x + y).sum(axis=1), rtol=1e-5)

    def test_wrong_rows_are_refused(self, bundle_of: Callable[..., Package]) -> None:
        rows = np.zeros((6, 3), np.float32)
        with imported(bundle_of(sums(4))) as module, module.Model() as model:
            for x, y, words in (
                (rows, rows[:5], "x has 6, y has 5"),
                (rows[:0], rows[:0], "the inputs have no rows"),
                (rows, [[1.0, 2.0, 3.0]], "'y' is not an array of rows"),
                (rows, np.float32(3), "'y' is not an array of rows"),
                (rows[:, :2], rows, "axis 1 is 2, not 3"),
                (rows.astype(np.float64), rows, "has type float64"),
            ):
                with pytest.raises(module.InputError, match=words):
                    model.run_many(x=x, y=y)

    @pytest.mark.parametrize("model", [sums("batch"), sums(4, 1)], ids=["open", "another number of rows"])
    def test_a_model_without_a_fixed_batch_has_no_such_call(
        self, bundle_of: Callable[..., Package], model: onnx.ModelProto
    ) -> None:
        package = bundle_of(model)
        assert not (package.root / package.name / "_loader" / "batches.py").exists()
        with imported(package) as module:
            assert not hasattr(module.Model, "run_many")


COPIES = {"device", "device_copy", "keeping"}
PREPARED = {*COPIES, "drivers", "locking", "plugins", "prepared", "prewarming"}
OPTIONAL = {*PREPARED, "batches", "needs"}
GPU = ProviderEntry(name="CUDAExecutionProvider", options={}, library="onnxruntime_ep_cuda", device="gpu")
DRIVER = Need(what="driver", libraries=("libdriver.so.1",))


class TestModules:
    """A bundle carries the modules that it may use."""

    @pytest.mark.parametrize(
        ("changes", "modules"),
        [
            ({}, set()),
            ({"device_cache": True}, COPIES),
            ({"providers": (GPU,)}, {"plugins"}),
            ({"prepare": Preparation(kind="cache", thing="engine", options={})}, PREPARED),
            ({"requires": Compatibility(systems=(), machines=(), runtime="1", needs=(DRIVER,))}, {"needs"}),
        ],
        ids=["processor", "own copy", "plugin", "prepared", "needs"],
    )
    def test_by_variant(
        self, cnn_request: EmitRequest, tmp_path: Path, changes: Mapping[str, Any], modules: set[str]
    ) -> None:
        variant = make_variant("cpu", model_artifact(cnn_request), **changes)
        package = write_package(with_variants(cnn_request, variant), tmp_path)
        found = {path.stem for path in (package.root / package.name / "_loader").glob("*.py")}
        assert found & OPTIONAL == modules

    def test_every_command_runs_without_the_others(self, package: Package) -> None:
        for command in (["info"], ["self-test"], ["prewarm"], ["bench"]):
            done = package.call(*command)
            assert done.returncode == 0, (command, done.stderr)

    def test_nothing_to_prewarm_is_no_error(self, module: ModuleType) -> None:
        assert module.Model.prewarm() == []
        assert module.Model(prewarm="wait").report.variant == "cpu"
