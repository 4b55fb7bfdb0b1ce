"""Find the nodes where errors of a changed model arise, and whether they reach its outputs.

Both models run on the same samples and output the tensors that they share, a few at a time. An error is noise power
over signal power, which makes errors of tensors comparable; a node adds its output's error minus its inputs'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, ValueInfoProto

from bundler.model.errors import StageError
from bundler.onnxkit.elements import to_wide
from bundler.onnxkit.equality import is_float
from bundler.onnxkit.golden import Sample
from bundler.onnxkit.linked_models import open_structure
from bundler.onnxkit.quantization.tensor_noise import matched_tensors
from bundler.onnxkit.running import RunError, run_session
from bundler.onnxkit.sessions import REFERENCE
from bundler.onnxkit.structure import read_structure
from bundler.onnxkit.value_files import Value

TENSORS_PER_RUN: Final = 48
"""Tensors that are compared in one run: they are all in memory at once."""
MAX_TENSORS: Final = 480
"""Maximum number of compared tensors, evenly spaced over the model."""
MAX_AMPLIFICATION: Final = 4.0
"""Factor by which a node may amplify the noise of its inputs without counting as its source: 6 dB."""
_AMPLIFIED_SHARE: Final = 0.02
_MAX_LOADED_BYTES: Final = 1 << 30
"""Size of a model file in bytes from which its weights are not loaded."""
_MAX_HIDDEN: Final = 8
"""Maximum number of fused nodes to look through; quantisers fuse fewer."""
Report = Callable[[float, str], None]


@dataclass(slots=True)
class Ratio:
    """Noise over signal of all added values; infinite where the changed model's outputs are not finite."""

    signal: float = 0.0
    noise: float = 0.0
    narrowed: bool = False
    """Whether the tensor has another element type in the changed model."""

    def add(self, clean: np.ndarray, noisy: np.ndarray) -> None:
        """Add one sample; places where the original model is not finite are ignored."""
        self.narrowed = self.narrowed or clean.dtype != noisy.dtype
        left, right = to_wide(clean).ravel(), to_wide(noisy).ravel()
        finite = np.isfinite(left)
        left, right = left[finite], right[finite]
        self.signal += float(np.square(np.abs(left)).sum())
        self.noise += float(np.square(np.abs(left - right)).sum()) if np.isfinite(right).all() else math.inf

    @property
    def value(self) -> float:
        """The ratio; 0 without differences."""
        if not self.noise:
            return 0.0
        return self.noise / self.signal if self.signal else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A tensor of the original model and its names in the changed one: where it is computed, and where it is read
    (after a Q/DQ pair; the same name without one).
    """

    name: str
    computed: str
    read: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The errors of one tensor: where it is computed, and where it is read."""

    computed: Ratio = field(default_factory=Ratio)
    read: Ratio = field(default_factory=Ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSource:
    """A tensor whose error arises at `node`. `error` is its noise over signal, `share` the part that
    arises there and reaches an output; `remedy` are the nodes that must keep their precision to avoid it.
    """

    tensor: str
    node: str
    operator: str
    kind: Literal["activation", "weight"]
    error: float
    share: float
    remedy: tuple[str, ...]


def find_probes(source: ModelProto, changed: ModelProto) -> list[Probe]:
    """The tensors that nodes of both models compute, in the order of the original, at most `MAX_TENSORS`."""
    matched = matched_tensors(source, changed)
    present = {name for node in changed.graph.node for name in node.output if name}
    probes = []
    for node in source.graph.node:
        for name in filter(None, node.output):
            computed, read = matched.get(name, (name, name))
            if computed in present and read in present and node.op_type != "Constant":
                probes.append(Probe(name=name, computed=computed, read=read))
    step = math.ceil(len(probes) / MAX_TENSORS) or 1
    return probes[::step]


def measure_probes(
    paths: tuple[Path, Path], probes: Sequence[Probe], samples: Callable[[], Iterable[Sample]], report: Report
) -> dict[str, Measured]:
    """The errors of all probes with floating-point values of one shape, by name. Raises `StageError`."""
    found: dict[str, Measured] = {}
    for start in range(0, len(probes), TENSORS_PER_RUN):
        report(
            start / len(probes), f"tensors {start + 1} to {min(start + TENSORS_PER_RUN, len(probes))} of {len(probes)}"
        )
        batch = probes[start : start + TENSORS_PER_RUN]
        one = open_probed(paths[0], [probe.name for probe in batch])
        other = open_probed(paths[1], [name for probe in batch for name in (probe.computed, probe.read)])
        for sample in samples():
            _take(batch, _run(one, sample), _run(other, sample), found)
    return found


def open_probed(path: Path, names: Iterable[str]) -> onnxruntime.InferenceSession:
    """A session on the model at `path` that also outputs these tensors; large weights stay in their file."""
    small = path.stat().st_size < _MAX_LOADED_BYTES  # some forms of data cannot be linked
    model = onnx.load(path, load_external_data=False) if small else read_structure(path, link=True)
    present = {item.name for item in (*model.graph.output, *model.graph.input)}
    model.graph.output.extend(ValueInfoProto(name=name) for name in dict.fromkeys(names) if name not in present)
    return open_structure(model, path.parent, REFERENCE)


def _run(session: onnxruntime.InferenceSession, sample: Sample) -> Mapping[str, Value]:
    try:
        return run_session(session, sample.inputs)
    except RunError as error:
        raise StageError(f"the model cannot run on the sample {sample.name!r}", details=(str(error),)) from error


def _take(
    probes: Sequence[Probe], clean: Mapping[str, Value], noisy: Mapping[str, Value], found: dict[str, Measured]
) -> None:
    for probe in probes:
        value = _numbers(clean.get(probe.name))
        computed, read = _numbers(noisy.get(probe.computed)), _numbers(noisy.get(probe.read))
        if value is None or computed is None or read is None:
            continue
        if value.shape == computed.shape == read.shape:
            measured = found.setdefault(probe.name, Measured())
            measured.computed.add(value, computed)
            measured.read.add(value, read)


def _numbers(value: Value) -> np.ndarray | None:
    """Floating-point numbers; None for other values."""
    return value if isinstance(value, np.ndarray) and is_float(value) else None


def attribute_error(
    source: ModelProto, changed: ModelProto, measured: Mapping[str, Measured], weights: Mapping[str, float]
) -> list[ErrorSource]:
    """The tensors where errors arise, the worst first. `weights` are errors of weights by name."""
    graph = _Graph(source, changed)
    reach = graph.reach(measured)
    found = [*_attribute_weights(graph, weights, reach), *_attribute_tensors(graph, measured, reach)]
    return sorted((one for one in found if one.share > 0), key=lambda one: (-one.share, -one.error, one.tensor))


def _attribute_tensors(
    graph: _Graph, measured: Mapping[str, Measured], reach: Mapping[str, float]
) -> Iterator[ErrorSource]:
    carried: dict[str, float] = {}
    for node in graph.nodes:
        inherited = max((carried.get(name, 0.0) for name in node.input), default=0.0)
        for name in filter(None, node.output):
            ratios = measured.get(name)
            carried[name] = inherited if ratios is None else ratios.read.value
            if ratios is not None:
                yield from _attribute_tensor(graph, node, name, measured, inherited=inherited, reach=reach[name])


def _attribute_tensor(
    graph: _Graph, node: NodeProto, name: str, measured: Mapping[str, Measured], *, inherited: float, reach: float
) -> Iterator[ErrorSource]:
    """A node that did not change may amplify an error, but is not its source. Of nodes that a quantiser fused, whose
    tensors cannot be measured, the one with the weights is the source.

    Quantisers replace an activation function by a range: then only the read value is comparable.
    """
    ratios = measured[name]
    read = ratios.read.value
    computed = min(ratios.computed.value, read)
    rounded = _excess(read, computed)
    made = _excess(computed, inherited) if ratios.computed.narrowed or graph.is_touched(node) else 0.0
    hidden = graph.hidden(node, measured)
    origin = next((one for one in hidden if graph.has_weight(one)), node)
    names = [origin.name, *(one.name for one in hidden)]
    remedy = names if made >= rounded else [*names, *graph.readers(name)]
    yield ErrorSource(
        tensor=name,
        node=origin.name,
        operator=origin.op_type,
        kind="activation",
        error=read,
        share=min(max(made, rounded), reach),
        remedy=tuple(dict.fromkeys(filter(None, remedy))),
    )


def _attribute_weights(
    graph: _Graph, weights: Mapping[str, float], reach: Mapping[str, float]
) -> Iterator[ErrorSource]:
    for node in graph.nodes:
        for name in node.input:
            if name in weights:
                yield ErrorSource(
                    tensor=name,
                    node=node.name,
                    operator=node.op_type,
                    kind="weight",
                    error=weights[name],
                    share=min(weights[name], max((reach[out] for out in node.output if out), default=0.0)),
                    remedy=(node.name,) if node.name else (),
                )


def _excess(error: float, before: float) -> float:
    """The new part of an error; when that is not several times the earlier error, most of it is amplification."""
    if error <= before or math.isinf(before):
        return 0.0
    return (error - before) * max(_AMPLIFIED_SHARE, 1 - (MAX_AMPLIFICATION - 1) * before / error)


class _Graph:
    """The original model's nodes, and their state in the changed model."""

    def __init__(self, source: ModelProto, changed: ModelProto) -> None:
        self.nodes = list(source.graph.node)
        self._outputs = {item.name for item in source.graph.output}
        self._twins = {name: node for node in changed.graph.node for name in node.output if name}
        self._types = [
            {item.name: (item.data_type, tuple(item.dims)) for item in model.graph.initializer}
            for model in (source, changed)
        ]
        self._makers = {name: node for node in self.nodes for name in node.output if name}
        self._readers: dict[str, list[NodeProto]] = {}
        for node in self.nodes:
            for name in filter(None, node.input):
                self._readers.setdefault(name, []).append(node)

    def readers(self, name: str) -> tuple[str, ...]:
        """Names of the nodes that read a tensor."""
        return tuple(node.name for node in self._readers.get(name, ()))

    def hidden(self, node: NodeProto, measured: Mapping[str, Measured]) -> list[NodeProto]:
        """`node`, and those before it whose outputs could not be measured, the nearest first."""
        found, waiting = [node], [node]
        while waiting and len(found) < _MAX_HIDDEN:
            for name in waiting.pop(0).input:
                maker = self._makers.get(name)
                if maker is not None and name not in measured and maker not in found and maker.op_type != "Constant":
                    found.append(maker)
                    waiting.append(maker)
        return found

    def has_weight(self, node: NodeProto) -> bool:
        """Whether it reads an initializer of more than one dimension."""
        return any(len(self._types[0].get(name, (0, ()))[1]) > 1 for name in node.input)

    def is_touched(self, node: NodeProto) -> bool:
        """Whether the changed model computes the node's outputs in another way."""
        twin = next((self._twins[name] for name in node.output if name in self._twins), None)
        if twin is None or twin.op_type != node.op_type or list(twin.input) != list(node.input):
            return True
        before, after = self._types
        return any(before.get(name) != after.get(name) for name in node.input)

    def reach(self, measured: Mapping[str, Measured]) -> dict[str, float]:
        """How much of each tensor's error reaches an output: the smallest error on the path that keeps the most."""
        reach: dict[str, float] = {}
        for node in reversed(self.nodes):
            for name in filter(None, node.output):
                paths = [reach[out] for reader in self._readers.get(name, ()) for out in reader.output if out in reach]
                on = math.inf if name in self._outputs or not paths else max(paths)
                own = measured[name].read.value if name in measured else math.inf
                reach[name] = min(on, own)
        return reach
