"""Runs: what the caller gives wrongly, what is too big, what is over, what the runtime cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import helper
from playwright.sync_api import Browser

from tests.support import models
from tests.support.command_line import CommandLine
from tests.support.web_host import Host, host
from tests.support.web_pages import Visitor, visitor

from .conftest import build

BAD_INPUTS = {
    "missing": ("{}", ["'x'", '"x"']),
    "unknown": ("{ x: new Float32Array(8), z: new Float32Array(8) }", ['"z"']),
    "nothing": ("null", ["by name"]),
    "array": ("new Float32Array(8)", ["by name"]),
    "wrong type": ("{ x: new Int32Array(8) }", ["Int32Array", "Float32Array"]),
    "plain numbers": ("{ x: [1, 2, 3, 4, 5, 6, 7, 8] }", ["Float32Array"]),
    "wrong count": ("{ x: new Float32Array(7) }", ["7"]),
    "wrong rank": ("{ x: { data: new Float32Array(8), dims: [8] } }", ["1 dimensions"]),
    "wrong size": ("{ x: { data: new Float32Array(14), dims: [2, 7] } }", ["7", "8"]),
    "count and dims differ": ("{ x: { data: new Float32Array(9), dims: [1, 8] } }", ["9"]),
    "negative": ("{ x: { data: new Float32Array(8), dims: [-1, 8] } }", ["dims"]),
    "no data": ("{ x: { dims: [1, 8] } }", ["nothing", "Float32Array"]),
    "inherited": ("Object.create({ x: new Float32Array(8) })", ['"x"']),
}


@pytest.fixture(scope="module")
def opened(browser: Browser, wasm_bundle: Path) -> Iterator[Visitor]:
    """A page with one model open for all these tests: no bad call may spoil it for the next."""
    with host(wasm_bundle) as site, visitor(browser) as found:
        found.visit(site).value("globalThis.model = await load();")
        yield found


@pytest.mark.parametrize(("inputs", "words"), BAD_INPUTS.values(), ids=BAD_INPUTS)
def test_bad_inputs_are_named_before_the_runtime_sees_them(opened: Visitor, inputs: str, words: list[str]) -> None:
    error = opened.error(f"return model.run({inputs});")
    assert error["name"] == "InputError"
    text = " ".join((error["message"], error["why"], error["hint"]))
    assert any(word in text for word in words), error
    assert opened.value("return Object.keys(await model.run({ x: new Float32Array(8) }));") == ["y"]


def test_outputs_are_named_typed_and_shaped(opened: Visitor) -> None:
    found = opened.value("""
      const { y } = await model.run({ x: { data: new Float32Array(16), dims: [2, 8] } });
      const again = await model.run({ x: new Float32Array(16) });
      const data = await y.getData();
      const same = String(data) === String(await again.y.getData());
      const finite = data.every(Number.isFinite);
      return { type: y.type, dims: [...y.dims], location: y.location, same, finite, kind: data.constructor.name };
    """)
    assert found == {
        "type": "float32", "dims": [2, 4], "location": "cpu", "same": True, "finite": True, "kind": "Float32Array"
    }  # fmt: skip


@pytest.mark.parametrize("rows", [17_800, 40_000], ids=["below-4-GiB", "above-4-GiB"])
def test_input_too_big_for_the_memory_is_refused_and_the_next_run_works(opened: Visitor, rows: int) -> None:
    # Each row of the hidden layer takes 240 kB.
    error = opened.error("return model.run({ x: new Float32Array(8 * given) });", rows)
    assert error["name"] == "OutOfMemoryError", error
    assert "memory" in error["message"]
    after = opened.attempt("return Object.keys(await model.run({ x: new Float32Array(8) }));")
    if "error" in after:  # The heap may be gone for good; a new load must give a new one.
        assert after["error"]["name"] == "OutOfMemoryError", after
        opened.value("globalThis.model = await load();")
        assert opened.value("return (await model.selfTest()).passed;") is True


def test_runs_at_once_give_each_its_own_outputs(opened: Visitor) -> None:
    found = opened.value("""
      const inputs = [0, 1, 2, 3].map((value) => new Float32Array(8).fill(value));
      const together = await Promise.all(inputs.map((x) => model.run({ x })));
      const alone = [];
      for (const x of inputs) alone.push(await model.run({ x }));
      return together.map(({ y }, at) => String(y.data) === String(alone[at].y.data));
    """)
    assert found == [True] * 4


def test_aborted_run_says_so_and_the_next_one_works(opened: Visitor) -> None:
    found = opened.attempt("return model.run({ x: new Float32Array(8) }, { signal: AbortSignal.abort() });")
    assert found["error"]["name"] == "AbortError"
    assert opened.value("return Object.keys(await model.run({ x: new Float32Array(8) }));") == ["y"]


def test_disposed_model_says_so(guest: Visitor, wasm_host: Host) -> None:
    error = guest.visit(wasm_host).error("""
      const model = await load();
      await Promise.all([model.dispose(), model.dispose()]);
      await model.dispose();
      return model.run({ x: new Float32Array(8) });
    """)
    assert error["name"] == "DisposedError"


def test_unknown_variant_is_named_with_those_there_are(guest: Visitor, wasm_host: Host) -> None:
    error = guest.visit(wasm_host).error("return load({ variant: 'npu' });")
    assert error["name"] == "InputError"
    assert '"npu"' in error["message"]
    assert "wasm" in error["hint"]


def greedy() -> onnx.ModelProto:
    """n -> sum of a constant tensor as big as `n` asks for: the memory that it takes is up to the caller."""
    nodes = [
        helper.make_node("ConstantOfShape", ["n"], ["big"]),
        helper.make_node("ReduceSum", ["big"], ["y"], keepdims=0),
    ]
    shape = models.value("n", [1], onnx.TensorProto.INT64)
    return models.make_model(nodes, [shape], [models.value("y", [])])


@pytest.fixture(scope="module")
def greedy_bundle(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(bundler, models.save(greedy(), tmp_path_factory.mktemp("greedy"), "greedy.onnx"), "web-wasm")


def test_model_that_asks_for_more_than_the_heap_is_out_of_memory(guest: Visitor, greedy_bundle: Path) -> None:
    with host(greedy_bundle) as site:
        guest.visit(site).value("globalThis.model = await load();")
        for count in (1_073_000_000, 3_000_000_000):
            error = guest.error("return model.run({ n: new BigInt64Array([BigInt(given)]) });", count)
            assert error["name"] == "OutOfMemoryError", error
        assert guest.value("return (await (await load()).selfTest()).passed;") is True
