"""Check the reference's `extra_options`, of which it ignores misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Final

from bundler.model.errors import StageError
from bundler.onnxkit.quantization.reference import typed_overrides

_BOTH: Final = frozenset({
    "ActivationRestrictedAsymmetric", "ActivationSymmetric", "DefaultTensorType", "EnableSubgraph",
    "ForceQuantizeNoInputCheck", "MatMulConstBOnly", "MinimumRealRange", "TensorQuantOverrides", "WeightSymmetric",
    "extra.Sigmoid.nnapi",
})  # fmt: skip
_STATIC: Final = frozenset({
    "AddQDQPairToWeight", "BlockSize", "CalibMovingAverage", "CalibMovingAverageConstant", "CalibPercentile",
    "CalibTensorRangeSymmetric", "DedicatedQDQPair", "OpTypesToExcludeOutputQuantization",
    "QDQDisableWeightAdjustForInt32Bias", "QDQKeepRemovableActivations", "QDQOpTypePerChannelSupportToAxis",
    "QuantizeBias", "UseQDQContribOps",
})  # fmt: skip
_UNSUPPORTED: Final = {
    "CalibMaxIntermediateOutputs": "calibration already keeps the activations of one sample only",
    "CalibStridedMinMax": "calibration already keeps the activations of one sample only",
    "SmoothQuant": "it requires neural-compressor, which bundler does not contain; use `nncf-int8` instead",
    "SmoothQuantAlpha": "it belongs to SmoothQuant, which requires neural-compressor",
    "SmoothQuantFolding": "it belongs to SmoothQuant, which requires neural-compressor",
}


def check_extra(extra: Mapping[str, Any], *, static: bool) -> dict[str, Any]:
    """`extra` in the reference's form. Raises `StageError` for an unknown name."""
    known = _BOTH | _STATIC if static else _BOTH
    for name in extra:
        if name in _UNSUPPORTED:
            raise StageError(f"the option {name} is not supported: {_UNSUPPORTED[name]}", hint=f"remove {name}")
        if name not in known:
            close = difflib.get_close_matches(name, sorted(known), n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(sorted(known))}"
            raise StageError(f"the quantiser has no option {name!r}", hint=hint)
    try:
        return typed_overrides(extra)
    except (TypeError, AttributeError) as cause:
        raise StageError(
            "the tensor overrides must be lists of tables by tensor name", details=(str(cause),)
        ) from cause
