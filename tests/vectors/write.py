"""Write the conformance vectors: the cases below, with the figures that the stages find."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from bundler.model.codec import encode
from bundler.model.gates import check_gate, resolve_tolerance
from bundler.model.reference import ReferenceFigures
from bundler.model.results import Comparison, OutputComparison
from bundler.model.runtime import Gate, Tolerance
from bundler.onnxkit.metrics import Tally
from bundler.onnxkit.reference_tally import ReferenceTally

FIGURES = Path(__file__).parent / "figures.json"
NAMES = (
    *("equal", "max_absolute", "mean_absolute", "max_relative", "cosine"),
    *("sqnr_db", "low_sqnr_db", "worst_sqnr_db", "top1_agreement", "agreement"),
)
"""The figures that every loader has."""

TOLERANCES = {
    "strict": Tolerance(
        absolute=1e-3,
        relative=1e-3,
        sqnr_db=60.0,
        low_sqnr_db=50.0,
        worst_sqnr_db=45.0,
        cosine=0.9999,
        top1_agreement=1.0,
    ),
    "of a step with a loss": Tolerance(sqnr_db=20.0, agreement=0.75),
    "without any limit": Tolerance(agreement=0.0),
    "not judged": Tolerance(absolute=0.0, relative=0.0, sqnr_db=200.0, judged=False),
    "of the element alone": Tolerance(absolute=0.0, relative=0.01),
}
"""As a profile asks for them; `resolve_tolerance` makes of each what ships."""

RELATIVE = 1e-12
"""How far a figure may be from the expected one, as a share of it: two logarithms, sums in another order."""

Pair = tuple[np.ndarray, np.ndarray]


def cases() -> dict[str, list[Pair]]:
    """Pairs of an output and its reference, one for each sample. A name that begins with `quantity` counts integers as
    numbers.
    """
    random = np.random.default_rng(7)
    plain = random.standard_normal((3, 251)).astype(np.float32)
    noise = (random.standard_normal(plain.shape) * 1e-4).astype(np.float32)
    special = np.array([1.0, np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    scores = plain[:, :250].reshape(3, 25, 10)
    large = random.integers(-(2**62), 2**62, (2, 4, 9))
    return {
        "equal": [(plain, plain)],
        "close": [(plain + noise, plain)],
        "several samples": [(plain + noise, plain), (plain[:2] - noise[:2], plain[:2])],
        "far": [(plain + 1000 * noise, plain)],
        "another order of scores": [(plain[:, ::-1], plain)],
        "doubles of every block size": [
            (values * (1 + 1e-9), values)
            for values in (random.standard_normal(count) for count in (1, 7, 8, 9, 127, 128, 129, 136, 1000))
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
        "scores of many rows": [(scores + np.float32(0.05), scores)],
        "a constant": [(np.full(5, 3.1, np.float32), np.full(5, 3, np.float32))],
        "half precision": [((plain + noise).astype(np.float16), plain.astype(np.float16))],
        "64-bit integers": [(large[0], large[1])],
        "bytes": [(np.arange(250, dtype=np.uint8), np.arange(1, 251, dtype=np.uint8))],
        "quantity of bytes": [(np.arange(250, dtype=np.uint8), np.arange(1, 251, dtype=np.uint8))],
        "quantity that is far off": [(np.arange(0, 500, 2), np.arange(250))],
        "indices of which one differs": [(np.array([[1, 2, 3, 4]]), np.array([[1, 2, 7, 4]]))],
        "some strings": [(np.array(list("abcd"), object), np.array(list("abxx"), object))],
        "noise of 20 dB": [(plain * np.float32(1.09), plain)],
        "booleans": [(np.array([True, False]), np.array([True, True]))],
        "a scalar": [(np.array(1.5, np.float32), np.array(1.0, np.float32))],
        "nothing": [(np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32))],
        "all zero": [(np.zeros(5, np.float32), np.zeros(5, np.float32))],
        "special values": [(special, special)],
        "close to special values": [(special + np.float32(1e-4), special)],
        "scores that are no numbers": [
            (
                np.array([[1, np.nan, 2], [3, 2, 1]], np.float32),
                np.array([[1, np.nan, 9], [3, 2.5, 1]], np.float32),
            )
        ],
        "NaN elsewhere": [(special[::-1], special)],
        "infinity elsewhere": [(np.array([1, np.inf], np.float32), np.array([1, -np.inf], np.float32))],
        "infinity in place of a number": [(np.array([np.inf], np.float32), np.array([1], np.float32))],
        "another shape": [(plain[:2], plain)],
        "another type": [(plain.astype(np.float64), plain)],
        "strings": [(np.array(["a", "é\u2028"], object), np.array(["a", "é\u2028"], object))],
        "other strings": [(np.array(["a", "c"], object), np.array(["a", "b"], object))],
    }


def make_case(name: str, pairs: list[Pair]) -> dict[str, Any]:
    """A case as the file holds it."""
    known, found = measure(pairs, quantity=name.startswith("quantity"))
    return {
        "name": name,
        "samples": [{"actual": store(actual), "reference": store(reference)} for actual, reference in pairs],
        "reference": encode(known),
        "mismatch": found.mismatch is not None,
        "figures": None if found.mismatch else {name: getattr(found, name) for name in NAMES},
        "gates": [
            {"name": kind, "tolerance": encode(resolve_tolerance(asked, known)), "within": is_within(found, asked)}
            for kind, asked in TOLERANCES.items()
        ],
    }


def measure(pairs: list[Pair], *, quantity: bool) -> tuple[ReferenceFigures, OutputComparison]:
    """What the stages find: of the references by themselves, and of the pairs."""
    known, found = ReferenceTally(name="y", quantity=quantity), Tally(name="y", quantity=quantity)
    for actual, reference in pairs:
        known.add(reference)
        found.add(reference, actual)
    return known.figures(), found.result(known.figures())


def is_within(found: OutputComparison, tolerance: Tolerance) -> bool:
    """Whether the stages' gate lets it pass."""
    return not check_gate(Comparison(outputs=(found,), samples=1), Gate(default=tolerance))


def store(array: np.ndarray) -> dict[str, Any]:
    """A tensor as the file holds it."""
    dims = list(array.shape)
    if array.dtype == object:
        return {"type": "str", "dims": dims, "values": list(array.reshape(-1))}
    raw = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return {"type": array.dtype.name, "dims": dims, "base64": base64.b64encode(raw).decode("ascii")}


def read(stored: dict[str, Any]) -> np.ndarray:
    """The tensor that `store` was given."""
    if "values" in stored:
        return np.array(stored["values"], object).reshape(stored["dims"])
    data = np.frombuffer(base64.b64decode(stored["base64"]), np.dtype(stored["type"]).newbyteorder("<"))
    return data.astype(stored["type"]).reshape(stored["dims"])


def read_cases() -> list[dict[str, Any]]:
    """All cases, their tensors read."""
    found: list[dict[str, Any]] = json.loads(FIGURES.read_text("utf-8"))
    for case in found:
        case["samples"] = [{side: read(stored) for side, stored in sample.items()} for sample in case["samples"]]
    return found


def find_differences(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The figures that are not the expected ones, with both."""
    return {name: (found[name], value) for name, value in wanted.items() if not _agree(found[name], value)}


def _agree(found: Any, wanted: Any) -> bool:
    if isinstance(found, float) and isinstance(wanted, (int, float)):
        return math.isclose(found, wanted, rel_tol=RELATIVE)
    return bool(found == wanted)


if __name__ == "__main__":
    lines = (json.dumps(make_case(name, pairs), ensure_ascii=True) for name, pairs in cases().items())
    FIGURES.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")
