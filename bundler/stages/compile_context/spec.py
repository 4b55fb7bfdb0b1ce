"""Inputs, facts and options of the stage `compile_context`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="compile_context",
    title="Compile for the device",
    inputs=("model", "partner?"),
    produces="model",
    packages=("onnx", "onnxruntime"),  # the compiler counts with its environment
    changes_model=True,
    time_limit=1800.0,
)
"""Facts: those that `bundler.onnxkit.placement_facts` derives from the model before it is compiled, and `contexts` (how
many), `devices` (the kinds that they are for, in the provider's names), `sdk` (the compiler's version),
`statement` (its text in the model that the runtime checks), `bytes` (of all files).
The compiled part is `context.bin` beside `model.onnx` (`context_1.bin` and so on for more).

With a `partner`, a second model with the same weights, both are compiled together and share one context:
`partner.onnx` is written beside, and the facts have its placement under `partner`. QNN's library for x86 compiles such
contexts (two lengths of one encoder took 0.52 of the space) and crashes when a session opens one, so no emulation
verifies them.

The model should have been optimised at the level `basic` before: with shapes that are computed at run time most nodes
of an encoder are assigned to the CPU, and the fusions of higher levels are not for NPUs. A session on the result must
not optimise it (`graph_optimization_level` `none`): folding the nodes around contexts removes their inputs.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`provider` is the runtime's name of the plugin's provider, `library` the Python module that knows the path of
    the plugin's library, `options` the provider's options, and `select` the properties that its device must report.

    `embed` stores the compiled part in the model file. Unless `partial`, every node must be assigned to the provider.
    `device_options` are the keys of `options` that select the device to compile for, its name first (lists are
    separated by commas): the compiler's statement must agree with each given one, or else the result must contain, for
    each item of the value, the text that `records` has for the key. (onnxruntime-qnn 2.6.0 compiles for architecture 79
    and states 0, because it has no name for it.) With `wide_casts`, casts from uint8 to floating point go through
    int32: the compiler would take the bytes for truth values.
    """

    provider: str
    library: str
    options: Mapping[str, str] = field(default_factory=dict)
    select: Mapping[str, str] = field(default_factory=dict)
    embed: bool = False
    partial: bool = True
    device_options: tuple[str, ...] = ("soc_model", "htp_arch")
    records: Mapping[str, str] = field(default_factory=lambda: {"htp_arch": ";arch={};"})
    wide_casts: bool = False
