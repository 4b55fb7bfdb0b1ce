"""Inputs, facts and options of the stage `check_placement`."""

from __future__ import annotations

from dataclasses import dataclass

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="check_placement",
    title="Check the placement",
    inputs=("model",),
    produces=None,
    packages=("onnx", "onnxruntime", "numpy"),
    changes_model=False,
    optional=True,
    time_limit=1800.0,
    least_time=900.0,
)
"""Facts: those of a placement (`bundler.onnxkit.placement_facts`) with `estimated`, because no device was used: ONNX
Runtime's own checker compares operators, ranks and whether shapes are fixed; `estimated_by` is its version.
`partitions` counts the subgraphs that would be assigned to the provider; `suitable` is the checker's judgement
(`yes`, `maybe`, `no`) and `verdict` its words; `fixed` has `assigned`, `left`, `share`, `partitions`, `suitable` and
`verdict` for the model with all input sizes fixed, where some are not and more nodes would be assigned then, and
`options`, the words of a command that fix them; `caveats` are conditions of the assigned operators that the checker
does not test. Nodes that only compute fixed sizes are folded before nodes are assigned, and not counted.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`function` is the checker's for the operators of `provider` (the runtime's name), which it calls `title`;
    `operators` is the checker's own file of them, if the function reads one.
    """

    function: str
    title: str
    provider: str
    operators: str = ""
