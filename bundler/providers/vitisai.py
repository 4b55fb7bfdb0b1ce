"""AMD Vitis AI: the NPU of Ryzen AI processors under Windows, and AMD's adaptable chips under Linux.

Options by the documentation of the runtime and of AMD's Ryzen AI software, whose provider also has
undocumented keys. The provider compiles when a session opens, for minutes, on the device.
"""

from __future__ import annotations

from bundler.providers.knowledge import (
    Deferral,
    GraphRules,
    NeedRule,
    Numerics,
    OptionTable,
    Presence,
    ProviderKnowledge,
    SizeRule,
)
from bundler.providers.rules import choice, text

_LOADER = "the loader gives it a separate folder, which `prewarm` fills"

PROVIDER = ProviderKnowledge(
    name="vitisai",
    runtime_name="VitisAIExecutionProvider",
    title="AMD Vitis AI",
    package="onnxruntime-vitisai",
    options=OptionTable(
        rules=(
            text("cache_dir", "Folder of compiled models.", default="a temporary folder", decided=_LOADER),
            text("cache_key", "Folder of this model in it.", default="the model's MD5", decided=_LOADER),
            text("config_file", "File of compiler settings on the device, for models in bfloat16."),
            text(
                "encryptionKey", "Key of an encrypted compiled model.", decided="a key in a bundle would not be secret"
            ),
            choice(
                "log_level", ("info", "warning", "error", "fatal"), "Minimum severity of log messages.", default="error"
            ),
            choice(
                "target",
                ("X1", "X2"),
                "Compiler of 8-bit models: X2 for Strix, Krackan and newer, X1 also for Phoenix and Hawk Point.",
                default="X2",
            ),
            text("xclbin", "File on the device that configures the NPU, for 8-bit models of older releases."),
        ),
        replaced={
            "encryption_key": "`encryptionKey`, which is not for a bundle",
            "cacheDir": "`cache_dir`, which the loader sets",
            "cacheKey": "`cache_key`, which the loader sets",
            "config": "`config_file`",
        },
    ),
    validation_provider="cpu",
    numerics=Numerics(
        # The NPU runs int8 models, and converts floating point to bfloat16 itself. Not measured on a device.
        precisions=("static-int8-full", "static-int8", "static-int8-percentile", "static-a16w8"),
        tries=("static-int8-full",),
        # In floating point it computes in bfloat16, coarser than half precision and treated as that.
        rounds=lambda _: "half",
    ),
    presence=Presence(
        gone="In no package index: it comes with AMD's Ryzen AI software, or through Windows ML",
        instead="the runtime of AMD's Ryzen AI software, or webgpu-native on the GPU of the same chip",
        needs=(
            NeedRule(
                what="AMD's driver of the NPU and the Ryzen AI software",
                check="xrt-smi examine",
                source="AMD Ryzen AI Software documentation, Installation Instructions",
            ),
        ),
    ),
    graph=GraphRules(
        # Fixed: what is compiled has one size.
        free_sizes=(SizeRule(sizes="fixed"),),
    ),
    deferral=Deferral(kind="cache", thing="Vitis AI model", folder_option="cache_dir"),
)
