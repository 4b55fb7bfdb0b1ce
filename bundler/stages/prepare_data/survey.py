"""Properties of the samples as a whole: equal ones, constant ones, those without a range for calibration."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from bundler.model.errors import UsageError
from bundler.model.stage import Note
from bundler.onnxkit.digests import digest_values
from bundler.onnxkit.elements import element_of_array, to_wide
from bundler.onnxkit.equality import is_float
from bundler.onnxkit.fitting import describe_non_finite
from bundler.onnxkit.golden import read_golden
from bundler.onnxkit.value_files import Value
from bundler.stages.prepare_data.folders import list_some


def held_out_digests(index: Path | None) -> frozenset[bytes]:
    """The digests of a prepared set, read sample by sample."""
    if index is None:
        return frozenset()
    return frozenset(digest_values(sample.inputs) for sample in read_golden(index))


class Survey:
    """Collects what `facts` and `notes` report at the end. `fixed` are inputs that are constant by declaration."""

    def __init__(self, fixed: Collection[str]) -> None:
        self._fixed = frozenset(fixed)
        self._ranges: dict[str, tuple[float, float]] = {}
        self._digests: set[bytes] = set()
        self._constant: list[str] = []
        self._infinite: list[str] = []
        self._count = 0

    def add(self, name: str, inputs: Mapping[str, Value], digest: bytes) -> None:
        """Add one sample."""
        self._count += 1
        self._digests.add(digest)
        ranges = {key: found for key, value in inputs.items() if (found := _range(value)) is not None}
        flat = [ranges[key] for key in ranges if key not in self._fixed and _is_field(inputs[key])]
        if flat and all(least == most for least, most in flat):
            self._constant.append(name)
        if not all(np.isfinite(pair).all() for pair in ranges.values()):
            self._infinite.append(f"{name}: {', '.join(describe_non_finite(inputs))}")
        for key, (least, most) in ranges.items():
            was = self._ranges.get(key, (least, most))
            self._ranges[key] = (min(was[0], least), max(was[1], most))

    @property
    def constant_inputs(self) -> list[str]:
        """Inputs that hold one value in all samples without being declared constant."""
        found = (key for key, (least, most) in self._ranges.items() if least == most and key not in self._fixed)
        return list(found)

    @property
    def distinct(self) -> int:
        """Number of different samples."""
        return len(self._digests)

    @property
    def constant_samples(self) -> int:
        """Number of samples that hold one value only."""
        return len(self._constant)

    def check_range(self) -> None:
        """Raise `UsageError` when every input holds one value in all samples: they have no range."""
        varying = [key for key in self._ranges if key not in self._fixed]
        if varying and len(self.constant_inputs) == len(varying):
            details = tuple(f"{key!r} is {self._ranges[key][0]:g} everywhere" for key in varying)
            raise UsageError(
                "cannot calibrate with these samples: every value in them is the same",
                details=details,
                hint="give samples like those of real use; constant ones have no range",
            )

    def notes(self) -> tuple[Note, ...]:
        """Warnings for unusual samples that can still be used."""
        notes = []
        if self._count > 1 and len(self._digests) == 1:
            text = f"all {self._count} samples are equal and count as one"
            notes.append(Note(text=text, level="warning"))
        texts = []
        if self._constant:
            share = f"{len(self._constant)} of {self._count}"
            texts.append(f"{share} samples hold one value only: {list_some(self._constant)}")
        if self._infinite:
            share = f"{len(self._infinite)} of {self._count}"
            texts.append(f"{share} samples hold NaN or infinity ({list_some(self._infinite)})")
        return (*notes, *(Note(text=text, level="warning", names_samples=True) for text in texts))


def _is_field(value: Value) -> bool:
    return isinstance(value, np.ndarray) and value.size > 1 and is_float(value)


def _range(value: Value) -> tuple[float, float] | None:
    """Minimum and maximum of a tensor; None if it is empty, complex, or not numeric."""
    if not isinstance(value, np.ndarray) or not value.size or value.dtype.kind in "OUSTMmc":
        return None
    plain = to_wide(value) if element_of_array(value).foreign else value
    return float(plain.min()), float(plain.max())
