"""A package whose self-test passes, and that answers a page otherwise, is not verified."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from bundler.model.proof import VariantProof
from tests.integration.web.test_proof import prove_all
from tests.support import models
from tests.support.brought import compare
from tests.support.command_line import CommandLine
from tests.support.recurrent_models import make_gru

Copy = Callable[[Path], Path]

pytestmark = pytest.mark.timeout(300)

ENTRY = re.compile(r"export const \{ load, probe, clearCache \} = (.*);\n")
FACADE = """
const made = %s;
export const { probe, clearCache } = made;
export const load = async (options) => {
  const model = await made.load(options);
  const names = ["run", "stream", "selfTest", "testWith", "dispose"];
  const methods = names.map((name) => [name, (...given) => model[name](...given)]);
  return { ...model, ...Object.fromEntries(methods), %s };
};
"""
"""An entry that gives an application another object than the model that the self-test runs."""

EXCHANGED = {
    "inputs": ("run: ({ a, b }) => model.run({ a: b, b: a })", 'run gives another "y" than the model'),
    "outputs": (
        "run: async (inputs) => { const { y, z } = await model.run(inputs); return { y: z, z: y }; }",
        'run gives another "y" than the model',
    ),
    "an output of another name": (
        "run: async (inputs) => { const { y, z } = await model.run(inputs); return { why: y, z }; }",
        'run gives the outputs ["why","z"] in place of ["y","z"]',
    ),
    "an input of another name": ("run: ({ a, c }) => model.run({ a, b: c })", 'input "b" is missing'),
    "their order": ("inputs: model.inputs.toReversed()", "inputs and outputs are others than the model's"),
}

STREAM = "loader/stream.js"
STREAMS = {
    "a leak into another stream": (
        "  #state = null;",
        "  get #state() { return Stream.kept ?? null; }\n  set #state(value) { Stream.kept = value; }",
        'a second stream\'s first step gives another "scores" than the model',
    ),
    "a reset that does nothing": (
        "    this.#replace(null);\n  }\n\n  /** Free",
        "  }\n\n  /** Free",
        'the first step after a reset gives another "scores" than the model',
    ),
    "a restore that does nothing": (
        "    this.#replace(copies);\n",
        "",
        'a step after its state was restored gives another "scores" than the model',
    ),
}
NEGATED = """
stream: () => {
  const stream = model.stream();
  const run = stream.run.bind(stream);
  stream.run = async (inputs) => {
    const outputs = await run(inputs);
    outputs.scores.data.forEach((value, at, data) => { data[at] = -value; });
    return outputs;
  };
  return stream;
}
"""

MEMBERS = {
    "is": ("first: whole.second, second: whole.second", "Error: another component was opened: second"),
    "runs": (
        "first: { ...whole.first, run: whole.second.run }, second: whole.second",
        'run gives another "y" than the model',
    ),
}
BUNDLE = """
const made = %s;
export const { probe, clearCache } = made;
export const load = async (options) => {
  const whole = await made.load();
  return { report: whole.report, close: () => whole.close(), %s };
};
"""


def build(bundler: CommandLine, folder: Path, *arguments: str) -> Path:
    built = bundler.build(*arguments, "--target=web-wasm", "--no-prove", f"--output={folder / 'out'}")
    return Path(built["bundle"])


@pytest.fixture(scope="module")
def plain(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    return build(bundler, folder, str(models.save(models.difference(), folder)))


@pytest.fixture(scope="module")
def stream(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stream")
    onnx.save(make_gru(), folder / "gru.onnx")
    return build(bundler, folder, str(folder / "gru.onnx"), "--state=h0=hn,initial=0.25")


@pytest.fixture(scope="module")
def pair(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pair")
    made = {"first": models.mlp(hidden=16), "second": models.mlp(hidden=9)}
    given = [f"{name}={models.save(model, folder, f'{name}.onnx')}" for name, model in made.items()]
    return build(bundler, folder, *given, "--bundle=pair")


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return lambda bundle: Path(shutil.copytree(bundle, tmp_path / "altered"))


def alter(bundle: Path, file: str, old: str, new: str) -> None:
    text = (bundle / file).read_text("utf-8")
    assert text.count(old) == 1
    (bundle / file).write_text(text.replace(old, new), "utf-8")


def replace_entry(bundle: Path, file: str, code: str, facade: str = FACADE) -> None:
    text = (bundle / file).read_text("utf-8")
    (made,) = ENTRY.findall(text)
    (bundle / file).write_text(ENTRY.sub("", text) + facade % (made, code), "utf-8")


RUN = "    const results = await (session.handler?.run ? session.handler : session).run(given, this.#fetches, {});\n"
BENT = """\
    for (const { data } of Object.values(results)) {
      data.forEach((value, at) => {
        data[at] = value * 1.0005;
      });
    }
"""
COMPARED = "this.addTensor(actual, reference, tolerance)"


def test_a_comparison_that_is_broken_is_found(plain: Path, copy: Copy, chromium: Path) -> None:
    """Outputs are a little wrong, and the loader compares each recorded value with itself."""
    bundle = copy(plain)
    alter(bundle, "loader/model.js", RUN, RUN + BENT)
    assert verify(bundle, chromium).passed is True  # the error is within the limits, and the loader reports it
    alter(bundle, "loader/metrics.js", COMPARED, COMPARED.replace("actual", "reference"))
    proof = verify(bundle, chromium)
    assert proof.passed is False
    assert "and its loader reports 0" in proof.reason


def verify(bundle: Path, chromium: Path) -> VariantProof:
    (proof,) = prove_all(bundle, chromium, compare)
    return proof


@pytest.mark.parametrize("model", ["plain", "stream"])
def test_an_honest_facade_is_believed(model: str, copy: Copy, chromium: Path, request: pytest.FixtureRequest) -> None:
    bundle = copy(request.getfixturevalue(model))
    proof = verify(bundle, chromium)
    assert proof.passed is True
    assert "compared by the bundle's own loader; bundler compared 1 of" in proof.reason
    replace_entry(bundle, "index.js", "own: true")
    assert verify(bundle, chromium).passed is True


@pytest.mark.parametrize("exchanged", EXCHANGED)
def test_a_facade_that_takes_or_gives_values_by_other_names_is_found(
    exchanged: str, plain: Path, copy: Copy, chromium: Path
) -> None:
    code, reason = EXCHANGED[exchanged]
    bundle = copy(plain)
    replace_entry(bundle, "index.js", code)
    proof = verify(bundle, chromium)
    assert proof.passed is False
    assert reason in proof.reason


def test_an_import_of_one_variant_that_exchanges_inputs_is_found(plain: Path, copy: Copy, chromium: Path) -> None:
    bundle = copy(plain)
    replace_entry(bundle, "variants/wasm.js", EXCHANGED["inputs"][0])
    proof = verify(bundle, chromium)
    assert (proof.passed, proof.reason) == (False, 'import ./wasm: run gives another "y" than the model')


@pytest.mark.parametrize(("path", "module"), [(".", "./index.js"), ("./self-test", "./self-test.js")])
def test_an_import_of_another_module_is_found(path: str, module: str, plain: Path, copy: Copy, chromium: Path) -> None:
    bundle = copy(plain)
    alter(bundle, "package.json", f'"default": "{module}"', '"default": "./node.js"')
    proof = verify(bundle, chromium)
    reason = f"import {path}: package.json names ./node.js in place of {module}"
    assert (proof.passed, proof.reason) == (False, reason)


@pytest.mark.parametrize("fault", STREAMS)
def test_a_fault_of_streams_is_found(fault: str, stream: Path, copy: Copy, chromium: Path) -> None:
    old, new, reason = STREAMS[fault]
    bundle = copy(stream)
    alter(bundle, STREAM, old, new)
    proof = verify(bundle, chromium)
    assert proof.passed is False
    assert reason in proof.reason


@pytest.mark.parametrize(("file", "where"), [("index.js", ""), ("variants/wasm.js", "import ./wasm: ")])
def test_a_negated_output_of_streams_is_found(file: str, where: str, stream: Path, copy: Copy, chromium: Path) -> None:
    bundle = copy(stream)
    replace_entry(bundle, file, NEGATED)
    proof = verify(bundle, chromium)
    assert (proof.passed, proof.reason) == (False, f'{where}step 1 of a stream gives another "scores" than the model')


@pytest.mark.parametrize("first_is_or_runs", MEMBERS)
def test_another_component_is_found(first_is_or_runs: str, pair: Path, copy: Copy, chromium: Path) -> None:
    code, reason = MEMBERS[first_is_or_runs]
    bundle = copy(pair)
    replace_entry(bundle, "index.js", code, BUNDLE)
    first, second = prove_all(bundle, chromium, compare)
    assert (first.passed, first.reason, second.passed) == (False, reason, True)
