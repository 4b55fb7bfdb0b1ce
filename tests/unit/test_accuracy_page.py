"""The table of limits in the documentation is that of the code."""

from __future__ import annotations

from pathlib import Path

from bundler.planning.gate import FLOAT, LOSSY, QUANTIZED

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
KINDS = {
    "FP32": FLOAT,
    "came quantised": QUANTIZED,
    "FP16": LOSSY["half"],
    "bfloat16": LOSSY["bfloat16"],
    "int8": LOSSY["eight-bit"],
    "int4": LOSSY["four-bit"],
}
ROWS = {
    "`sqnr_db`": "sqnr_db",
    "`low_sqnr_db`": "low_sqnr_db",
    "`worst_sqnr_db`": "worst_sqnr_db",
    "`typical_sqnr_db`": "typical_sqnr_db",
    "`top1_agreement` of scores": "scores_top1_agreement",
    "`agreement`": "agreement",
}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _show(figure: str, limit: float | None) -> str:
    none = "all" if figure == "agreement" else ""
    return none if limit is None else f"{limit:g}"


def test_the_limits_are_those_of_the_code() -> None:
    lines = PAGE.read_text(encoding="utf-8").split("## The limits")[1].split("\n##")[0].splitlines()
    table = {cells(line)[0]: cells(line)[1:] for line in lines if line.startswith("|")}
    assert table[""] == list(KINDS)
    for title, figure in ROWS.items():
        limits = [getattr(gate, figure) for gate in KINDS.values()]
        assert table[title] == [_show(figure, limit) for limit in limits]
    assert table["error of a value"] == [
        ""
        if gate.absolute is None
        else f"{gate.absolute:g} + {gate.relative or 0:.1%}".replace(".0%", "%").replace("%", " %")
        for gate in KINDS.values()
    ]
