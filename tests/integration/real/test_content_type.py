"""The content-type example gives the same answers as the original package, from the bundle alone."""

from __future__ import annotations

import io
import json
import pickle
import sys
import tarfile
import wave
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integration.real.conftest import BuildOnce
from tests.support.command_line import ONE_PYTHON, ROOT, CommandLine
from tests.support.documents import read_document
from tests.support.real_models import EXAMPLES, ask_original, load_example, make_original, run_python

ORIGINAL = """
import json, sys
from pathlib import Path
from magika import Magika
results = Magika().identify_paths([Path(name) for name in sys.argv[1:]])
print(json.dumps([[str(r.output.label), float(r.score)] for r in results]))
"""

OURS = (
    *("README.md", "LICENSE", "Makefile", "pyproject.toml", ".gitignore", "targets/linux-x64.toml"),
    *("bundler/planning/plan.py", "bundler/model/errors.py", "bundler/__init__.py", "templates/python/facade.py.j2"),
)
"""Files of this repository."""


def _png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    rows = np.random.default_rng(0).integers(0, 255, (40, 1 + 40 * 3), np.uint8)
    rows[:, 0] = 0
    header = (40).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows.tobytes())), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", "hello " * 500)
    return stream.getvalue()


def _tar() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        entry = tarfile.TarInfo("b.txt")
        entry.size = 3000
        archive.addfile(entry, io.BytesIO(b"x" * 3000))
    return stream.getvalue()


def _wav() -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes((np.sin(np.arange(8000) / 9) * 9000).astype("<i2").tobytes())
    return stream.getvalue()


def _npy() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.arange(4000, dtype=np.float32))
    return stream.getvalue()


GENERATED: dict[str, bytes] = {
    "picture.png": _png(),
    "archive.zip": _zip(),
    "archive.tar": _tar(),
    "sound.wav": _wav(),
    "array.npy": _npy(),
    "table.csv": b"name,age,town\n" + b"".join(b"p%d,%d,Kyiv\n" % (i, i) for i in range(300)),
    "data.json": json.dumps({"items": [{"id": i, "name": f"n{i}"} for i in range(200)]}).encode(),
    "page.html": b"<!DOCTYPE html><html><head><title>t</title></head><body>" + b"<p>text</p>" * 200 + b"</body></html>",
    "program.c": b'#include <stdio.h>\nint main(void) { for (int i = 0; i < 9; i++) printf("%d\\n", i); return 0; }\n'
    * 9,
    "script.sh": b'#!/bin/sh\nset -eu\nfor f in *.txt; do\n  grep -q x "$f" && echo "$f"\ndone\n' * 8,
    "object.pkl": pickle.dumps({"a": list(range(2000)), "b": "text"}),
    "noise.bin": np.random.default_rng(1).bytes(9000),
    "empty": b"",
    "short": b"hi",
    "short.bin": b"\xff\xfe\xfd",
    "spaces": b" " * 6000,
    "padded.py": b"\n" * 5000 + b"import os\n\n\ndef main():\n    print(os.getcwd())\n" * 40 + b" " * 5000,
    "few bytes in much space": b" " * 3000 + b"abc" + b" " * 3000,
    "exact": b"def f():\n    return 1\n".ljust(4096, b"#"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("files")
    for name, content in GENERATED.items():
        (folder / name).write_bytes(content)
    return [ROOT / name for name in OURS] + [folder / name for name in GENERATED]


@pytest.fixture(scope="module")
def original(shared: Path) -> Path:
    return make_original(shared / "original-magika", "magika==1.0.3", ">=3.11")


@pytest.fixture(scope="module")
def bundle(content_type_model: Path, build_once: BuildOnce) -> Path:
    return build_once(content_type_model)


def test_the_bundle_gives_the_answers_of_the_original_package(
    content_type_model: Path, bundle: Path, original: Path, files: list[Path]
) -> None:
    """Label for label, and scores within what another version of the runtime changes."""
    code = (
        f"import sys, json; sys.path[:0] = [{str(EXAMPLES / 'content_type')!r}]\n"
        "from classify import load_model, load_settings, classify\nfrom pathlib import Path\n"
        "model, settings = load_model(Path(sys.argv[1])), load_settings(Path(sys.argv[2]))\n"
        "print(json.dumps([[a.label, a.score] for a in classify(model, settings, list(map(Path, sys.argv[3:])))]))"
    )
    ours = ask_original(Path(sys.executable), code, [bundle, content_type_model.parent, *files])
    theirs = ask_original(original, ORIGINAL, files)
    assert [label for label, _ in ours] == [label for label, _ in theirs]
    np.testing.assert_allclose([s for _, s in ours], [s for _, s in theirs], rtol=1e-4, atol=1e-5)
    assert len({label for label, _ in ours}) > 10, "the files are too much alike to show anything"


def test_the_example_prints_what_files_hold(content_type_model: Path, bundle: Path) -> None:
    out = run_python(
        Path(sys.executable),
        [
            EXAMPLES / "content_type" / "classify.py",
            bundle,
            ROOT / "Makefile",
            ROOT / "pyproject.toml",
            "--config",
            content_type_model.parent,
        ],
    )
    assert [line.split(": ")[1].split()[0] for line in out.splitlines()] == ["makefile", "toml"]


def test_the_manifest_says_that_the_real_model_was_proven(bundle: Path) -> None:
    manifest = read_document(bundle / "bundle.json")
    assert manifest["proof"]["level"] == "executed"
    assert manifest["synthetic_inputs"] is True
    assert all(check["outputs"] for check in manifest["checks"])


def test_samples_of_the_real_task_make_a_golden_set_that_is_not_synthetic(
    content_type_model: Path, bundle: Path, build_once: BuildOnce, files: list[Path], tmp_path: Path
) -> None:
    example: Any = load_example("content_type")
    settings = example.load_settings(content_type_model.parent)
    features = [example.read_features(path, settings)[None] for path in files[:4]]
    np.savez(tmp_path / "samples.npz", bytes=np.stack(features))
    other = build_once(content_type_model, "--samples", str(tmp_path / "samples.npz"), "--name", "sampled")
    assert other != bundle
    manifest = read_document(other / "bundle.json")
    assert (manifest["synthetic_inputs"], manifest["proof"]["level"]) == (False, "executed")
    index = json.loads((other / manifest["payload"] / "golden" / "index.json").read_text())
    assert [sample["inputs"]["bytes"]["shape"] for sample in index["samples"]] == [[1, 2048]] * 4


@pytest.mark.slow
def test_the_example_of_precision_ships_eight_bits_that_keep_the_labels_right(
    content_type_model: Path, bundler: CommandLine, tmp_path: Path
) -> None:
    """As `make demo-precision` does, with fewer methods."""
    folder = tmp_path / "work"
    folder.mkdir()
    for path in content_type_model.parent.glob("*.json"):
        (folder / path.name).write_bytes(path.read_bytes())
    run_python(Path(sys.executable), [EXAMPLES / "content_type" / "fetch_files.py", folder / "files"])
    out = run_python(Path(sys.executable), [EXAMPLES / "content_type" / "write_samples.py", folder])
    assert [line.split(": ")[0] for line in out.splitlines()] == [str(folder / p) for p in ("calibration", "held-out")]
    metric = EXAMPLES / "content_type" / "metric.py"
    answer = bundler.run(
        *("build", content_type_model, "--target=linux-x64", "--no-prove", "--json", f"--output={tmp_path}"),
        *(f"--calibration={folder / 'calibration'}", f"--samples={folder / 'held-out'}", "--set=precision.method=auto"),
        *('--set=precision.order=["static-int8-full", "static-int8"]', f"--set={ONE_PYTHON}"),
        *(f"--set=accuracy.metric.python={metric}:share_right", "--set=accuracy.metric.drop=0.01"),
    ).expect(0)
    frontier = answer.document["bundles"][0]["decisions"]["cpu"]["answer"]
    attempts = {attempt["method"]: attempt for attempt in frontier["attempts"]}
    everything, chosen = attempts["static-int8-full"], attempts["static-int8"]
    assert everything["state"] == "failed"
    assert "share_right" in everything["reason"]
    assert f"static-int8-full: gate not met: {everything['reason']}" in answer.err
    assert chosen["state"] in ("chosen", "passed"), "only a busy machine finds the unchanged model as fast"
    assert chosen["model_bytes"] < 0.3 * attempts["none"]["model_bytes"]
    assert chosen["figures"]["metric"] >= attempts["none"]["figures"]["metric"] - 0.01
    assert frontier["held_out"] >= 20
    assert frontier["calibration"] >= 20
