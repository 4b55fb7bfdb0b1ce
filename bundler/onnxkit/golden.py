"""The golden set on disk: `index.json` and one file for each tensor."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypedDict

from bundler.model.codec import conforms, decode, encode, parse_json
from bundler.model.errors import StageError
from bundler.model.paths import real_path
from bundler.model.reference import ReferenceFigures
from bundler.model.signature import Port, Signature
from bundler.onnxkit.value_files import Value, ValueWriter, read_value
from bundler.support.remembered import read_bounded

SCHEMA: Final = 2
INDEX: Final = "index.json"
MAX_INDEX_BYTES: Final = 256 << 20
"""Maximum size of an index, which contains values of text and maps."""


class _Entry(TypedDict):
    name: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]


class _Index(TypedDict):
    synthetic: bool
    seed: int | None
    unstable_outputs: tuple[str, ...]
    samples: tuple[_Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One call of the model: its inputs and, once recorded, its outputs."""

    name: str
    inputs: Mapping[str, Value]
    outputs: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenSet:
    """`seed` is None for a user's samples; `unstable_outputs` differ between two runs of the same model. Where there is
    `state`, which names the output that each of its inputs is in the next step, the samples are steps of one stream.
    """

    synthetic: bool
    seed: int | None
    unstable_outputs: tuple[str, ...]
    folder: Path
    entries: tuple[Mapping[str, Any], ...]
    references: Mapping[str, ReferenceFigures] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Sample]:
        return self.first(len(self))

    def first(self, count: int) -> Iterator[Sample]:
        """The first samples, at most `count`, one at a time in memory."""
        return map(self.sample, range(min(count, len(self))))

    def sample(self, index: int) -> Sample:
        """Load one sample; the set may be larger than memory. Raises `StageError`."""
        entry = self.entries[index]
        try:
            inputs = {name: read_value(self.folder, value) for name, value in entry["inputs"].items()}
            outputs = {name: read_value(self.folder, value) for name, value in entry["outputs"].items()}
        except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
            raise _altered(self.folder) from error
        return Sample(name=entry["name"], inputs=inputs, outputs=outputs)


def write_sample(folder: Path, index: int, sample: Sample, signature: Signature) -> dict[str, Any]:
    """Store one sample's values in `folder` and return its entry for the index."""
    inputs, outputs = (ValueWriter(folder, f"{index:03d}", prefix) for prefix in ("in", "out"))
    return {
        "name": sample.name,
        "inputs": _write_values(inputs, sample.inputs, signature.inputs),
        "outputs": _write_values(outputs, sample.outputs, signature.outputs),
    }


def _write_values(writer: ValueWriter, values: Mapping[str, Value], ports: Sequence[Port]) -> dict[str, Any]:
    kinds = {port.name: port.type for port in ports}
    return {name: writer.write(value, kinds[name]) for name, value in values.items()}


def write_index(
    folder: Path,
    entries: Sequence[Mapping[str, Any]],
    references: Sequence[ReferenceFigures] = (),
    *,
    seed: int | None,
    unstable: Sequence[str],
    state: Mapping[str, str] | None = None,
) -> None:
    """Write `index.json`, last: a set without it is incomplete."""
    index = {
        "schema": SCHEMA,
        "synthetic": seed is not None,
        "seed": seed,
        "unstable_outputs": list(unstable),
        **({"state": dict(state)} if state else {}),
        # A loader needs no doubts about an output: they are reported when the bundle is built.
        "outputs": [
            {name: value for name, value in encode(reference).items() if name != "doubts"} for reference in references
        ],
        "samples": list(entries),
    }
    text = json.dumps(index, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    (folder / INDEX).write_text(text + "\n", encoding="ascii")


def read_golden(path: Path) -> GoldenSet:
    """The set whose `index.json` is at `path`; its tensors are read sample by sample. Raises `StageError`."""
    try:
        index = parse_json(read_bounded(real_path(path), MAX_INDEX_BYTES))
        if not conforms(_Index, index) or not conforms(tuple[ReferenceFigures, ...], index.get("outputs", [])):
            raise ValueError("it is not the index of a golden set")  # noqa: TRY301 - reported as those below
        if not conforms(Mapping[str, str], index.get("state", {})):
            raise ValueError("its state is none")  # noqa: TRY301 - reported as those below
        return GoldenSet(
            synthetic=index["synthetic"],
            seed=index["seed"],
            unstable_outputs=tuple(index["unstable_outputs"]),
            folder=path.parent,
            entries=tuple(index["samples"]),
            state=index.get("state", {}),
            references={item["name"]: decode(ReferenceFigures, item) for item in index.get("outputs", ())},
        )
    except (OSError, ValueError) as error:
        raise _altered(path.parent) from error


def _altered(folder: Path) -> StageError:
    hint = "the cache was changed; run `bundler cache clear` and build again"
    return StageError(f"the golden set in {folder.name} cannot be read", hint=hint)
