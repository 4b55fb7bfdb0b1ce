"""The operators that all models of a bundle need, read again by the runtime's own parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onnxruntime.tools.reduced_build_config_parser import parse_config

from bundler.reporting.operators import combine_operators


def row(operator: str, opset: int = 13, **types: Any) -> dict[str, Any]:
    return {"domain": "ai.onnx", "opset": opset, "operator": operator, "types": types}


FLOAT_TO_INT = {"inputs": {"0": ["float"]}, "outputs": {"0": ["int64_t"]}}
INT_TO_FLOAT = {"inputs": {"0": ["int64_t"]}, "outputs": {"0": ["float"]}}


def test_types_of_an_operator_are_those_of_all_models_in_each_opset(tmp_path: Path) -> None:
    text = combine_operators(
        [
            [row("Cast", **FLOAT_TO_INT), row("Relu")],
            [row("Cast", 9, **INT_TO_FLOAT), {**row("Gelu", 1), "domain": "com.microsoft"}],
        ]
    )
    (tmp_path / "all.config").write_text(text)
    required, _ = parse_config(str(tmp_path / "all.config"), enable_type_reduction=True)
    assert required == {"ai.onnx": {9: {"Cast"}, 13: {"Cast", "Relu"}}, "com.microsoft": {1: {"Gelu"}}}
    both = '{"inputs": {"0": ["float", "int64_t"]}, "outputs": {"0": ["float", "int64_t"]}}'
    assert text.count(f"Cast{both}") == 2


def test_where_one_model_needs_all_types_all_stay() -> None:
    assert combine_operators([[row("Mul", inputs={"0": ["float"]})], [row("Mul")]]) == "ai.onnx;13;Mul\n"


def test_types_that_are_lists_are_kept_once() -> None:
    text = combine_operators([[row("Pad", custom=[["a", "b"], ["a", "c"]])], [row("Pad", custom=[["a", "b"]])]])
    assert text == 'ai.onnx;13;Pad{"custom": [["a", "b"], ["a", "c"]]}\n'
