"""The package of a model with state: its rendered part, and its types."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from bundler.emitters.contract import EmitRequest
from bundler.emitters.web.emitter import EMITTER
from bundler.model.state import StateLink
from bundler.support.data import data_root
from tests.support import models
from tests.support.bundles import combine_requests
from tests.support.decoder_models import make_decoder
from tests.support.recurrent_models import make_gru
from tests.support.web_bundles import make_web_request
from tests.unit.emitters.web.rendered import render_all
from tests.unit.emitters.web.test_generated_code import compile_


def add_state(request: EmitRequest) -> EmitRequest:
    (component,) = request.config.components
    component = dataclasses.replace(component, state=(StateLink(input="h0", output="hn"),))
    return dataclasses.replace(request, config=dataclasses.replace(request.config, components=(component,)))


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    return add_state(make_web_request(make_gru(), tmp_path_factory.mktemp("gru"), ("wasm",), name="gru"))


@pytest.mark.parametrize("file", ["index.js", "index.d.ts", "README.md"])
def test_the_rendered_files(recurrent: EmitRequest, file: str, snapshot: SnapshotAssertion) -> None:
    assert render_all(recurrent)[file] == snapshot


def test_the_module_of_streams_is_there(recurrent: EmitRequest, tmp_path: Path) -> None:
    EMITTER.emit(recurrent, tmp_path)
    assert (tmp_path / "loader" / "stream.js").is_file()
    assert "./loader/stream.js" in (tmp_path / "runtime.js").read_text("utf-8")


def test_the_readme_says_what_grows(tmp_path: Path) -> None:
    request = make_web_request(make_decoder(), tmp_path, ("wasm",), name="decoder")
    (component,) = request.config.components
    state = tuple(StateLink(input=f"past_{kind}", output=f"present_{kind}", grows=2) for kind in "kv")
    config = dataclasses.replace(request.config, components=(dataclasses.replace(component, state=state),))
    text = render_all(dataclasses.replace(request, config=config))["README.md"]
    assert "Each step makes the state longer (past\\_k, past\\_v), until `reset()`." in text


SOLE = """
import { load, type ModelStream } from "gru";

const model = await load();
const stream: ModelStream = model.stream();
const { scores } = await stream.run({ x: new Float32Array(40) });
const data: Float32Array = scores.data;
stream.setState(await stream.getState());
stream.reset();
stream.close();
console.log(data);
// @ts-expect-error the state is the stream's own
await stream.run({ x: data, h0: data });
// @ts-expect-error and no output
(await stream.run({ x: data })).hn;
// @ts-expect-error an input is missing
await stream.run({});
"""

SEVERAL = """
import { load, type EncodeStream } from "both";

const bundle = await load();
const stream: EncodeStream = bundle.encode.stream();
console.log((await stream.run({ x: new Float32Array(40) })).scores.data);
// @ts-expect-error a component without state
bundle.plain.stream();
"""


def test_typescript_knows_the_streams(recurrent: EmitRequest, tmp_path: Path, tsc: str) -> None:
    plain = make_web_request(models.mlp(), tmp_path / "mlp", ("wasm",), name="plain")
    both = combine_requests({"encode": recurrent, "plain": plain}, name="both")
    for request, use in ((recurrent, SOLE), (both, SEVERAL)):
        folder = tmp_path / request.config.name
        package = folder / "node_modules" / request.config.name
        shutil.copytree(data_root("templates") / "web" / "package", package)
        for name, text in render_all(request).items():
            (package / name).parent.mkdir(exist_ok=True)
            (package / name).write_text(text, "utf-8")
        (folder / "package.json").write_text('{"type": "module"}')
        (folder / "use.ts").write_text(use)
        compile_(tsc, folder, "--moduleResolution", "bundler", "--module", "esnext")
