"""Numbers of types that NumPy lacks read as the library that defines them reads them."""

from __future__ import annotations

import importlib
import sys

import ml_dtypes
import numpy as np
import pytest

from bundler.support.data import data_root


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("float8e4m3fn", ml_dtypes.float8_e4m3fn),
        ("float8e4m3fnuz", ml_dtypes.float8_e4m3fnuz),
        ("float8e5m2", ml_dtypes.float8_e5m2),
        ("float8e5m2fnuz", ml_dtypes.float8_e5m2fnuz),
        ("bfloat16", ml_dtypes.bfloat16),
    ],
)
def test_every_bit_pattern(name: str, theirs: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(data_root("templates") / "python" / "package"))
    storage = importlib.import_module("_loader.storage")
    bits = np.arange(1 << (16 if name == "bfloat16" else 8)).astype(storage.STORAGE[name][0])
    np.testing.assert_array_equal(storage.decode(bits, name), bits.view(theirs).astype(np.float32))
    for module in [module for module in sys.modules if module.startswith("_loader")]:
        del sys.modules[module]
