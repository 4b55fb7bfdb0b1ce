"""A model's values as TypeScript has them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bundler.model.signature import Port, ValueType

ARRAYS = {
    "float32": "Float32Array",
    "float64": "Float64Array",
    **{f"int{bits}": f"Int{bits}Array" for bits in (8, 16, 32)},
    **{f"uint{bits}": f"Uint{bits}Array" for bits in (8, 16, 32)},
    "int64": "BigInt64Array",
    "uint64": "BigUint64Array",
    "bool": "Uint8Array",
    "str": "string[]",
}
"""Element types to what holds their values in a browser. Of `float16` that depends on the browser's age."""


def annotate_input(value: ValueType) -> str:
    """What a caller may give. What the runtime has no array for is any value that it takes."""
    array = ARRAYS.get(value.element_type or "") if value.kind == "tensor" else None
    return f"TypedValue<{array}>" if array else "Value"


def annotate_output(value: ValueType) -> str:
    """What a caller gets."""
    array = ARRAYS.get(value.element_type or "") if value.kind == "tensor" else None
    return f"TypedTensor<{array}>" if array else "Tensor"


def write_example(port: Port, sizes: Sequence[int] | None, *, mask: bool) -> str:
    """An expression for a value of the input that has these sizes: zeros, and ones for a mask, which lets everything
    through.
    """
    value = port.type
    array = ARRAYS.get(value.element_type or "") if value.kind == "tensor" else None
    if array is None or value.shape is None or sizes is None:
        return "…"
    count = math.prod(sizes)
    data = f"new {array}({count})" if array != "string[]" else f'Array({count}).fill("…")'
    if mask and array != "string[]":
        data += f".fill({'1n' if array.startswith('Big') else '1'})"
    fixed = all(isinstance(size, int) for size in value.shape)
    return data if fixed else f"{{ data: {data}, dims: {list(sizes)} }}"
