"""The examples for each kind of user: the commands of their READMEs, run as printed, and what comes of them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Playwright, expect

from tests.support.command_line import CommandLine
from tests.support.documents import read_document
from tests.support.real_models import EXAMPLES
from tests.support.web_host import allow_own_workers, host
from tests.support.web_pages import launch

Example = Callable[[str], Path]


@pytest.fixture
def run_example(bundler: CommandLine, tmp_path: Path) -> Example:
    """`run_example(name)` runs the commands of the example's README in a copy of it, and is the copy."""

    def run(name: str) -> Path:
        shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        folder = tmp_path / "examples" / name
        commands = re.findall(
            r"^```sh\n(.*?)^```$", (folder / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
        )
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "".join(commands)],
            cwd=folder,
            env=describe_environment(bundler),
            capture_output=True,
            text=True,
            check=False,
        )
        assert commands
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        (folder / "said.txt").write_text(done.stdout, encoding="utf-8")
        return folder

    return run


def describe_environment(bundler: CommandLine) -> dict[str, str]:
    """That of somebody who has bundler on the PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return bundler.environment() | {"PATH": path}


def test_a_mobile_team_has_a_module_with_the_model_and_no_changed_file(run_example: Example) -> None:
    folder = run_example("mobile_app")
    module = folder / "app" / "bundle"
    assert 'namespace = "com.acme.orientation"' in (module / "build.gradle.kts").read_text("utf-8")
    payload = module / "src" / "main" / "assets" / "com.acme.orientation" / "payload"
    config = read_document(payload / "runtime.json")
    assert [variant["name"] for variant in config["variants"]] == ["xnnpack", "nnapi", "cpu"]
    for file in (file for variant in config["variants"] for file in variant["files"]):
        assert hashlib.sha256((payload / file["path"]).read_bytes()).hexdigest() == file["sha256"]
    assert (payload / "golden" / "index.json").is_file()


@pytest.mark.slow
def test_a_release_engineer_has_a_set_and_its_digests(run_example: Example) -> None:
    folder = run_example("release_set")
    sums = dict(line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text("utf-8").splitlines())
    assert sorted(sums) == [f"orientation-{name}/bundle.json" for name in ("android-arm64", "linux-x64", "windows-x64")]
    for name, digest in sums.items():
        assert hashlib.sha256((folder / "dist" / name).read_bytes()).hexdigest() == digest
    asked = [sys.executable, "check_set.py", "dist.json", "windows-x64=executed", "macos-arm64=resolved"]
    done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: the bundle for windows-x64 is resolved, not executed",
        "error: there is no bundle for macos-arm64",
    ]


def draw_line(folder: Path) -> None:
    """A line of text as it is, `upright.png`, and upside down, `turned.png`."""
    picture = Image.new("RGB", (240, 60), "white")
    ImageDraw.Draw(picture).text((20, 8), "Platform 7b", "navy", ImageFont.load_default(36))
    picture.save(folder / "upright.png")
    picture.rotate(180).save(folder / "turned.png")


@pytest.mark.slow
def test_a_web_developer_has_a_page_that_tells_which_way_up(
    run_example: Example, playwright: Playwright, tmp_path: Path
) -> None:
    site = run_example("web_page") / "site"
    draw_line(tmp_path)
    with host(site) as server, launch(playwright) as browser:
        page = browser.new_page()
        page.goto(f"{server.url}/index.html")
        expect(page.get_by_role("status")).to_have_text("Ready, on wasm.", timeout=60_000)
        for name, words in (("upright", "Upright ("), ("turned", "Upside down (")):
            page.get_by_label("A picture").set_input_files(tmp_path / f"{name}.png")
            expect(page.get_by_role("status")).to_contain_text(words, timeout=60_000)


@pytest.mark.slow
def test_a_vite_app_ships_the_files_of_its_import_alone(
    run_example: Example, playwright: Playwright, tmp_path: Path
) -> None:
    folder = run_example("web_vite")
    shipped = [path for path in (folder / "dist").rglob("*") if path.is_file() and path.suffix not in {".js", ".html"}]
    assert sorted(path.suffix for path in shipped) == [".onnx", ".txt", ".wasm"]
    assert not [path for path in shipped if "jspi" in path.name or "asyncify" in path.name]
    readme = (folder / "bundles" / "orientation-web-webgpu" / "README.md").read_text("utf-8")
    (row,) = re.findall(r"^\| `orientation/wasm` \| wasm \| ([\d,]+) bytes", readme, re.MULTILINE)
    assert sum(path.stat().st_size for path in shipped) == int(row.replace(",", ""))
    draw_line(tmp_path)
    with host(folder / "dist") as server, launch(playwright) as browser:
        page = browser.new_page()
        page.goto(f"{server.url}/index.html")
        expect(page.get_by_role("status")).to_have_text("Ready, on wasm.", timeout=60_000)
        page.get_by_label("A picture").set_input_files(tmp_path / "turned.png")
        expect(page.get_by_role("status")).to_contain_text("Upside down (", timeout=60_000)


@pytest.mark.slow
def test_a_page_asks_a_worker_that_has_the_model(run_example: Example, playwright: Playwright, tmp_path: Path) -> None:
    site = run_example("web_worker") / "site"
    draw_line(tmp_path)
    (tmp_path / "none.png").write_bytes(b"no picture")
    with host(site) as server, launch(playwright) as browser:
        allow_own_workers(server)
        page = browser.new_page()
        page.goto(f"{server.url}/index.html")
        expect(page.get_by_role("status")).to_have_text("Ready, on wasm.", timeout=60_000)
        names = [tmp_path / f"{name}.png" for name in ("upright", "turned", "none", "upright")]
        page.get_by_label("Pictures").set_input_files(names)
        words = ("upright.png: upright (", "turned.png: upside down (", "none.png: ", "upright.png: upright (")
        for line, text in enumerate(words):
            expect(page.get_by_role("listitem").nth(line)).to_contain_text(text, timeout=60_000)
        expect(page.get_by_role("listitem").nth(2)).to_contain_text("could not be decoded")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["production", "development"])
def test_a_react_app_has_the_model_behind_a_hook(
    run_example: Example, playwright: Playwright, tmp_path: Path, mode: str
) -> None:
    """In development `StrictMode` mounts twice."""
    folder = run_example("web_react")
    define = f'--define:process.env.NODE_ENV="{mode}"'
    subprocess.run(["npm", "run", "build", "--", define], cwd=folder, check=True, capture_output=True)
    draw_line(tmp_path)
    (tmp_path / "none.png").write_bytes(b"no picture")
    with host(folder / "site") as server, launch(playwright) as browser:
        page = browser.new_page()
        errors: list[object] = []
        page.on("pageerror", lambda error: errors.append(error))  # noqa: PLW0108 - Playwright wants a Python function
        page.goto(f"{server.url}/index.html")
        expect(page.get_by_role("status")).to_have_text("Ready, on wasm.", timeout=60_000)
        for name, words in (("upright", "Upright ("), ("none", "could not be decoded"), ("turned", "Upside down (")):
            page.get_by_label("A picture").set_input_files(tmp_path / f"{name}.png")
            expect(page.get_by_role("status")).to_contain_text(words, timeout=60_000)
        assert not errors
        for file in (folder / "site" / "orientation").rglob("*.onnx"):
            file.unlink()
        page = browser.new_context().new_page()
        page.goto(f"{server.url}/index.html")
        expect(page.get_by_role("status")).to_contain_text("model.onnx", timeout=60_000)


@pytest.mark.slow
def test_a_service_answers_with_the_labels_of_files(run_example: Example) -> None:
    folder = run_example("python_service")
    with start_service(folder) as address:
        assert "cpu" in ask(f"{address}/health")["report"]
        for name, label in (("service.py", "python"), ("magika.onnx", "onnx"), ("README.md", "markdown")):
            assert ask(address, (folder / name).read_bytes())["label"] == label


def ask(address: str, data: bytes | None = None) -> dict[str, Any]:
    """The answer of the service."""
    with urllib.request.urlopen(address, data=data) as answer:  # noqa: S310 - our own
        answered: dict[str, Any] = json.load(answer)
        return answered


@contextmanager
def start_service(folder: Path) -> Iterator[str]:
    """The address of the service, while it runs."""
    command = [folder / "env" / "bin" / "python", "service.py", "config.min.json", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        try:
            yield service.stdout.readline().strip()
        finally:
            service.terminate()
            service.communicate()
