"""Build one engine for several devices and report why TensorRT failed. No GPU and no driver is required."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from onnx import ModelProto

import bundler
from bundler.model.digests import digest_file
from bundler.model.errors import StageError
from bundler.onnxkit.placement_facts import LeftNode, left_node, list_left, tidy, tidy_lines
from bundler.stages.build_engine.profiles import Shapes
from bundler.support.processes import run_process

_CHILD: Final = Path(__file__).with_name("child.py")
_MAX_TRIES: Final = 4
_TIED: Final = "dimensions with this name"
_ASSERTION: Final = re.compile(r"^Assertion failed: ")
_NO_OPERATOR: Final = ("false", "Plugin not found")
_NO_TYPE: Final = "convertDtype(onnxDtype"
_NARROW: Final = re.compile(r"Turing|SM75|FP32 GEMM")


@dataclass(frozen=True, slots=True)
class Built:
    """How dynamic inputs are bounded in an engine. `tf32`: products of 32-bit floats are rounded to TF32; `repeatable`:
    building it again gives the same bytes.
    """

    profiles: Mapping[str, Any]
    tf32: bool
    repeatable: bool


def build_engine(source: Path, model: ModelProto, names: Mapping[str, str], shapes: Shapes, target: Path) -> Built:
    """Write the engine of the model at `source`, whose structure is `model`, for the devices `names` (the library's, by
    ours), to `target`. Raises `StageError` for a model that TensorRT does not support, with the nodes that it rejects.
    """
    profiles = {name: [list(shape) for shape in shapes[name]] for name in sorted(shapes)}
    job = {"model": source.name, "devices": list(names.values()), "profiles": profiles}
    result = _run_child(job, source.parent, target)
    if "refusal" in result:
        refusal = result["refusal"]
        raise StageError(refusal["message"], details=tuple(refusal["details"]), hint=refusal["hint"])
    if "errors" in result:
        raise _unparsable(result["errors"], result["lines"], model)
    if not target.is_file() or not target.stat().st_size:
        raise _unbuildable(result["lines"], tuple(names))
    repeatable = not result["profiles"] or (result["repeatable"] and _build_until_equal(job, source.parent, target))
    return Built(result["profiles"], result["tf32"], repeatable)


def _build_until_equal(job: Mapping[str, Any], folder: Path, target: Path) -> bool:
    """Build again until two engines are equal: on a busy machine threads may run in another order."""
    seen = {digest_file(target)}
    for _ in range(_MAX_TRIES):
        _run_child(job, folder, target)
        digest = digest_file(target)
        if digest in seen:
            return True
        seen.add(digest)
    return False


def _run_child(job: Mapping[str, Any], folder: Path, target: Path) -> Any:
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "result.json"
        lines = (job, {"engine": str(target.absolute()), "result": str(place)})
        done = run_process(
            [sys.executable, "-s", "-P", "-X", "utf8", str(_CHILD), "start"],
            data="".join(f"{json.dumps(line)}\n" for line in lines),
            cwd=folder,
            env=_environment(),
            encoding="utf-8",
            errors="replace",
        )
        if done.returncode or not place.is_file():
            raise _describe_crash(done.returncode, done.stderr)
        return json.loads(place.read_text(encoding="utf-8"))


def _environment() -> dict[str, str]:
    """The same environment for every build, except for what Windows needs. Bytecode is read from an empty folder."""
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "PATH") if name in os.environ and sys.platform == "win32"}
    root = Path(bundler.__file__).parents[1]
    return {
        **kept,
        "PYTHONPATH": str(root),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPYCACHEPREFIX": f"{os.devnull}/none",
    }


def _describe_crash(code: int, said: str) -> StageError:
    how = f"was stopped by signal {-code}" if code < 0 else f"ended with exit code {code}"
    hint = "compile on the device: compile = { here = false }"
    details = tidy_lines(said.splitlines()[-6:])
    return StageError(f"TensorRT for RTX crashed on this model: its process {how}", details=details, hint=hint)


def _unparsable(errors: Sequence[Sequence[Any]], lines: Sequence[str], model: ModelProto) -> StageError:
    found: dict[int, LeftNode] = {}
    others = []
    for index, text in errors:
        if 0 <= index < len(model.graph.node):
            found.setdefault(index, left_node(model.graph.node[index], _explain(text)))
        else:
            others.append(_explain(text))
    left = tuple(found.values())
    details = (*list_left(left), *tidy_lines(others)) or tidy_lines(lines) or ("it gives no reason",)
    hint = "TensorRT for RTX compiles only whole models: remove these operators from the model, or " + (
        "quantise for it: it supports symmetric int8, per channel (--set precision.method=static-tensorrt)"
        if any(node.operator in ("QuantizeLinear", "DequantizeLinear") for node in left)
        else "compile on the device, where ONNX Runtime runs the rest on other providers: compile = { here = false }"
    )
    count = f" {len(left)} of the {len(model.graph.node)} nodes" if left else " this model"
    return StageError(f"TensorRT for RTX does not support{count}", details=details, hint=hint)


def _explain(text: str) -> str:
    if text.strip() == _NO_OPERATOR[0] or _NO_OPERATOR[1] in text:
        return "operator not supported"
    if _NO_TYPE in text:
        return "an input has an unsupported type, such as string"
    return tidy(_ASSERTION.sub("", text))


def _unbuildable(lines: Sequence[str], devices: tuple[str, ...]) -> StageError:
    narrow = any(_NARROW.search(line) for line in lines)
    hint = (
        "it treats dimensions of the same name as equal: fix them (--dim NAME=SIZE, --shape INPUT=SIZES), or compile "
        "on "
        "the device: compile = { here = false }"
        if any(_TIED in line for line in lines)
        else "on GPUs of compute capability 7.5 it multiplies matrices in half precision only: convert the model "
        "(--set precision.method=fp16), or remove 7.5"
        if narrow
        else "build for fewer GPUs, or compile on the device: compile = { here = false }"
    )
    return StageError(
        f"TensorRT for RTX cannot build an engine of this model for {', '.join(devices)}",
        details=tidy_lines(lines) or ("it gives no reason",),
        hint=hint,
    )
