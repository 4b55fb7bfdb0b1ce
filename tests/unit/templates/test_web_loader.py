"""The loader of web bundles under Node.js: its own tests, and its figures against those of the Python loader."""

from __future__ import annotations

import base64
import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bundler.data import data_root

TESTS = Path(__file__).parents[2] / "javascript" / "loader"
TOLERANCE: dict[str, float | None] = {
    "absolute": 1e-3,
    "relative": 1e-3,
    "sqnr_db": 60.0,
    "cosine": 0.9999,
    "top1_agreement": 1.0,
}

Pair = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("the loader of web bundles is not tested: there is no Node.js (20.19 or later) on the PATH")
    return found


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(data_root("templates") / "python" / "package"))
    yield importlib.import_module("_loader.metrics")
    for module in [module for module in sys.modules if module.startswith("_loader")]:
        del sys.modules[module]


def test_the_loader_keeps_its_promises_and_measures_as_python_does(
    node: str, metrics: ModuleType, tmp_path: Path
) -> None:
    figures = tmp_path / "figures.json"
    figures.write_text(json.dumps([measure(metrics, name, pairs) for name, pairs in cases().items()]))
    command = [node, "--test", *map(str, sorted(TESTS.glob("*.test.js")))]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"FIGURES": str(figures)}
    )
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if "not ok" in line) + done.stderr
    assert "# skipped 0" in done.stdout


def cases() -> dict[str, list[Pair]]:
    """Pairs of an output and its reference, one for each sample."""
    random = np.random.default_rng(7)
    plain = random.standard_normal((3, 1003)).astype(np.float32)
    noise = (random.standard_normal(plain.shape) * 1e-4).astype(np.float32)
    special = np.array([1.0, np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    return {
        "equal": [(plain, plain.copy())],
        "close": [(plain + noise, plain)],
        "several samples": [(plain + noise, plain), (plain[:2] - noise[:2], plain[:2])],
        "far": [(plain + 1000 * noise, plain)],
        "another order of scores": [(plain[:, ::-1].copy(), plain)],
        "doubles of every block size": [
            (values * (1 + 1e-9), values)
            for values in (random.standard_normal(count) for count in (1, 7, 8, 9, 127, 128, 129, 136, 1000, 65537))
        ],
        "half precision": [((plain + noise).astype(np.float16), plain.astype(np.float16))],
        "64-bit integers": [(random.integers(-(2**62), 2**62, (4, 9)), random.integers(-(2**62), 2**62, (4, 9)))],
        "bytes": [(np.arange(250, dtype=np.uint8), np.arange(1, 251, dtype=np.uint8))],
        "booleans": [(np.array([True, False]), np.array([True, True]))],
        "a scalar": [(np.array(1.5, np.float32), np.array(1.0, np.float32))],
        "nothing": [(np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32))],
        "all zero": [(np.zeros(5, np.float32), np.zeros(5, np.float32))],
        "special values": [(special, special.copy())],
        "close to special values": [(special + np.float32(1e-4), special)],
        "scores that are no numbers": [
            (
                np.array([[1, np.nan, 2], [3, 2, 1]], np.float32),
                np.array([[1, np.nan, 9], [3, 2.5, 1]], np.float32),
            )
        ],
        "NaN elsewhere": [(special[::-1].copy(), special)],
        "infinity elsewhere": [(np.array([1, np.inf], np.float32), np.array([1, -np.inf], np.float32))],
        "infinity in place of a number": [(np.array([np.inf], np.float32), np.array([1], np.float32))],
        "another shape": [(plain[:2], plain)],
        "another type": [(plain.astype(np.float64), plain)],
        "strings": [(np.array(["a", "é\u2028"], object), np.array(["a", "é\u2028"], object))],
        "other strings": [(np.array(["a", "c"], object), np.array(["a", "b"], object))],
    }


def measure(metrics: ModuleType, name: str, pairs: list[Pair]) -> dict[str, Any]:
    """A case with the figures that the Python loader finds."""
    figures = metrics.OutputFigures("y")
    for at, (actual, reference) in enumerate(pairs):
        figures.add(actual, reference, TOLERANCE, f"sample {str(at)!r}")
    return {
        "name": name,
        "tolerance": TOLERANCE,
        "samples": [{"actual": store(actual), "reference": store(reference)} for actual, reference in pairs],
        "figures": figures.to_json(),
        "faulty": figures.find_fault(TOLERANCE) is not None,
    }


def store(array: np.ndarray) -> dict[str, Any]:
    """An array as JSON."""
    shape = {"dims": list(array.shape)}
    if array.dtype == object:
        return {"type": "str", "values": list(array.reshape(-1)), **shape}
    return {"type": array.dtype.name, "base64": base64.b64encode(array.tobytes()).decode("ascii"), **shape}
