"""What `check_placement` takes and makes."""

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
"""Facts: those of a placement (`bundler.onnxkit.placement_facts`) with `estimated`, for no device was asked: ONNX
Runtime's own checker knows operators, ranks and whether shapes are fixed. `partitions` counts the pieces that the
provider would take; `suitable` is the checker's judgement (`yes`, `maybe`, `no`) and `verdict` its words; `fixed` has
`taken`, `left`, `share`, `partitions`, `suitable` and `verdict` for the model with all sizes of its inputs fixed, where
some are not and more would be taken so, and `options`, the words of a command that fix them; `caveats` are conditions
of the operators taken that the checker does not look at. Nodes that only compute sizes which are fixed are gone before
a provider chooses, and not counted.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`function` of the checker knows the operators of `provider` (the runtime's name), which it calls `title`;
    `operators` is the checker's own file of them, where the function takes one.
    """

    function: str
    title: str
    provider: str
    operators: str = ""
