"""Half-quadratic quantisation to 4 bits: its zero points lower the error of most weights, without calibration data.

Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models" (2023), in the steps of ONNX
Runtime's own quantiser, which uses torch: with equal scales, zero points equal to the last bit, and 50 of 4 million
codes off by one (sums are computed in another order).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from onnx import GraphProto, NodeProto
from onnx.helper import tensor_dtype_to_np_dtype
from onnxruntime.quantization import matmul_nbits_quantizer as reference

_GREATEST: Final = np.float32(15)
_LARGEST_SCALE: Final = np.float32(2e4)
_NORM: Final = 0.7
"""Exponent of the minimised errors: below 1, so that a few large ones count less than many small ones."""
_BETA: Final = 10.0
_GROWTH: Final = 1.01
_ROUNDS: Final = 20


class HqqQuantizer(reference.DefaultWeightOnlyQuantizer):  # type: ignore[misc]
    """The reference's quantiser of matrix products with HQQ's codes; zero points are floating-point numbers."""

    def quantize_matmul(self, node: NodeProto, graph_stack: list[GraphProto]) -> list[NodeProto]:
        """`MatMulNBits` instead of a product; scales and zero points have the weight's own type."""
        weight, _ = reference.get_initializer(node.input[1], graph_stack)
        self._dtype = tensor_dtype_to_np_dtype(weight.data_type)
        nodes: list[NodeProto] = super().quantize_matmul(node, graph_stack)
        return nodes

    def qbits_block_quant(self, fp32weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Packed codes [columns, blocks, bytes], and of each block its scale and its zero point."""
        weight = fp32weight.T.astype(np.float32)
        size = self.config.block_size
        weight = np.pad(weight, ((0, 0), (0, -weight.shape[1] % size)))
        codes, scales, zeros = quantize_rows(weight.reshape(-1, size))
        packed = (codes[:, ::2] | codes[:, 1::2] << 4).reshape(len(weight), -1, size // 2)
        return packed, scales.astype(self._dtype), zeros.astype(self._dtype)


def quantize_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes (uint8), scale and zero point of each row of float32: weight = (code - zero) * scale."""
    least, greatest = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
    span = greatest - least
    span[span == 0] = _GREATEST
    steps = np.minimum(1 / span * _GREATEST, _LARGEST_SCALE)  # steps for each unit, the inverse of the scale
    zeros = _find_zeros(rows, steps, np.round(-least * steps))
    return _encode(rows, steps, zeros).astype(np.uint8), (1 / steps).ravel(), zeros.ravel()


def _encode(rows: np.ndarray, steps: np.ndarray, zeros: np.ndarray) -> np.ndarray:
    codes: np.ndarray = np.clip(np.round(rows * steps + zeros), 0, _GREATEST)
    return codes


def _find_zeros(rows: np.ndarray, steps: np.ndarray, zeros: np.ndarray) -> np.ndarray:
    """Zero points that minimise the norm of the errors, iterated until it no longer decreases."""
    beta, best = _BETA, np.inf
    for _ in range(_ROUNDS):
        codes = _encode(rows, steps, zeros)
        error = rows - (codes - zeros) / steps
        zeros = (codes - (rows - _shrink(error, beta)) * steps).mean(axis=1, keepdims=True)
        beta *= _GROWTH
        found = float(np.abs(error).mean())
        if found >= best:
            break
        best = found
    return zeros


def _shrink(error: np.ndarray, beta: float) -> np.ndarray:
    """The proximal operator of the norm: the part of an error that counts as an outlier."""
    size = np.abs(error)
    shrunk: np.ndarray = np.sign(error) * np.maximum(
        size - (1 / beta) * np.power(size + 1e-8, np.float32(_NORM - 1)), 0
    )
    return shrunk
