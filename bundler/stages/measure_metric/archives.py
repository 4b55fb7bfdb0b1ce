"""Write the values of samples as .npz files for a user's command."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from bundler.onnxkit.elements import element_of_array, to_wide
from bundler.onnxkit.value_files import Value

_SAFE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


def file_name(position: int, name: str) -> str:
    """A file's name without its suffix: the sample's if it is portable, else its position."""
    return name if _SAFE.fullmatch(name) else f"{position:05d}"


def write_archive(path: Path, values: Mapping[str, Value]) -> None:
    """One array for each value; a sequence's items as `name.0`, a map as `name.keys` and `name.values`."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in values.items():
            for key, array in _arrays(name, value):
                with archive.open(f"{key}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)


def _arrays(name: str, value: Value) -> Iterator[tuple[str, np.ndarray]]:
    if isinstance(value, np.ndarray | np.generic):
        yield name, _plain(np.asarray(value))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _arrays(f"{name}.{index}", item)
    elif isinstance(value, dict):
        yield f"{name}.keys", _plain(np.array(list(value)))
        yield f"{name}.values", _plain(np.array(list(value.values())))


def _plain(array: np.ndarray) -> np.ndarray:
    """An array that every NumPy reads without pickles: text of fixed width, and numbers of types that it has."""
    if array.dtype.kind == "O":
        return array.astype(np.str_)
    return to_wide(array) if element_of_array(array).foreign else array
