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

from bundler.model.codec import encode
from bundler.model.gates import check_gate, resolve_tolerance
from bundler.model.reference import ReferenceFigures
from bundler.model.results import Comparison
from bundler.model.runtime import Gate, Tolerance
from bundler.onnxkit.metrics import Tally
from bundler.onnxkit.reference_tally import ReferenceTally
from bundler.support.data import data_root

TESTS = Path(__file__).parents[2] / "javascript" / "loader"
TOLERANCES: dict[str, dict[str, Any]] = {
    "strict": encode(
        Tolerance(
            absolute=1e-3,
            relative=1e-3,
            sqnr_db=60.0,
            low_sqnr_db=50.0,
            worst_sqnr_db=45.0,
            cosine=0.9999,
            top1_agreement=1.0,
        ),
    ),
    "of a step with a loss": encode(Tolerance(sqnr_db=20.0, agreement=0.75)),
    "without any limit": encode(Tolerance(agreement=0.0)),
    "not judged": encode(Tolerance(absolute=0.0, relative=0.0, sqnr_db=200.0, judged=False)),
    "of the element alone": encode(Tolerance(absolute=0.0, relative=0.01)),
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
    figures.write_text(
        json.dumps([measure(metrics, name, pairs, kind) for name, pairs in cases().items() for kind in TOLERANCES])
    )
    command = [node, "--test", *map(str, sorted(TESTS.glob("*.test.js")))]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"FIGURES": str(figures)}
    )
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if "not ok" in line) + done.stderr
    assert "# skipped 0" in done.stdout


@pytest.mark.parametrize("kind", TOLERANCES)
def test_a_loader_judges_as_the_build_did(metrics: ModuleType, kind: str) -> None:
    """What passed the gate of the build is not refused on the device, and the other way round."""
    judged = {}
    for name, pairs in cases().items():
        tally = Tally(name="y")
        for actual, reference in pairs:
            tally.add(reference, actual)
        comparison = Comparison(outputs=(tally.result(describe(pairs)),), samples=len(pairs))
        failures = check_gate(comparison, Gate(default=Tolerance(**TOLERANCES[kind])))
        judged[name] = (bool(failures), measure(metrics, name, pairs, kind)["faulty"])
    assert {name: verdicts for name, verdicts in judged.items() if len(set(verdicts)) > 1} == {}


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
        "an offset that hides the noise": [(plain + np.float32(1000.1), plain + np.float32(1000))],
        "one sample of another scale": [
            (values + noise[:1] * 3000, values) for values in (plain[:1] * 1000, plain[1:2], plain[2:], plain[:1])
        ],
        "scores that tie": [
            (np.array([[1, 3, 3], [2, 1, 0]], np.float32), np.array([[1, 3.000001, 3], [1, 2, 0]], np.float32))
        ],
        "scores with infinity": [
            (np.array([[np.inf, 1.5], [1, -np.inf]], np.float32), np.array([[np.inf, 1], [1, -np.inf]], np.float32))
        ],
        "scores of many rows": [(plain[:, :1000].reshape(3, 100, 10) + 0.05, plain[:, :1000].reshape(3, 100, 10))],
        "a constant": [(np.full(5, 3.1, np.float32), np.full(5, 3, np.float32))],
        "half precision": [((plain + noise).astype(np.float16), plain.astype(np.float16))],
        "64-bit integers": [(random.integers(-(2**62), 2**62, (4, 9)), random.integers(-(2**62), 2**62, (4, 9)))],
        "bytes": [(np.arange(250, dtype=np.uint8), np.arange(1, 251, dtype=np.uint8))],
        "indices of which one differs": [(np.array([[1, 2, 3, 4]]), np.array([[1, 2, 7, 4]]))],
        "some strings": [(np.array(list("abcd"), object), np.array(list("abxx"), object))],
        "noise of 20 dB": [(plain * np.float32(1.09), plain)],
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


def measure(metrics: ModuleType, name: str, pairs: list[Pair], kind: str) -> dict[str, Any]:
    """A case with the figures that the Python loader finds."""
    known = describe(pairs)
    tolerance = encode(resolve_tolerance(Tolerance(**TOLERANCES[kind]), known))
    figures = metrics.OutputFigures("y", metrics.Reference(encode(known)))
    for at, (actual, reference) in enumerate(pairs):
        figures.add(actual, reference, tolerance, f"sample {str(at)!r}")
    return {
        "name": f"{name}, tolerance {kind}",
        "tolerance": tolerance,
        "reference": encode(known),
        "samples": [{"actual": store(actual), "reference": store(reference)} for actual, reference in pairs],
        "figures": figures.to_json(),
        "faulty": figures.find_fault(tolerance) is not None,
    }


def describe(pairs: list[Pair]) -> ReferenceFigures:
    """What the references say by themselves, as a golden set's index has it."""
    known = ReferenceTally(name="y")
    for _, reference in pairs:
        known.add(reference)
    return known.figures()


def store(array: np.ndarray) -> dict[str, Any]:
    """An array as JSON."""
    shape = {"dims": list(array.shape)}
    if array.dtype == object:
        return {"type": "str", "values": list(array.reshape(-1)), **shape}
    return {"type": array.dtype.name, "base64": base64.b64encode(array.tobytes()).decode("ascii"), **shape}
