"""Components that belong together, compiled into one context for Qualcomm's NPU."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, helper

from tests.support import models
from tests.support.command_line import CommandLine

pytestmark = pytest.mark.timeout(600)

PROJECT = """
targets = ["snapdragon-8g3"]

[[bundles]]
name = "lm"
format = "files"
together = [{names}]
{models}
"""


def make_encoder(length: int, seed: int = 0) -> ModelProto:
    """Four layers of 256 for sequences of one length, with the weights that `seed` makes."""
    nodes = [helper.make_node("MatMul", [f"m{index}", f"w{index}"], [f"m{index + 1}"]) for index in range(4)]
    nodes[0].input[0], nodes[3].output[0] = "x", "y"
    tensors = tuple(models.tensor(f"w{index}", models.weights(256, 256, seed=seed + index)) for index in range(4))
    shape = [1, length, 256]
    return models.make_model(nodes, [models.value("x", shape)], [models.value("y", shape)], tensors)


def write_project(folder: Path, **components: ModelProto) -> None:
    for name, model in components.items():
        models.save(model, folder, f"{name}.onnx")
    lines = "\n".join(f'models.{name}.path = "{name}.onnx"' for name in components)
    names = ", ".join(f'"{name}"' for name in components)
    (folder / "bundler.toml").write_text(PROJECT.format(names=names, models=lines))


def build(bundler: CommandLine, folder: Path) -> tuple[dict[str, Any], str]:
    """`runtime.json` of the bundle, and all that was said."""
    here = CommandLine(cache=bundler.cache, env=bundler.env, cwd=folder)
    built = here.run("build").expect(0)
    config = json.loads((folder / "dist" / "lm-snapdragon-8g3" / "runtime.json").read_text("utf-8"))
    return config, built.out + built.err


def find_variants(config: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [variant for part in config["components"] for variant in part["variants"] if variant["name"] == name]


def test_two_graphs_of_one_encoder_share_one_context(bundler: CommandLine, tmp_path: Path) -> None:
    write_project(tmp_path, prompt=make_encoder(16), token=make_encoder(1))
    config, said = build(bundler, tmp_path)
    prompt, token = find_variants(config, "htp")
    assert [prompt["model"], token["model"]] == ["models/prompt/htp/model.onnx", "models/prompt/htp/partner.onnx"]
    contexts = [file for variant in (prompt, token) for file in variant["files"] if file["path"].endswith(".bin")]
    assert contexts[0] == contexts[1]
    assert contexts[0]["size"] < 1.2 * 2 * 4 * 256 * 256  # the weights once, in half precision
    for variant in (prompt, token):
        assert variant["requires"]["compiled"]["partners"] == ["prompt", "token"]
        assert variant["session_config"]["ep.share_ep_contexts"] == "1"
    assert "variant htp of prompt and token share one compiled file" in said
    assert "Not run   prompt/htp, token/htp: prompt and token share its file, which only a device can open" in said
    assert "prompt/htp: gate passed against the original model, 8 samples, compiled alone\n" in said

    bundle = tmp_path / "dist" / "lm-snapdragon-8g3"
    manifest = json.loads((bundle / "bundle.json").read_text("utf-8"))
    levels = {(record["component"], record["variant"]): record["level"] for record in manifest["proof"]["variants"]}
    assert {levels[name, "htp"] for name in ("prompt", "token")} == {"resolved"}
    assert {levels[name, "cpu"] for name in ("prompt", "token")} == {"stand-in"}
    assert "The compiled file holds the graphs of prompt and token: " in (bundle / "README.md").read_text("utf-8")
    verified = bundler.run("verify", bundle).expect(0)
    assert "prompt and token share its file, which only a device can open" in verified.out + verified.err
    assert "up to date" in CommandLine(cache=bundler.cache, env=bundler.env, cwd=tmp_path).run("build").expect(0).out


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ({"token": make_encoder(1, seed=40)}, "one shared file has"),
        (
            {"token": make_encoder(1), "verify": make_encoder(4)},
            "the compiler takes 2 models at once, not 3",
        ),
    ],
    ids=["other weights", "three"],
)
def test_components_that_cannot_share_a_context_keep_their_own(
    bundler: CommandLine, tmp_path: Path, others: dict[str, ModelProto], reason: str
) -> None:
    write_project(tmp_path, prompt=make_encoder(16), **others)
    config, said = build(bundler, tmp_path)
    assert f"keeps a file for each component: {reason}" in said
    assert len({variant["model"] for variant in find_variants(config, "htp")}) == 1 + len(others)
    assert all(not variant["requires"]["compiled"]["partners"] for variant in find_variants(config, "htp"))
    assert re.search(r"Verified  .*token/htp.* in Qualcomm QNN's emulator", said)
