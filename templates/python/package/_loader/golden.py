"""The golden set: inputs and outputs recorded from the original model, and the test against them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .config import Component, Port, Variant
from .errors import REBUILD, IntegrityError, SelfTestError
from .integrity import leads_out
from .metrics import OutputFigures, Reference, Tolerance
from .storage import STORAGE, decode

Run = Callable[[tuple[Any, ...]], list[Any]]

_NON_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class Sample:
    """One recorded call: values by the model's own names."""

    __slots__ = ("inputs", "name", "outputs")

    def __init__(self, name: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        self.name = name
        self.inputs = inputs
        self.outputs = outputs


class GoldenSet:
    """The recorded samples, read one at a time. `synthetic` says that the inputs were generated from a seed. Where
    there is `state` (inputs, and the outputs that they are in the next step), the samples are the steps of a stream.
    """

    def __init__(self, component: Component) -> None:
        self._folder = os.path.join(component.payload, component.golden)
        _check_digest(self._folder, component.golden_digest)
        with open(os.path.join(self._folder, "index.json"), "rb") as stream:
            self._index = json.load(stream)
        self.synthetic: bool = self._index["synthetic"]
        self.state: dict[str, str] = self._index.get("state", {})

    def reference(self, name: str) -> Reference:
        """The figures of one output's recorded values."""
        return Reference(next((known for known in self._index["outputs"] if known["name"] == name), None))

    def __len__(self) -> int:
        return len(self._index["samples"])

    def __iter__(self) -> Iterator[Sample]:
        for entry in self._index["samples"]:
            yield Sample(entry["name"], self._read_all(entry["inputs"]), self._read_all(entry["outputs"]))

    def _read_all(self, values: dict[str, Any]) -> dict[str, Any]:
        return {name: self._read(value) for name, value in values.items()}

    def _read(self, value: dict[str, Any]) -> Any:
        kind = value["kind"]
        if kind == "none":
            return None
        if kind == "sequence":
            return [self._read(item) for item in value["items"]]
        if kind == "map":
            return dict(zip(value["keys"], [_read_number(item) for item in value["values"]], strict=True))
        return self._read_tensor(value)

    def _read_tensor(self, value: dict[str, Any]) -> np.ndarray:
        if value["type"] == "str":
            return np.array(value["values"], dtype=object).reshape(value["shape"])
        stored = np.dtype(STORAGE.get(value["type"], (value["type"],))[0]).newbyteorder("<")
        if leads_out(value["file"]):
            raise IntegrityError("the golden set names a file outside", why=value["file"], hint=REBUILD)
        tensor = np.fromfile(os.path.join(self._folder, value["file"]), dtype=stored)
        return tensor.astype(stored.newbyteorder("="), copy=False).reshape(value["shape"])


class SelfTest:
    """The outcome: figures for each output, and outputs out of tolerance (`faults`). `unjudged` says by output why its
    comparison could not have failed: it differs from run to run, is constant in the golden set, or has no limits.
    """

    def __init__(
        self,
        samples: int,
        outputs: list[OutputFigures],
        faults: list[str],
        *,
        synthetic: bool,
        unjudged: dict[str, str] | None = None,
    ) -> None:
        self.samples = samples
        self.outputs = outputs
        self.faults = faults
        self.synthetic = synthetic
        self.unjudged = unjudged or {}

    @property
    def passed(self) -> bool:
        """Whether every output of every sample is within tolerance."""
        return not self.faults

    def raise_on_failure(self) -> None:
        """Raises `SelfTestError` with all faults."""
        if self.faults:
            raise SelfTestError(
                "the model does not reproduce its golden set here",
                why="; ".join(self.faults),
                hint="report it to the author of the bundle, with the output of `info` on this machine",
            )


def test_model(component: Component, variant: Variant, run: Run) -> SelfTest:
    """Run every sample and compare the outputs by the gate of `variant`.

    Raises `IntegrityError` when the golden set was altered.
    """
    golden = GoldenSet(component)
    figures = {port.name: OutputFigures(port.name, golden.reference(port.name)) for port in component.outputs}
    held: dict[str, Any] = {}
    for sample in golden:
        given = {**sample.inputs, **held}  # after the first step of a stream, the model's own state
        results = run(tuple(given.get(port.name) for port in component.inputs))
        outputs = {port.name: value for port, value in zip(component.outputs, results, strict=True)}
        held = {taken: outputs[name] for taken, name in golden.state.items()}
        for port, actual in zip(component.outputs, results, strict=True):
            tolerance = variant.tolerance(port.name)
            _compare(component, port, tolerance, figures[port.name], actual=actual, sample=sample)
    if not len(golden):
        raise IntegrityError("the golden set has no samples", hint=REBUILD)
    faults = [(name, figure.find_fault(_tolerance(component, variant, name))) for name, figure in figures.items()]
    return SelfTest(
        len(golden),
        list(figures.values()),
        [f"output {name!r}: {fault}" for name, fault in faults if fault is not None],
        synthetic=golden.synthetic,
        unjudged={name: why for name, figure in figures.items() if (why := _find_unjudged(variant, figure))},
    )


def _find_unjudged(variant: Variant, figure: OutputFigures) -> str:
    judged = variant.tolerance(figure.name).get("judged", True)
    return figure.reference.unjudged if judged else "it has no limits"


test_model.__test__ = False  # type: ignore[attr-defined]  # not a test case, whatever a collector thinks of its name


def _compare(
    component: Component, port: Port, tolerance: Tolerance, figure: OutputFigures, *, actual: Any, sample: Sample
) -> None:
    if figure.name not in sample.outputs:
        figure.refuse(f"sample {sample.name!r} has no recorded value of it")
        return
    reference = sample.outputs[figure.name]
    if figure.name in component.unstable_outputs:
        actual = _shape_only(actual, reference)
    if port.kind == "tensor" and port.element_type in STORAGE:
        actual, reference = decode(actual, port.element_type), decode(reference, port.element_type)
    figure.add(actual, reference, tolerance, f"sample {sample.name!r}")


def _shape_only(actual: Any, reference: Any) -> Any:
    """For a random output only type and shape are compared: if these match, the reference replaces it."""
    same_kind = type(actual) is type(reference)
    if not isinstance(reference, np.ndarray):
        return reference if same_kind else actual
    return reference if same_kind and (actual.shape, actual.dtype) == (reference.shape, reference.dtype) else actual


def _tolerance(component: Component, variant: Variant, name: str) -> Tolerance:
    return {} if name in component.unstable_outputs else variant.tolerance(name)


def _read_number(value: Any) -> Any:
    return _NON_FINITE.get(value, value) if isinstance(value, str) else value


def _check_digest(folder: str, digest: str) -> None:
    """The digest is that of the JSON list of all files with size and SHA-256, sorted by path."""
    records = sorted(_record_files(folder), key=lambda record: record["path"])
    text = json.dumps(records, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if found != digest:
        raise IntegrityError(
            f"the golden set in {folder} was altered", why=f"digest {found}, not {digest}", hint=REBUILD
        )


def _record_files(folder: str) -> Iterator[dict[str, Any]]:
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            with open(path, "rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            relative = os.path.relpath(path, folder).replace(os.sep, "/")
            yield {"path": relative, "size": os.path.getsize(path), "sha256": digest}
