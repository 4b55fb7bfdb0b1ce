"""Shapes of samples, read without reading them."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bundler.pipeline.sample_shapes import read_first_shapes


def test_shapes_are_those_of_the_first_sample(tmp_path: Path) -> None:
    arrays = {"x": np.zeros((1, 3, 48, 192)), "ids": np.zeros(7, np.int64), "scale": np.float32(1), "a/b": np.zeros(2)}
    np.savez(tmp_path / "b.npz", x=np.zeros(1))
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    wanted = {name: np.shape(array) for name, array in arrays.items()}
    assert read_first_shapes(tmp_path) == read_first_shapes(tmp_path / "a.npz") == wanted


def test_what_is_no_archive_of_arrays_has_none(tmp_path: Path) -> None:
    assert read_first_shapes(tmp_path) == read_first_shapes(tmp_path / "none.npz") == {}
    (tmp_path / "text.npz").write_text("no archive")
    assert read_first_shapes(tmp_path) == {}
    with zipfile.ZipFile(tmp_path / "hostile.npz", "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\1\0v\0{'shape': (1 2, 3)}")
    assert read_first_shapes(tmp_path / "hostile.npz") == {}


@pytest.mark.skipif(sys.platform == "win32", reason="a folder there has no pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npz")
    assert read_first_shapes(tmp_path) == {}
