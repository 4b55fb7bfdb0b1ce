"""The calls in a bundle's README: zeros for most inputs, ones for a mask, which would otherwise hide everything."""

from __future__ import annotations

import pytest

from bundler.emitters.python.context import _write_array
from bundler.emitters.web.typescript import write_example
from bundler.model.signature import Port, ValueType
from tests.support.facts import make_facts


@pytest.mark.parametrize(
    ("name", "element", "python", "web"),
    [
        ("x", "int64", "np.zeros((1, 4), np.int64)", "new BigInt64Array(4)"),
        ("mask", "bool", "np.ones((1, 4), np.bool_)", "new Uint8Array(4).fill(1)"),
        ("key_padding_mask", "bool", "np.zeros((1, 4), np.bool_)", "new Uint8Array(4)"),
        ("use_cache", "bool", "np.zeros((1, 4), np.bool_)", "new Uint8Array(4)"),
        ("attention_mask", "int64", "np.ones((1, 4), np.int64)", "new BigInt64Array(4).fill(1n)"),
        ("onnx::Unsqueeze_1", "int64", "np.ones((1, 4), np.int64)", "new BigInt64Array(4).fill(1n)"),
        ("Mask", "float32", "np.ones((1, 4), np.float32)", "new Float32Array(4).fill(1)"),
        ("mask", "str", "np.full((1, 4), '…', np.object_)", 'Array(4).fill("…")'),
    ],
)
def test_an_example_lets_everything_through_a_mask(name: str, element: str, python: str, web: str) -> None:
    port = Port(name=name, type=ValueType(kind="tensor", element_type=element, shape=(1, 4)))
    mask = make_facts(masks=("onnx::Unsqueeze_1",)).is_mask(port)
    assert _write_array(port, (1, 4), mask=mask) == python
    assert write_example(port, (1, 4), mask=mask) == web
