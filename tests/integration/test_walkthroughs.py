"""The pages `docs/adding-*.md`, followed file by file and command by command in an environment of their own."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import pytest
import uv

from tests.support.command_line import ROOT, CommandLine
from tests.support.documents import read_document
from tests.support.models import cnn, save

_STEP = re.compile(r"(?P<lead>[^\n]*)\n\n```(?P<language>[a-z]+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMES = re.compile(r"`([\w./-]+\.\w+)`(?= and `|:$)")
PAGES = sorted(path.stem for path in (ROOT / "docs").glob("adding-*.md"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower:
    """Somebody who follows a page in the empty `folder`, with bundler in the environment of `python`."""

    folder: Path
    python: Path
    bundler: CommandLine

    def follow(self, page: str) -> str:
        """Write every file and run every command, in order; what the commands printed."""
        said = []
        for language, names, body in read_steps((ROOT / "docs" / f"{page}.md").read_text("utf-8")):
            if language == "sh":
                said.append(self.run(body))
            for name in names:
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_text(body, encoding="utf-8")
        return "".join(said)

    def run(self, script: str, code: int = 0) -> str:
        """What a script for the shell printed. `pip` is uv's, which is the same and quick."""
        script = script.replace("python -m pip install", f"uv pip install --quiet --reinstall --python {self.python}")
        places = (self.python.parent, Path(uv.find_uv_bin()).parent, os.environ["PATH"])
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.bundler.environment() | {"PATH": os.pathsep.join(map(str, places))},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


def read_steps(text: str) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Each block of a page: its language, the files that it is, and its text. A block is a script or a file."""
    for found in _STEP.finditer(text):
        names = tuple(_NAMES.findall(found["lead"]))
        assert (found["language"] == "sh") != bool(names), f"what is this block for?\n{found[0]}"
        yield found["language"], names, found["body"]


@pytest.fixture
def follower(tmp_path: Path, bundler: CommandLine) -> Follower:
    """In a fresh environment that sees this one: what a page installs is not here."""
    environment = tmp_path / "environment"
    subprocess.run([uv.find_uv_bin(), "venv", "--quiet", "--python", sys.executable, environment], check=True)
    python = environment / "bin" / "python"
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    here, there = (subprocess.check_output([name, "-c", asked], text=True).strip() for name in (sys.executable, python))
    (Path(there) / "bundler.pth").write_text(f"import site; site.addsitedir({here!r})\n", encoding="utf-8")
    program = environment / "bin" / "bundler"
    program.write_text(f"#!{python}\nfrom bundler.cli import main\n\nmain()\n", encoding="utf-8")
    program.chmod(0o755)
    folder = tmp_path / "walk"
    folder.mkdir()
    save(cnn(), folder)
    return Follower(folder=folder, python=python, bundler=bundler)


def read(path: Path) -> Any:
    return read_document(path)


def test_every_page_is_followed() -> None:
    pages = ["a-device", "a-provider", "a-stage", "a-target", "a-toolchain", "an-emitter"]
    assert [f"adding-{page}" for page in pages] == PAGES


@pytest.mark.slow
def test_a_target_of_another_package_is_listed_recommended_and_built(follower: Follower) -> None:
    said = follower.follow("adding-a-target")
    assert re.search(r"acme-gateway +Acme's gateway", said)
    runtime = next((follower.folder / "dist" / "model-acme-gateway").glob("*/payload/runtime.json"))
    assert read(runtime)["variants"][0]["session"]["intra_op_num_threads"] == 3
    assert "intra_op_num_threads" in follower.run("bundler targets show acme-gateway --json")


def test_a_provider_of_another_package_has_its_options_checked_and_its_variant_shipped(follower: Follower) -> None:
    said = follower.follow("adding-a-provider")
    bundle = follower.folder / "dist" / "model-acme-phone"
    first = read(bundle / "runtime.json")["variants"][0]["providers"][0]
    assert (first["name"], first["options"]) == ("AcmeExecutionProvider", {"power_mode": "burst"})
    assert "Not run   npu" in said
    wrong = (follower.folder / "acme-phone.toml").read_text("utf-8").replace("power_mode", "performance")
    (follower.folder / "wrong.toml").write_text(wrong, encoding="utf-8")
    assert "power_mode" in follower.run("bundler targets validate wrong.toml", code=4)


def test_a_stage_of_another_package_is_planned_run_and_recalled(follower: Follower) -> None:
    said = follower.follow("adding-a-stage")
    assert "npu/acme_compile" in said
    config = read(follower.folder / "dist" / "model-acme-phone" / "runtime.json")
    (component,) = config["components"]
    npu, cpu = (follower.folder / "dist" / "model-acme-phone" / variant["model"] for variant in component["variants"])
    assert onnx.load(npu).ir_version == 7
    assert onnx.load(cpu).ir_version > 7
    again = follower.run("bundler plan model.onnx --target ./acme-phone.toml --dim batch=1")
    assert re.search(r"npu/acme_compile +cached", again)
    stage = follower.folder / "acme-compiler" / "acme_compiler" / "acme_compile" / "run.py"
    stage.write_text(stage.read_text("utf-8").replace('"devices": ["acme-2"],', ""), encoding="utf-8")
    follower.run("python -m pip install ./acme-compiler")
    reported = follower.run("bundler build model.onnx --target ./acme-phone.toml --dim batch=1 --format files", code=6)
    assert "npu/acme_compile compiled a model and did not record its target: its facts lack devices" in reported
    follower.run("sed -i 's/newest = 7/here = false/' acme-phone.toml")
    follower.run("bundler build model.onnx --target ./acme-phone.toml --dim batch=1 --format files")


@pytest.mark.skipif(shutil.which("cc") is None, reason="this machine has no C compiler (cc)")
def test_a_library_of_another_packages_compiler_is_shipped_and_another_compiler_makes_it_anew(
    follower: Follower,
) -> None:
    said = follower.follow("adding-a-toolchain")
    assert re.search(r"toolchain acme-cc +\S", said)
    bundle = follower.folder / "dist" / "model-acme-board"
    library = bundle / "artifacts" / "npu" / "acme_table" / "acme_table.so"
    assert b"Conv\0" in library.read_bytes()
    npu, cpu = (variant["files"] for variant in read(bundle / "runtime.json")["variants"])
    assert [file["path"] for file in npu[len(cpu) :]] == ["artifacts/npu/acme_table/acme_table.so"]
    manifest = read(bundle / "bundle.json")
    kinds = [(item["kind"], item["step"], item["variant"]) for item in manifest["artifacts"]]
    assert ("golden", "record_golden", None) in kinds
    assert ("library", "npu/acme_table", "npu") in kinds
    (made,) = (item for item in manifest["artifacts"] if item["kind"] == "library")
    (step,) = (item for item in manifest["stages"] if item["step"] == "npu/acme_table")
    assert (made["digest"], made["size"]) == (step["artifact"], library.stat().st_size)
    assert set(step["versions"]) == {"acme-cc", "onnx"}
    models = bundle / "models"
    assert f"model {round(sum(file.stat().st_size for file in (models / 'npu').iterdir()) / 1000)} kB (was" in said
    plan = "bundler plan model.onnx --target ./acme-board.toml"
    assert re.search(r"npu/acme_table +cached", follower.run(plan))
    other = follower.python.parent / "cc"
    other.write_text(f'#!/bin/sh\n[ "$1" != --version ] || {{ echo "cc 99"; exit; }}\nexec {shutil.which("cc")} "$@"\n')
    other.chmod(0o755)
    assert re.search(r"npu/acme_table +stale +toolchain .* -> cc 99", follower.run(plan))
    follower.run("bundler build model.onnx --target ./acme-board.toml")
    (again,) = (item for item in read(bundle / "bundle.json")["stages"] if item["step"] == "npu/acme_table")
    assert again["versions"]["acme-cc"] == "cc 99"
    assert again["key"] != step["key"]
    other.write_text("#!/bin/sh\nexit 3\n")
    assert "install a C compiler" in follower.run("bundler build model.onnx --target ./acme-board.toml", code=5)


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64" or platform.system() != "Linux", reason="needs a Linux on x86-64")
def test_a_device_of_another_package_runs_a_bundle(follower: Follower) -> None:
    said = follower.follow("adding-a-device")
    assert "device acme-board" in said
    assert said.count("Verified  cpu: executed on Acme's board") == 2
    (proof,) = read(follower.folder / "dist" / "model-linux-x64" / "bundle.json")["proof"]["variants"]
    assert (proof["level"], proof["place"]) == ("executed", "on Acme's board")
    assert (proof["ran_on"]["device"], proof["ran_on"]["system"]) == ("acme-board", "Linux")
    assert re.search(r"model-linux-x64 +cpu .*\d", said), "its times on the board"
    assert list((follower.folder / "board").iterdir()) == []
    assert "acme-board:/tmp/bundles" in follower.run("bundler verify dist/model-linux-x64 --on acme-board", code=2)


def test_an_emitter_of_another_package_writes_what_verify_reads(follower: Follower) -> None:
    said = follower.follow("adding-an-emitter")
    bundle = follower.folder / "dist" / "model-acme-gateway"
    assert 'version = "2.1"\nchannel = "beta"' in (bundle / "update.ini").read_text("utf-8")
    assert (bundle / "player.bin").read_text("utf-8") == "the player\n"
    wrong = (follower.folder / "acme-gateway.toml").read_text("utf-8").replace('"beta"', '"gamma"')
    (follower.folder / "wrong.toml").write_text(wrong, encoding="utf-8")
    assert "acme.channel" in follower.run("bundler targets validate wrong.toml", code=4)
    assert '"AcmeSettings"' in follower.run("bundler targets schema")
    assert "the update service's player runs on the device alone" in said
    assert read(bundle / "bundle.json")["proof"]["level"] == "resolved"
    reported = follower.run("bundler build model.onnx --target ./acme-gateway.toml --version 2", code=2)
    assert "give two numbers" in reported
