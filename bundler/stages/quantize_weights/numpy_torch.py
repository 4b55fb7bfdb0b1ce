"""As much of torch as the reference's HQQ quantiser asks for, on NumPy.

The reference does its arithmetic with torch, a library of hundreds of megabytes, of which it calls some twenty
functions on float32 arrays. `torch_on_numpy` puts those in torch's place while it runs, so that its own code runs as it
is written. Torch takes sums in another order: with torch 2.13, scales were equal to the byte, zero points to a last
bit, and of four million codes fifty stood one step beside (16 matrices, 4 and 8 bits, blocks of 32 and 128). It is
also five to ten times faster here.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any, Final, Self

import numpy as np

_NAME: Final = "torch"


class Tensor:
    """An array with the methods of a torch tensor that the reference calls; `data` is the array itself."""

    __slots__ = ("data",)
    __hash__ = None  # type: ignore[assignment]
    is_cuda = False
    device = "cpu"

    def __init__(self, data: Any) -> None:
        self.data = np.asarray(data)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return self.data.shape

    @property
    def dtype(self) -> np.dtype:
        """NumPy's element type."""
        return self.data.dtype

    @property
    def T(self) -> Tensor:  # noqa: N802 - torch's name
        """The transposed matrix."""
        return Tensor(self.data.T)

    def float(self) -> Tensor:
        """As float32."""
        return self.to(np.dtype(np.float32))

    def int(self) -> Tensor:
        """As int32."""
        return self.to(np.dtype(np.int32))

    def to(self, dtype: np.dtype) -> Tensor:
        """As another element type."""
        return Tensor(self.data.astype(dtype, copy=False))

    def contiguous(self) -> Tensor:
        """In C order."""
        return Tensor(np.ascontiguousarray(self.data))

    def cpu(self) -> Tensor:
        """Itself: there is no other device."""
        return self

    def numpy(self) -> np.ndarray:
        """The array."""
        return self.data

    def element_size(self) -> Any:
        """Bytes of one element."""
        return self.data.itemsize

    def reshape(self, *shape: Any) -> Tensor:
        """With other sizes."""
        return Tensor(self.data.reshape(*shape))

    def min(self, *, axis: Any, keepdim: bool) -> tuple[Tensor]:
        """The least along an axis, first of a tuple as in torch."""
        return (Tensor(self.data.min(axis=axis, keepdims=keepdim)),)

    def max(self, *, axis: Any, keepdim: bool) -> tuple[Tensor]:
        """The greatest along an axis, first of a tuple as in torch."""
        return (Tensor(self.data.max(axis=axis, keepdims=keepdim)),)

    def mean(self) -> Tensor:
        """The mean of all."""
        return Tensor(self.data.mean(dtype=self.data.dtype))

    def sum(self) -> Tensor:
        """The sum of all."""
        return Tensor(self.data.sum())

    def item(self) -> Any:
        """The only element."""
        return self.data.item()

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002 - torch's names
        """Within limits."""
        return Tensor(np.clip(self.data, min, max))

    def __float__(self) -> Any:
        return self.data.item()

    def __getitem__(self, key: Any) -> Tensor:
        return Tensor(self.data[_plain(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[_plain(key)] = _plain(value)

    def __add__(self, other: Any) -> Tensor:
        return Tensor(self.data + _plain(other))

    def __sub__(self, other: Any) -> Tensor:
        return Tensor(self.data - _plain(other))

    def __mul__(self, other: Any) -> Tensor:
        return Tensor(self.data * _plain(other))

    def __rmul__(self, other: Any) -> Tensor:
        return Tensor(other * self.data)

    def __truediv__(self, other: Any) -> Tensor:
        # Where all weights of a block are equal, the reference divides by zero first and mends that afterwards.
        with np.errstate(divide="ignore", invalid="ignore"):
            return Tensor(self.data / _plain(other))

    def __rtruediv__(self, other: Any) -> Tensor:
        with np.errstate(divide="ignore", invalid="ignore"):
            return Tensor((1 / self.data) * self.data.dtype.type(other))  # in torch, too, it is a reciprocal first

    def __neg__(self) -> Tensor:
        return Tensor(-self.data)

    def __eq__(self, other: object) -> Any:
        return Tensor(self.data == _plain(other))

    def __lshift__(self, count: Any) -> Tensor:
        return Tensor(self.data << count)

    def __ior__(self, other: Any) -> Self:
        self.data |= _plain(other).astype(self.data.dtype)
        return self


def _plain(value: Any) -> Any:
    return value.data if isinstance(value, Tensor) else value


def _pad(tensor: Tensor, sizes: tuple[int, ...], _mode: str, value: float) -> Tensor:
    """Widths are given from the last axis on, before and after."""
    widths = list(reversed(list(zip(sizes[::2], sizes[1::2], strict=True))))
    return Tensor(np.pad(tensor.data, [(0, 0)] * (tensor.data.ndim - len(widths)) + widths, constant_values=value))


def _mean(tensor: Tensor, *, axis: int, keepdim: bool) -> Tensor:
    return Tensor(tensor.data.mean(axis=axis, keepdims=keepdim, dtype=tensor.data.dtype))


def _zeros(shape: tuple[int, ...], *, dtype: np.dtype, device: str) -> Tensor:
    del device
    return Tensor(np.zeros(shape, dtype))


def _module() -> ModuleType:
    module = ModuleType(_NAME, "The functions of torch that the reference's HQQ quantiser calls, on NumPy.")
    functional = SimpleNamespace(relu=lambda x: Tensor(np.maximum(x.data, 0)), pad=_pad)
    members: dict[str, Any] = {
        "float16": np.dtype(np.float16),
        "float32": np.dtype(np.float32),
        "uint8": np.dtype(np.uint8),
        "cuda": SimpleNamespace(is_available=lambda: False),
        "nn": SimpleNamespace(functional=functional),
        "from_numpy": Tensor,
        "zeros": _zeros,
        "mean": _mean,
        "abs": lambda x: Tensor(np.abs(x.data)),
        "sign": lambda x: Tensor(np.sign(x.data)),
        "pow": lambda x, power: Tensor(np.power(x.data, x.data.dtype.type(power))),
        "round": lambda x: Tensor(np.round(x.data)),
    }
    for name, member in members.items():
        setattr(module, name, member)
    return module


@contextlib.contextmanager
def torch_on_numpy() -> Iterator[None]:
    """While this holds, `import torch` gives the functions above; afterwards all is as it was."""
    before = sys.modules.get(_NAME)
    sys.modules[_NAME] = _module()
    try:
        yield
    finally:
        if before is None:
            del sys.modules[_NAME]
        else:
            sys.modules[_NAME] = before
