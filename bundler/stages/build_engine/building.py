"""Read a model with TensorRT's parser, and build one engine for several devices. No GPU and no driver is needed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from onnx import ModelProto

from bundler.model.errors import StageError
from bundler.stages.build_engine.profiles import Shapes, add_profile
from bundler.workbench.placement_facts import LeftNode, left_node, list_left, tidy, tidy_lines

_ASSERTION: Final = re.compile(r'^Assertion failed: |(?<=[^"]): "|" *$|" *\.$')
_NO_OPERATOR: Final = ("false", "Plugin not found")
_NO_TYPE: Final = "convertDtype(onnxDtype"
_NARROW: Final = re.compile(r"Turing|SM75|FP32 GEMM")
_MAXIMUM: Final = 200
"""Messages of the log that are kept."""


@dataclass(slots=True)
class Built:
    """An engine, and how dynamic inputs are bounded in it. `tf32`: products of 32-bit floats are rounded to that."""

    engine: Any
    profiles: dict[str, list[list[int]]]
    tf32: bool


@dataclass(slots=True)
class Journal:
    """What TensorRT says while it works: errors and warnings, never on the screen."""

    lines: list[str] = field(default_factory=list)

    def logger(self, library: Any) -> Any:
        """A logger that the library takes, which writes here."""
        kept = {library.ILogger.Severity.INTERNAL_ERROR, library.ILogger.Severity.ERROR}

        class Logger(library.ILogger):  # type: ignore[misc]
            def __init__(self) -> None:
                library.ILogger.__init__(self)

            def log(_, severity: Any, text: str) -> None:  # noqa: N805 - `self` is the journal's
                if severity in kept and len(self.lines) < _MAXIMUM:
                    self.lines.append(text)

        return Logger()


def build_engine(library: Any, source: Path, model: ModelProto, names: Mapping[str, str], shapes: Shapes) -> Built:
    """An engine of the model at `source`, whose structure is `model`, for the devices `names` (the library's, by ours).

    Raises `StageError` for a model that TensorRT cannot take, with the nodes that it stumbles over.
    """
    journal = Journal()
    builder = library.Builder(journal.logger(library))
    network = builder.create_network(0)
    _parse(library, journal, network, source, model)
    config = builder.create_builder_config()
    profiles = add_profile(builder, config, network, shapes)
    config.num_compute_capabilities = len(names)
    for index, name in enumerate(names.values()):
        config.set_compute_capability(library.ComputeCapability.__members__[name], index)
    engine = builder.build_serialized_network(network, config)
    if engine is None or not engine.nbytes:
        raise _unbuildable(journal, tuple(names))
    return Built(engine=engine, profiles=profiles, tf32=bool(config.get_flag(library.BuilderFlag.TF32)))


def _parse(library: Any, journal: Journal, network: Any, source: Path, model: ModelProto) -> None:
    parser = library.OnnxParser(network, journal.logger(library))
    if parser.parse_from_file(str(source)) and network.num_outputs:
        return
    errors = [parser.get_error(index) for index in range(parser.num_errors)]
    left = _left_nodes(errors, model)
    others = tidy_lines(_explain(error.desc()) for error in errors if not _node_of(error, model))
    details = (*list_left(left), *others) or tidy_lines(journal.lines) or ("it says nothing of the reason",)
    hint = "TensorRT for RTX takes a whole model or nothing: leave these operators out of the model, or " + (
        "quantise for it: its operators take symmetric int8, per channel (a profile of this provider does so)"
        if any(node.operator in ("QuantizeLinear", "DequantizeLinear") for node in left)
        else "compile on the device, where ONNX Runtime runs the rest on other providers: compile = { here = false }"
    )
    count = f" {len(left)} of its {len(model.graph.node)} nodes" if left else ""
    raise StageError(f"TensorRT for RTX does not take{count or ' this model'}", details=details, hint=hint)


def _left_nodes(errors: Sequence[Any], model: ModelProto) -> tuple[LeftNode, ...]:
    found: dict[int, LeftNode] = {}
    for error in errors:
        node = _node_of(error, model)
        if node is not None:
            found.setdefault(error.node(), left_node(node, _explain(error.desc())))
    return tuple(found.values())


def _node_of(error: Any, model: ModelProto) -> Any:
    """The node of the main graph that an error of the parser is about; None where it is about something else."""
    index = error.node()
    return model.graph.node[index] if 0 <= index < len(model.graph.node) else None


def _explain(text: str) -> str:
    if text.strip() == _NO_OPERATOR[0] or _NO_OPERATOR[1] in text:
        return "it has no such operator"
    if _NO_TYPE in text:
        return "an input is of a type that it lacks, such as text"
    return tidy(_ASSERTION.sub("", text))


def _unbuildable(journal: Journal, devices: tuple[str, ...]) -> StageError:
    narrow = any(_NARROW.search(line) for line in journal.lines)
    hint = (
        "on GPUs of compute capability 7.5 it multiplies matrices in half precision alone: convert the model "
        "(--set precision.method=fp16), or leave 7.5 out"
        if narrow
        else "build for fewer devices, or leave it to the device: compile = { here = false }"
    )
    return StageError(
        f"TensorRT for RTX cannot build an engine of this model for {', '.join(devices)}",
        details=tidy_lines(journal.lines) or ("it says nothing of the reason",),
        hint=hint,
    )
