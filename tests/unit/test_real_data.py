"""The data and networks that tests of precision lean on: trained, real, and the same each time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support import digits
from tests.support.content_files import KINDS, list_files
from tests.support.text_images import draw_lines, draw_pages, prepare_line, prepare_page, write_line_images


@pytest.mark.parametrize(("network", "least"), [("perceptron", 0.93), ("convolutional", 0.97)])
def test_the_networks_read_digits_that_they_never_saw(network: digits.Network, least: float, tmp_path: Path) -> None:
    path = digits.write_network(network, tmp_path)
    onnx.checker.check_model(str(path), full_check=True)
    assert digits.measure_accuracy(path, network) > least


def test_training_again_gives_the_same_weights() -> None:
    train = digits._train_convolutional.__wrapped__  # not what is kept
    assert train((4, 4), 1).SerializeToString() == train((4, 4), 1).SerializeToString()


def test_a_model_that_a_test_alters_is_its_own() -> None:
    digits.make_convolutional().graph.input[0].name = "altered"
    assert digits.make_convolutional().graph.input[0].name == "image"


def test_training_and_held_out_digits_have_nothing_in_common() -> None:
    train, held_out = digits.load_digits()
    assert (len(train), len(held_out)) == (1437, 360)
    assert set(train.labels) == set(held_out.labels) == set(range(10))
    assert train.images.dtype == np.float32
    assert (train.images.min(), train.images.max()) == (0, 1)


def test_samples_are_batches_as_the_network_takes_them(tmp_path: Path) -> None:
    folder = digits.write_samples(digits.load_digits()[0].part(7), tmp_path, "perceptron", batch=3)
    shapes = [np.load(path)["x"].shape for path in sorted(folder.iterdir())]
    assert shapes == [(3, 64), (3, 64)]


def test_digits_as_images_keep_their_pixels(tmp_path: Path) -> None:
    from PIL import Image  # noqa: PLC0415

    part = digits.load_digits()[0].part(3)
    paths = sorted(digits.write_images(part, tmp_path).iterdir())
    assert [path.stem[-1] for path in paths] == [str(label) for label in part.labels]
    pixels = np.stack([np.asarray(Image.open(path)) for path in paths])
    np.testing.assert_allclose(pixels / 255, part.images[:, 0], atol=0.002)


def test_rendered_text_follows_from_its_seed_and_fits_the_models(tmp_path: Path) -> None:
    once, again, other = ([prepare_line(line) for line in draw_lines(4, seed=seed)] for seed in (5, 5, 6))
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once, other)
    assert np.shape(once) == (4, 3, 48, 192)
    page = next(draw_pages(1))
    assert prepare_page(page).shape == (3, 320, 320)
    assert len(page.boxes) > 3
    names = sorted(path.name for path in write_line_images(tmp_path, 2).iterdir())
    assert names == ["0000-0.png", "0001-180.png"]


def test_there_are_real_files_of_many_kinds() -> None:
    files = list_files(each=3)
    assert len({label for _, label in files}) >= len(set(KINDS.values())) - 3
    assert all(path.is_file() for path, _ in files)
