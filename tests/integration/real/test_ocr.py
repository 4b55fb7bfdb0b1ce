"""The example of a bundle of three models reads the lines that the original package reads, from the bundle alone."""

from __future__ import annotations

import base64
import importlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, Playwright

from tests.support.command_line import HERE, CommandLine
from tests.support.real_models import EXAMPLES, ask_original, make_original, run_python
from tests.support.web_host import host
from tests.support.web_pages import launch, visitor

ORIGINAL = """
import json, sys
from rapidocr_onnxruntime import RapidOCR
engine = RapidOCR()
found = {name: engine(name)[0] or [] for name in sys.argv[1:]}
print(json.dumps({name: [[text, float(score)] for _, text, score in lines] for name, lines in found.items()}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's own files, its models and its pages."""
    found = tmp_path_factory.mktemp("ocr") / "ocr"
    shutil.copytree(EXAMPLES / "ocr", found)
    run_python(Path(sys.executable), [EXAMPLES / "ocr" / "fetch_models.py", found])
    run_python(Path(sys.executable), [found / "draw_pages.py", found / "pages"])
    run_python(Path(sys.executable), [found / "make_samples.py", found / "pages", found / "samples"])
    return found


def measure(folder: Path) -> int:
    """The bytes of a bundle without its samples, which the user chooses."""
    files = (path for path in folder.rglob("*") if path.is_file() and "golden" not in path.parts)
    return sum(path.stat().st_size for path in files)


@pytest.fixture(scope="module")
def their_lines(shared: Path, folder: Path) -> dict[str, list[list[object]]]:
    """Text and score of each line that the original package reads on each page."""
    pages = sorted((folder / "pages").glob("*.png"))
    requirement, python = "rapidocr-onnxruntime==1.4.4", ">=3.11,<3.13"
    original = make_original(shared / "original-rapidocr", requirement, python, without=["opencv-python"])
    return ask_original(original, ORIGINAL, pages)


def check_proof(bundle: Path) -> None:
    """Every output of every model was compared, on real data; the pipeline's own packages are named."""
    manifest = json.loads((bundle / "bundle.json").read_text("utf-8"))
    assert manifest["proof"]["level"] == "executed"
    golden = [component["golden"] for component in manifest["components"]]
    assert [(one["inputs"], one["samples"]) for one in golden] == [("samples", 9)] * 3
    assert not [output for one in golden for output in one["outputs"] if output["unjudged"]]
    assert [record["requires"] for record in manifest["pipeline"]] == [["Pillow>=11"]]


@pytest.mark.quick
def test_the_bundle_reads_what_the_original_package_reads(
    warm: CommandLine, folder: Path, their_lines: dict[str, list[list[object]]]
) -> None:
    here = CommandLine(cache=warm.cache, env=warm.env, cwd=folder)
    built = here.run("build", "--python", HERE, timeout=600).expect(0)
    assert "pipeline.py:run matches the original models on 3 of 3 samples" in built.out
    check_proof(folder / "dist" / "ocr-linux-x64")
    here.run("bench", "dist/ocr-linux-x64", "--pipeline", "pages", "--seconds", "0.5").expect(0)
    pages = sorted((folder / "pages").glob("*.png"))
    said = run_python(Path(sys.executable), [folder / "pipeline.py", folder / "dist" / "ocr-linux-x64", *pages])
    ours = {str(page): [] for page in pages}
    for line in said.splitlines():
        name, score, text = line.replace(": ", " ", 1).split(" ", 2)
        ours[str(folder / "pages" / name)].append((text, float(score)))
    lines = {name: [text for text, _ in found] for name, found in ours.items()}
    assert lines == {name: [text for text, _ in found] for name, found in their_lines.items()}
    assert sum(map(len, lines.values())) > 12
    for name, found in their_lines.items():
        for (_, score), (_, other) in zip(ours[name], found, strict=True):
            assert score == pytest.approx(other, abs=0.06)


@pytest.mark.quick
def test_one_bundle_is_smaller_than_three(warm: CommandLine, folder: Path) -> None:
    here = CommandLine(cache=warm.cache, env=warm.env, cwd=folder)
    here.run("build", "--python", HERE, timeout=600).expect(0)
    models = [folder / f"{name}.onnx" for name in ("detect", "classify", "read")]
    arguments = ("-t", "linux-x64", "--python", HERE, "--no-prove", "-o", folder / "three")
    here.run("build", *models, *arguments, timeout=600).expect(0)
    one = measure(folder / "dist" / "ocr-linux-x64")
    three = sum(measure(folder / "three" / f"{model.stem}-linux-x64") for model in models)
    assert one < 0.6 * three, f"one bundle {one / 1e6:.1f} MB, three bundles {three / 1e6:.1f} MB"


class InPage:
    """A component of a web bundle in a page, as the example's pipeline calls one."""

    def __init__(self, page: Page, name: str) -> None:
        self._page, self._name = page, name

    def run(self, x: np.ndarray) -> tuple[np.ndarray]:
        given = {"name": self._name, "dims": x.shape, "data": base64.b64encode(x.astype("<f4").tobytes()).decode()}
        found = self._page.evaluate(RUN_IN_PAGE, given)
        return (np.frombuffer(base64.b64decode(found["data"]), "<f4").reshape(found["dims"]),)


RUN_IN_PAGE = """async ({ name, dims, data }) => {
  globalThis.ocr ??= await (await import("/index.js")).load();
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const outputs = await ocr[name].run({ x: { data: new Float32Array(bytes.buffer), dims } });
  const [first] = Object.values(outputs);
  const answer = new Uint8Array(first.data.buffer, first.data.byteOffset, first.data.byteLength);
  let text = "";
  for (let place = 0; place < answer.length; place += 8192) {
    text += String.fromCharCode(...answer.subarray(place, place + 8192));
  }
  return { dims: [...first.dims], data: btoa(text) };
}"""
"""The bundle is loaded once; tensors travel as text."""


@pytest.fixture
def browser(playwright: Playwright) -> Iterator[Browser]:
    running = launch(playwright, "--disable-gpu")
    yield running
    running.close()


@pytest.mark.timeout(600)
def test_the_web_bundle_reads_the_same_lines(
    warm: CommandLine,
    folder: Path,
    their_lines: dict[str, list[list[object]]],
    browser: Browser,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The example's own code around the models of a page: they run in Chromium, one runtime for all of them."""
    project = (folder / "bundler.toml").read_text("utf-8").replace('"linux-x64"', '"web-wasm"')
    (folder / "bundler.toml").write_text(project)
    built = CommandLine(cache=warm.cache, env=warm.env, cwd=folder).run("build", timeout=600).expect(0)
    assert "pipeline.py:run matches the original models on 3 of 3 samples" in built.out
    monkeypatch.syspath_prepend(folder)
    read_page = importlib.import_module("pipeline").run
    with host(folder / "dist" / "ocr-web-wasm") as site, visitor(browser) as guest:
        page = guest.visit(site).page
        bundle = SimpleNamespace(**{name: InPage(page, name) for name in ("detect", "classify", "read")})
        ours = {name: [line.text for line in read_page(bundle, Path(name))] for name in their_lines}
        runtimes = [count for path, count in site.data_asked.items() if path.endswith(".wasm")]
    assert ours == {name: [text for text, _ in found] for name, found in their_lines.items()}
    assert runtimes == [1]
