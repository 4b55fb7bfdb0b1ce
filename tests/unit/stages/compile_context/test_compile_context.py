"""What becomes of a compiler that fails, lies or dies. Those here are made up; real ones have tests of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
from onnx import ModelProto, helper

from bundler.environments.registry import host_environment
from bundler.execution.pool import WorkerPool
from bundler.execution.stage_sources import package_folder
from bundler.model.errors import StageError
from bundler.model.stage import StageResult
from bundler.onnxkit import plugins
from bundler.stages.compile_context import apart, compiling, run
from tests.support import models
from tests.support.stage_calls import call_stage

PROVIDER = "FakeExecutionProvider"
OPTIONS: dict[str, Any] = {"provider": PROVIDER, "library": "fake_plugin", "options": {"soc_model": "57"}}

Write = Callable[[Path, Path], None]


def compiled(context: str = "model_fake.bin", **changes: Any) -> ModelProto:
    """What a compiler would write for `models.mlp(batch=1)`."""
    source = models.mlp(batch=1)
    attributes = {
        "ep_cache_context": context,
        "embed_mode": 0,
        "main_context": 1,
        "source": changes.get("source", PROVIDER),
        "ep_sdk_version": "v9",
    }
    names = [value.name for value in source.graph.input], [value.name for value in source.graph.output]
    node = helper.make_node("EPContext", *names, domain="com.microsoft", name="p", **attributes)
    graph = helper.make_graph([node], "g", changes.get("inputs", source.graph.input), source.graph.output)
    imports = [helper.make_opsetid(name, 1) for name in ("z.unused", "com.microsoft")] + [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=13)
    helper.set_model_props(model, {f"ep_compatibility_info.{PROVIDER}": changes.get("statement", "v2:57")})
    return model


def write(model: ModelProto, name: str | None = "model_fake.bin", data: bytes = b"code") -> Write:
    def act(_source: Path, target: Path) -> None:
        target.write_bytes(model.SerializeToString())
        if name is not None:
            (target.parent / name).write_bytes(data)

    return act


@pytest.fixture
def compile_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., StageResult]:
    """Run the stage with a scripted compiler."""

    def call(act: Write, source: ModelProto | None = None, **options: Any) -> StageResult:
        class Compiler:
            def __init__(self, _options: object, source: str, **_others: object) -> None:
                self.source = Path(source)

            def compile_to_file(self, target: str) -> None:
                act(self.source, Path(target))

        monkeypatch.setattr(plugins, "_registered", {})
        monkeypatch.setattr(compiling, "session_options", lambda _settings: None)
        monkeypatch.setattr(onnxruntime, "ModelCompiler", Compiler)
        model = models.save(source or models.mlp(batch=1), tmp_path / "in")
        return call_stage("compile_context", tmp_path / "out", {"model": model}, **{**OPTIONS, **options})

    return call


def test_a_compiled_model_gets_fixed_names_and_one_form(
    tmp_path: Path, compile_with: Callable[..., StageResult]
) -> None:
    result = compile_with(write(compiled()))
    total = result.facts["assigned"]
    assert result.facts == {
        "provider": PROVIDER,
        "assigned": total,
        "left": 0,
        "share": 1.0,
        "left_nodes": [],
        "contexts": 1,
        "devices": ["57"],
        "sdk": "v9",
        "statement": "v2:57",
        "bytes": sum(path.stat().st_size for path in (tmp_path / "out").iterdir()),
    }
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["context.bin", "model.onnx"]
    model = onnx.load(tmp_path / "out" / "model.onnx")
    assert [item.domain for item in model.opset_import] == ["", "com.microsoft"]
    assert model.ir_version == models.IR
    names = [item.name for item in model.graph.node[0].attribute]
    assert names == sorted(names)
    assert next(item.s for item in model.graph.node[0].attribute if item.name == "ep_cache_context") == b"context.bin"


def test_what_a_compiler_writes_beside_the_model_stays_out_of_its_artifact(
    tmp_path: Path, compile_with: Callable[..., StageResult]
) -> None:
    """QNN's writes a temporary file there; a build that recalls the artifact meanwhile would find it altered."""
    seen: list[list[str]] = []

    def act(source: Path, target: Path) -> None:
        source.with_name(".temporary").write_bytes(b"left behind")
        seen.append(sorted(path.name for path in (tmp_path / "in").iterdir()))
        write(compiled())(source, target)

    compile_with(act)
    assert seen == [["model.onnx"]]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["context.bin", "model.onnx"]


def test_several_contexts_are_numbered(tmp_path: Path, compile_with: Callable[..., StageResult]) -> None:
    model = compiled("b.bin")
    second = model.graph.node.add()
    second.CopyFrom(compiled("a.bin").graph.node[0])
    second.output[0] = "unused"

    def act(source: Path, target: Path) -> None:
        write(model, "a.bin", b"A")(source, target)
        (target.parent / "b.bin").write_bytes(b"B")

    assert compile_with(act).facts["contexts"] == 2
    assert (tmp_path / "out" / "context.bin").read_bytes() == b"B"
    assert (tmp_path / "out" / "context_1.bin").read_bytes() == b"A"


def nothing(_source: Path, _target: Path) -> None:
    """A compiler that says that it is done."""


def empty(_source: Path, target: Path) -> None:
    target.write_bytes(b"")


def rubbish(_source: Path, target: Path) -> None:
    target.write_bytes(b"\x08\x99rubbish")


def refuse(_source: Path, _target: Path) -> None:
    raise RuntimeError("no such thing")


def take_nothing(_source: Path, _target: Path) -> None:
    raise RuntimeError("Unable to compile any nodes. Check that …")


def other_input() -> list[onnx.ValueInfoProto]:
    found = models.mlp(batch=2).graph.input[0]
    return [found]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (nothing, "reported success but wrote no model"),
        (empty, "reported success but wrote no model"),
        (rubbish, "wrote a model that cannot be read"),
        (refuse, f"{PROVIDER} cannot compile the model"),
        (take_nothing, f"no node can be assigned to {PROVIDER}"),
        (write(models.mlp(batch=1)), f"the model has no part compiled for {PROVIDER}"),
        (write(compiled(source="Other")), f"the model has no part compiled for {PROVIDER}"),
        (write(compiled(), None), "requires the file 'model_fake.bin', which is missing or empty"),
        (write(compiled(), data=b""), "requires the file 'model_fake.bin', which is missing or empty"),
        (write(compiled("../in/model.onnx")), "names a file outside its folder"),
        (write(compiled("/etc/passwd")), "names a file outside its folder"),
        (write(compiled(statement="v2:0")), "compiled for another device than requested"),
        (write(compiled(statement="")), "compiled for another device than requested"),
        (write(compiled(inputs=other_input())), "changed their shapes"),
        (write(compiled(inputs=[models.value("other", [1, 8])])), "inputs or outputs changed"),
    ],
)
def test_a_compiler_that_fails_or_writes_a_wrong_result(
    act: Write, message: str, compile_with: Callable[..., StageResult]
) -> None:
    with pytest.raises(StageError, match=message):
        compile_with(act)


ARCHITECTURE = {"soc_model": "57", "htp_arch": "79"}


def embed(code: bytes) -> ModelProto:
    """As `compiled`, with the context inside, and an architecture that is not stated."""
    model = compiled(statement="v2:0:57")
    attributes = {item.name: item for item in model.graph.node[0].attribute}
    attributes["ep_cache_context"].s, attributes["embed_mode"].i = code, 1
    return model


RIGHT, WRONG = b"soc_type=X;arch=79;num=1", b"soc_type=X;arch=73;num=1"


@pytest.mark.parametrize("act", [write(compiled(statement="v2:0:57"), data=RIGHT), write(embed(RIGHT), None)])
def test_an_architecture_that_is_not_stated_may_be_in_the_compiled_files(
    act: Write, compile_with: Callable[..., StageResult]
) -> None:
    """One compiler states 0 for an architecture whose name it lacks, and compiles for it all the same."""
    assert compile_with(act, options=ARCHITECTURE).facts["statement"] == "v2:0:57"


@pytest.mark.parametrize("act", [write(compiled(statement="v2:0:57"), data=WRONG), write(embed(WRONG), None)])
def test_an_architecture_that_is_nowhere_is_another_device(
    act: Write, compile_with: Callable[..., StageResult]
) -> None:
    with pytest.raises(StageError, match="compiled for another device than requested") as caught:
        compile_with(act, options=ARCHITECTURE)
    assert caught.value.details[0] == "htp_arch=79 was requested"


def test_a_number_that_is_not_stated_is_never_assumed(compile_with: Callable[..., StageResult]) -> None:
    with pytest.raises(StageError, match="compiled for another device than requested"):
        compile_with(write(compiled(statement="v2:0:0"), data=b";arch=79;57"), options=ARCHITECTURE)


def test_dynamic_dimensions_are_named(compile_with: Callable[..., StageResult]) -> None:
    with pytest.raises(StageError, match="the model has dynamic dimensions") as caught:
        compile_with(take_nothing, models.mlp())
    assert caught.value.hint == "fix them, for example --dim batch=1 (replace the numbers by the sizes that you need)"


def test_a_condition_that_keeps_all_nodes_off_names_its_input(compile_with: Callable[..., StageResult]) -> None:
    with pytest.raises(StageError, match=f"no node can be assigned to {PROVIDER}") as caught:
        compile_with(take_nothing, models.branch_weights())
    reason = "its branch depends on the input 'positive'; export the model without this choice"
    assert caught.value.details[1] == f"If 'chosen': {reason}"


def test_a_model_of_classic_machine_learning_is_sent_to_the_cpu(compile_with: Callable[..., StageResult]) -> None:
    model = models.zipmap()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    with pytest.raises(StageError, match=f"no node can be assigned to {PROVIDER}") as caught:
        compile_with(take_nothing, model)
    assert "choose a target of the CPU" in str(caught.value.hint)


def test_a_model_that_was_compiled_before(compile_with: Callable[..., StageResult]) -> None:
    with pytest.raises(StageError, match="the model is already compiled for a device"):
        compile_with(nothing, compiled())


PLUGINS = {
    "dies": ("import os\nos.abort()", "crashed in native code"),
    "leaves": ("import os\nos._exit(3)", "exited with code 3"),
    "hangs": ("import time\ntime.sleep(600)", "did not finish within 4 s"),
    "prints": (
        "import os\nos.write(1, b'{\"id\": 1}\\nchatter\\n')\nraise ImportError('done')",
        "is not in this environment",
    ),
}


@pytest.mark.parametrize("kind", sorted(PLUGINS))
def test_a_library_that_takes_its_process_along_ends_as_an_error(kind: str, tmp_path: Path) -> None:
    body, message = PLUGINS[kind]
    folder = tmp_path / "fake_plugin"
    folder.mkdir()
    (folder / "__init__.py").write_text(body)
    model, output = models.save(models.mlp(batch=1), tmp_path / "in"), tmp_path / "out"
    output.mkdir()
    packages = {"bundler": str(package_folder("bundler")), "fake_plugin": str(folder)}
    request = {
        "stage": "compile_context",
        "module": run.__name__,
        "packages": packages,
        "inputs": {"model": str(model)},
    }
    request |= {"options": OPTIONS, "output": str(output), "folder": str(tmp_path)}
    pool = WorkerPool(tmp_path / "logs")
    try:
        with pool.lease(host_environment(())) as worker:
            worker.wait(worker.post({"warm": ["bundler.stages.compile_context.run"]}), "warm", 60, _ignore)
            try:
                answer = worker.wait(worker.post(request), "compile_context", 4, _ignore)
                text = answer["error"]["message"]
            except StageError as error:
                text = error.message
    finally:
        pool.close()
    assert message in text


def _ignore(_share: float, _text: str) -> None:
    """Progress of no interest."""


@pytest.mark.skipif(sys.platform == "win32", reason="the interpreter that dies is a shell script")
@pytest.mark.parametrize(
    ("body", "message"), [("kill -SEGV $$", "crashed in native code (SIGSEGV)"), ("exit 3", "code 3")]
)
def test_a_compiler_that_crashes_in_a_separate_process(
    body: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = tmp_path / "python"
    shell.write_text(f"#!/bin/sh\ncat > /dev/null\n{body}\n")
    shell.chmod(0o755)
    monkeypatch.setattr(plugins, "_registered", {PROVIDER: "fake_plugin"})
    monkeypatch.setattr(apart.sys, "executable", str(shell))
    model = models.save(models.mlp(batch=1), tmp_path / "in")
    with pytest.raises(StageError, match=f"the compiler of {PROVIDER}") as caught:
        call_stage("compile_context", tmp_path / "out", {"model": model}, **OPTIONS)
    assert message in caught.value.message


def test_an_error_in_a_separate_process_is_the_same_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_registered", {PROVIDER: "fake_plugin"})
    model = models.save(models.mlp(batch=1), tmp_path / "in")
    with pytest.raises(StageError, match="is not in this environment: no module fake_plugin"):
        call_stage("compile_context", tmp_path / "out", {"model": model}, **OPTIONS)
    assert not list((tmp_path / "out").iterdir())


def test_nothing_is_compiled_where_it_would_not_be_reproducible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_registered", {PROVIDER: "fake_plugin"})
    job = compiling.Job(provider=PROVIDER, library="fake_plugin", options={}, select={}, embed=False, folder=".")
    with pytest.raises(StageError, match="would not be reproducible"):
        compiling.compile_models(job)
