"""The example of a bundle of three models reads the lines that the original package reads, from the bundle alone."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.support.command_line import HERE, CommandLine
from tests.support.real_models import EXAMPLES, ask_original, make_original, run_python

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
    return found


def measure(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.quick
def test_the_bundle_reads_what_the_original_package_reads(warm: CommandLine, shared: Path, folder: Path) -> None:
    here = CommandLine(cache=warm.cache, env=warm.env, cwd=folder)
    built = here.run("build", "--python", HERE, timeout=600).expect(0)
    assert "pipeline.py:run answered as with the original models on 3 of 3 samples" in built.out
    pages = sorted((folder / "pages").glob("*.png"))
    requirement, python = "rapidocr-onnxruntime==1.4.4", ">=3.11,<3.13"
    original = make_original(shared / "original-rapidocr", requirement, python, without=["opencv-python"])
    theirs = ask_original(original, ORIGINAL, pages)
    said = run_python(Path(sys.executable), [folder / "pipeline.py", folder / "dist" / "ocr-linux-x64", *pages])
    ours = {str(page): [] for page in pages}
    for line in said.splitlines():
        name, score, text = line.replace(": ", " ", 1).split(" ", 2)
        ours[str(folder / "pages" / name)].append((text, float(score)))
    lines = {name: [text for text, _ in found] for name, found in ours.items()}
    assert lines == {name: [text for text, _ in found] for name, found in theirs.items()}
    assert sum(map(len, lines.values())) > 12
    for name, found in theirs.items():
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
