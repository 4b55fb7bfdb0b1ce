"""Names of the runtime's graph optimisers.

Read from the verbose log of onnxruntime 1.31.1 (`GraphTransformer <name> modified`) over a session at level ALL. The
runtime ignores a name that it does not know, and one that is missing here merely runs again, so another version
loses time and nothing else.
"""

from __future__ import annotations

from bundler.providers.cpu import PROVIDER as CPU

LAYOUT_OPTIMIZERS = ("NchwcTransformer", "NhwcTransformer", "ConvAddActivationFusion")
"""Those whose result fits one class of CPU only. The last fuses what the first two left, so it must come after them."""

CONSTANT_FOLDING = "ConstantFolding"

OPTIMIZER_SEPARATOR = ";"
"""Between names in `optimization.disable_specified_optimizers`: commas leave every optimiser on (measured, 1.31.1)."""

OPTIMIZERS = (
    "EnsureUniqueDQForNodeUnit",
    "Level1_RuleBasedTransformer",
    "DoubleQDQPairsRemover",
    "ConstantSharing",
    "CommonSubexpressionElimination",
    CONSTANT_FOLDING,
    "MatMulAddFusion",
    "ReshapeFusion",
    "FreeDimensionOverrideTransformer",
    "SliceConcatToSpaceToDepthFusion",
    "GeluFusionL1",
    "LayerNormFusionL1",
    "QDQPropagationTransformer",
    "WeightBiasQuantization",
    "WhereDummyDq",
    "TransposeOptimizer",
    "Level2_RuleBasedTransformer",
    f"TransposeOptimizer_{CPU.runtime_name}",
    "QDQS8ToU8Transformer",
    "QDQSelectorActionTransformer",
    "GemmActivationFusion",
    "MatMulIntegerToFloatFusion",
    "DynamicQuantizeMatMulFusion",
    "ConvActivationFusion",
    "GeluFusionL2",
    "LayerNormFusionL2",
    "SimplifiedLayerNormFusion",
    "AttentionFusion",
    "EmbedLayerNormFusion",
    "GatherSliceToSplitFusion",
    "GatherToSliceFusion",
    "MatmulTransposeFusion",
    "BiasGeluFusion",
    "GroupQueryAttentionFusion",
    "SkipLayerNormFusion",
    "BiasSkipLayerNormFusion",
    "FastGeluFusion",
    "QuickGeluFusion",
    "BiasSoftmaxFusion",
    "BiasDropoutFusion",
    "MatMulScaleFusion",
    "MatMulActivationFusion",
    "MatMulNBitsFusion",
    "GroupQueryAttentionPreNormFusion",
    "QDQFinalCleanupTransformer",
    "NchwcTransformer",
    "NhwcTransformer",
    "ConvAddActivationFusion",
    "RemoveDuplicateCastTransformer",
    "CastFloat16Transformer",
    "FuseFp16InitializerToFp32NodeTransformer",
    "MemcpyTransformer",
)
"""All of them, in the order in which they run."""
