"""Prepare a model for fusion: the runtime folds constants, and the nodes get a fixed order."""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto, TensorProto

from bundler.onnxkit.canonical.writing import canonicalize
from bundler.onnxkit.sessions import SessionSettings, save_through_session
from bundler.onnxkit.structure import has_external_data, iterate_tensors
from bundler.stages.fuse_transformers.spec import Options

EMBEDDED_LIMIT = 1 << 30
"""Size of a model in bytes from which its weights go to an external file: fusion may copy some."""
EXTERNAL_THRESHOLD = 1024
"""Size of a tensor in bytes from which it goes there."""
_ALWAYS_OFF = ("ConstantSharing", "MatMulAddFusion")
"""The library itself disables the first (1.31, `optimize_model`). The second makes Gemm between two Reshapes of every
projection with a fixed shape, and then the fusers find no attention at all.
"""
_OFF_ABOVE_BASIC = ("MatMulScaleFusion", "MatmulTransposeFusion", "GemmActivationFusion", "BiasSoftmaxFusion")
"""Optimisers above basic that hide patterns from the fusers; the library itself disables these as well."""
_HALF = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def choose_level(structure: ModelProto, options: Options, default: str) -> str:
    """The runtime's optimisation level before fusion: as requested, or the library's own for the type. A model in half
    precision is not optimised: the CPU's optimiser would insert casts around its operators.
    """
    if options.level != "default":
        return options.level
    return "none" if any(tensor.data_type in _HALF for tensor in iterate_tensors(structure)) else default


def prepare_model(source: Path, structure: ModelProto, folder: Path, level: str) -> Path:
    """Write the input of the fusers to `folder`. Raises `StageError`."""
    saved, target = source, folder / "prepared.onnx"
    if level != "none":
        saved = folder / "optimised.onnx"
        _optimise(source, saved, level, external=has_external_data(structure) or source.stat().st_size > EMBEDDED_LIMIT)
    # The runtime saves graphs without a fixed order, on which the fusers' results may depend.
    canonicalize(
        saved, target, source=saved.parent, external_threshold=EXTERNAL_THRESHOLD, external_minimum=EMBEDDED_LIMIT
    )
    return target


def _optimise(source: Path, saved: Path, level: str, *, external: bool) -> None:
    entries = {"session.disable_prepacking": "1"}
    if external:
        entries["session.optimized_model_external_initializers_file_name"] = f"{saved.name}.data"
        entries["session.optimized_model_external_initializers_min_size_in_bytes"] = str(EXTERNAL_THRESHOLD)
    settings = SessionSettings(
        session={"graph_optimization_level": level, "enable_cpu_mem_arena": False},
        session_config=entries,
        disabled_optimizers=(*_ALWAYS_OFF, *(_OFF_ABOVE_BASIC if level == "extended" else ())),
    )
    save_through_session(source, saved, settings)
