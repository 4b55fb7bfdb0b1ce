"""Apache TVM, in runtimes up to 1.20. Options by the runtime's documentation of that time."""

from __future__ import annotations

from bundler.providers.knowledge import GraphRules, OptionTable, Presence, ProviderKnowledge, SizeRule
from bundler.providers.rules import choice, text, whole

_SWITCH = ("True", "False")

PROVIDER = ProviderKnowledge(
    name="tvm",
    runtime_name="TvmExecutionProvider",
    title="Apache TVM",
    package="",
    options=OptionTable(
        rules=(
            choice("check_hash", _SWITCH, "Check that `so_folder` was made of this model.", default="False"),
            choice("executor", ("vm", "graph"), "TVM's executor.", default="vm"),
            choice("freeze_weights", _SWITCH, "Compile the weights in.", default="True"),
            text("hash_file_path", "File with the hash of the model that `so_folder` was made of."),
            text("input_names", "Inputs whose sizes follow, with blanks between."),
            text("input_shapes", "Sizes of these inputs: `[1 3 224 224] [1 2]`."),
            whole("opt_level", "TVM's optimisation level.", default="3", most=4),
            text("so_folder", "Folder of a model that TVM has compiled."),
            text("target", "TVM's target: `llvm -mcpu=core-avx2`.", default="llvm"),
            text("target_host", "TVM's target of the host.", default="llvm"),
            choice("to_nhwc", _SWITCH, "Change the memory layout for tuning logs that need it.", default="False"),
            text("tuning_file_path", "File of tuning logs."),
            choice("tuning_type", ("AutoTVM", "Ansor"), "Kind of these logs.", default="AutoTVM"),
        ),
    ),
    validation_provider="cpu",
    presence=Presence(
        gone="Release 1.21 of the runtime removed it from its source; before, it needed a custom build of ONNX Runtime",
        instead="cpu, or TVM's own runtime without this one",
    ),
    graph=GraphRules(
        free_sizes=(SizeRule(sizes="fixed"),),
    ),
)
