"""What `compile_context` takes and makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="compile_context",
    title="Compile for the device",
    inputs=("model", "partner?"),
    produces="model",
    packages=("onnx", "onnxruntime"),  # what carries the compiler counts with its environment
    changes_model=True,
    time_limit=1800.0,
)
"""Facts: what `bundler.onnxkit.placement_facts` counts on the model before it is compiled, and `contexts` (how many
were made), `devices` (the kinds that they are for, as the provider calls them), `sdk` (the compiler's version),
`statement` (what it wrote into the model for the runtime's own judgement), `bytes` (of all files).

What was compiled stands in `context.bin` beside `model.onnx` (`context_1.bin` and so on where there are more).

With a `partner`, a second model of the same weights, both are compiled in one go and share one context: `partner.onnx`
stands beside, and the facts have its placement under `partner`. QNN's library for x86 makes such contexts (two
lengths of one encoder took 0.52 of the room), and crashes when it is to run one: no emulation proves them.

What is compiled should have been optimised at the level `basic` before: shapes that a model computes while it runs
leave most nodes of an encoder to the CPU, and the fusions of higher levels are not for NPUs. A session on the result
must leave it as it is (`graph_optimization_level` `none`): folding what stays around contexts takes inputs from them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`provider` is the runtime's name of what a plugin carries, `library` the Python module that knows where the
    plugin's library lies, `options` what the provider is told, and `select` what its device must say of itself.

    `embed` puts what was compiled into the model's own file. Unless `partial`, the provider must take every node.
    `device_options` are the keys of `options` that say for which device to compile, the one that names it first (lists
    are separated by commas): what the compiler states afterwards must agree with each that is given, or else what it
    wrote must hold, for each item of the value, the text that `records` has for the key. (onnxruntime-qnn 2.6.0
    compiles for architecture 79 and states 0, for it lacks the name.)
    """

    provider: str
    library: str
    options: Mapping[str, str] = field(default_factory=dict)
    select: Mapping[str, str] = field(default_factory=dict)
    embed: bool = False
    partial: bool = True
    device_options: tuple[str, ...] = ("soc_model", "htp_arch")
    records: Mapping[str, str] = field(default_factory=lambda: {"htp_arch": ";arch={};"})
