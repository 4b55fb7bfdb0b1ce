"""Replace dimensions by sizes: named ones everywhere, others in inputs. No weights are loaded."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from bundler.model.codec import decode, encode
from bundler.model.errors import UsageError
from bundler.model.fixing import Fixing
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.onnxkit.canonical.tensor_data import write_linked
from bundler.onnxkit.fitting import check_shapes
from bundler.onnxkit.fixed_models import fix_model
from bundler.onnxkit.node_order import sort_model
from bundler.onnxkit.signatures import model_signature
from bundler.onnxkit.structure import read_structure
from bundler.stages.fix_dimensions.spec import Facts, Options

ENTRY = "model.onnx"


def run(request: StageRequest, report: Report) -> StageResult:
    """`model.onnx` with its external files beside it. Raises `UsageError` for dimensions that the model lacks."""
    source, options = request.input("model"), decode(Options, dict(request.options))
    model = read_structure(source, link=True)
    sort_model(model)
    signature = model_signature(model)
    _check_names(signature.symbols, options.dimensions)
    fixing = Fixing(dimensions=options.dimensions, shapes=options.shapes)
    check_shapes(signature, fixing)
    report(0.0, "fixing dimensions")
    fix_model(model, fixing)
    report(0.5, "writing")
    write_linked(model, source, request.output / ENTRY)
    facts = Facts(dimensions=options.dimensions, shapes=options.shapes, signature=model_signature(model))
    return StageResult(facts=encode(facts), entry=ENTRY)


def _check_names(symbols: tuple[str, ...], dimensions: Mapping[str, int]) -> None:
    problems = []
    for name, size in dimensions.items():
        if name not in symbols:
            close = difflib.get_close_matches(name, symbols, 1)
            problems.append(f"no dimension {name!r}" + (f" (did you mean {close[0]!r}?)" if close else ""))
        elif size < 1:
            problems.append(f"{name!r} cannot have the size {size}")
    if problems:
        known = f"the model's dynamic dimensions are: {', '.join(map(repr, symbols)) or 'none'}"
        hint = "`bundler inspect MODEL` shows every input with its dimensions"
        raise UsageError("the dimensions cannot be fixed", details=(*problems, known), hint=hint)
