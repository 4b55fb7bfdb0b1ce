"""Memory does not grow with the number of samples."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support import models
from tests.support.data_folders import image_model, pixels
from tests.unit.onnxkit.test_memory import peak_growth

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the resource module is for POSIX systems")


def test_five_hundred_pictures_take_no_more_memory_than_fifty(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    Image.fromarray(pixels(128, 128)).save(tmp_path / "a.jpg")
    for index in range(500):  # each is 150 kB as the model takes it: 75 MB in all
        (folder / f"{index}.jpg").hardlink_to(tmp_path / "a.jpg")
    model = image_model(tmp_path / "model", ["n", 3, 112, 112])
    options = {"kind": "images", "preprocessing": {"kind": "image"}}
    few = peak_growth("prepare_data", tmp_path / "few", {**options, "limit": 50}, model=model, data=folder)
    many = peak_growth("prepare_data", tmp_path / "many", options, model=model, data=folder)
    assert len(list((tmp_path / "many").iterdir())) == 501
    assert many < few + 20


def test_an_archive_larger_than_what_is_read_of_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", x=np.random.default_rng(0).random((120, 1, 512, 512), np.float32))  # 126 MB
    model = models.save(models.passing(models.FLOAT, [1, 512, 512]), tmp_path)
    options = {"kind": "samples"}
    assert peak_growth("prepare_data", tmp_path / "out", options, model=model, data=tmp_path / "all.npz") < 60
