"""The golden inputs of a bundle as plain `.npz` files, for programs that know nothing of bundles."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bundler.onnxkit.golden import read_golden


def write_feeds(payload: Path, folder: Path) -> tuple[Path, ...]:
    """One file a sample: `names`, and `value<i>` for each of them in order (a name need not be a file name)."""
    golden = read_golden(payload / "golden" / "index.json")
    paths = []
    for index in range(len(golden.entries)):
        values = golden.sample(index).inputs
        path = folder / f"{index:03d}.npz"
        columns = {f"value{position}": value for position, value in enumerate(values.values())}
        np.savez(path, names=np.array(list(values)), **columns)
        paths.append(path)
    return tuple(paths)
