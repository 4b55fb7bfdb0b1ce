"""Bundles of several models in a project file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bundler.model.errors import UsageError
from bundler.pipeline.requests import check_clashes
from bundler.project.load import find_project
from bundler.project.requests import project_requests

TEXT = """
targets = ["linux-x64", "web-wasm"]

[[bundles]]
name = "ocr"
version = "2.1"

[bundles.models.detect]
path = "det.onnx"
shapes = { x = [1, 3, 640, 640] }

[bundles.models.read]
path = "rec.onnx"
samples = "lines"
precision = { method = "dynamic-int8" }
accuracy = { sqnr_db = 10 }

[accuracy]
sqnr_db = 20
"""


def test_a_bundle_of_the_file_is_one_request_for_each_target(tmp_path: Path) -> None:
    (tmp_path / "bundler.toml").write_text(TEXT)
    first, second = project_requests(find_project(tmp_path), given={"format": "wheel"})
    assert (first.name, first.target, second.target) == ("ocr", "linux-x64", "web-wasm")
    assert (first.version, first.format, first.origin) == ("2.1", "wheel", "bundler.toml:4")
    detect, read = first.components.values()
    assert (detect.model, read.model) == (tmp_path / "det.onnx", tmp_path / "rec.onnx")
    assert (detect.samples, read.samples) == (None, str(tmp_path / "lines"))
    assert detect.overrides == ("accuracy.sqnr_db=20.0",)
    assert read.overrides == (
        "accuracy.sqnr_db=20.0",
        'precision.method="dynamic-int8"',
        "accuracy.sqnr_db=10.0",
    )
    assert read.origin == "bundler.toml:12"


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("[bundles.models.read]", "[bundles.models.class]", "bundler.toml:12: .*it is a keyword"),
        ('version = "2.1"', 'version = "2.1"\ntogether = ["detect", "write"]', "together must name"),
        ('targets = ["linux-x64", "web-wasm"]', "", "names no target for ocr"),
        (
            'name = "ocr"',
            'name = "ocr"\npipeline = { python = "pipeline.py", samples = "." }',
            "bundler.toml:[0-9]+: 'pipeline.py' does not name a function",
        ),
        *(
            (
                'name = "ocr"',
                f'name = "ocr"\npipeline = {{ python = "p.py:run", samples = ".", requires = ["{text}"] }}',
                rf"bundler.toml:[0-9]+: bundles\[0\].pipeline.requires: {problem}",
            )
            for text, problem in (
                ("Pil low", "Pil low is not a requirement"),
                ("--index-url=evil", "--index-url=evil is not a requirement"),
                (r"Pillow\n--index-url=evil", "Pillow.+ is not a requirement"),
                ("Pillow @ file:///etc/passwd", "Pillow is given by an address"),
                ("onnxruntime-gpu", "remove onnxruntime-gpu: the bundle brings its own runtime"),
                ("x" * 5000, "x+ is not a requirement"),
            )
        ),
        ('path = "rec.onnx"', "", r"bundler.toml:12: bundles\[0\].models.read.path: is missing"),
    ],
)
def test_mistakes_are_reported(tmp_path: Path, before: str, after: str, text: str) -> None:
    assert before in TEXT
    (tmp_path / "bundler.toml").write_text(TEXT.replace(before, after))
    with pytest.raises(UsageError) as caught:
        project_requests(find_project(tmp_path))
    shown = "\n".join((caught.value.message, *caught.value.details))
    assert re.search(text, shown), shown


def test_a_file_without_a_model_says_what_to_add(tmp_path: Path) -> None:
    (tmp_path / "bundler.toml").write_text('targets = ["linux-x64"]\n')
    with pytest.raises(UsageError) as caught:
        find_project(tmp_path)
    assert "names no model: add [[models]], or [[bundles]]" in "\n".join(caught.value.details)


def test_two_bundles_of_one_name_are_told_apart_in_the_file(tmp_path: Path) -> None:
    """`--name` is for one model, and `bundler build` has none here."""
    one = '[[bundles]]\nname = "ocr"\nmodels.{}.path = "det.onnx"\n'
    (tmp_path / "bundler.toml").write_text('targets = ["linux-x64"]\n' + one.format("detect") + one.format("read"))
    with pytest.raises(UsageError, match="would both become ocr-linux-x64") as caught:
        check_clashes(project_requests(find_project(tmp_path)))
    assert caught.value.hint == "give each a unique name in bundler.toml"
