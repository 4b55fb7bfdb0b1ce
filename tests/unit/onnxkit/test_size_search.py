"""The search for sizes: small first, bounded in memory and time, and it says what it tried."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import ModelProto

from bundler.model.errors import ModelError
from bundler.model.free_dimensions import Sizes
from bundler.onnxkit.compared_constants import compared_constants
from bundler.onnxkit.index_bounds import index_bounds
from bundler.onnxkit.other_sizes import find_other_sizes, other_sizes
from bundler.onnxkit.seeded_inputs import ValueHints
from bundler.onnxkit.sessions import REFERENCE, open_session
from bundler.onnxkit.signatures import model_signature
from bundler.onnxkit.size_search import SizeSearch, limit_run
from tests.support import hostile_models, models, open_models


def search(model: ModelProto, folder: Path, **limits: Any) -> SizeSearch:
    signature = model_signature(model)
    names = tuple(port.name for port in signature.inputs)
    hints = ValueHints(bounds=index_bounds(model, names), compared=compared_constants(model, names))
    session = open_session(models.save(model, folder), REFERENCE)
    return SizeSearch(
        session=session, signature=signature, hints=hints, seed=0, **{"report": lambda _share, _text: None, **limits}
    )


def tried(model: ModelProto, folder: Path) -> dict[str, tuple[int, ...]]:
    found = search(model, folder)
    base, _ = found.find()
    return {item.label: item.sizes for item in find_other_sizes(found, base).dimensions}


def test_small_sizes_come_first_and_each_is_reported(tmp_path: Path) -> None:
    said: list[str] = []
    found = search(models.unnamed_dimensions(), tmp_path, report=lambda _share, text: said.append(text))
    maker, outputs = found.find()
    assert maker.sizes == Sizes()
    assert outputs["y"].shape == (1, 2, 62, 62)
    assert said == ["trying image[0]=1, image[2]=64, image[3]=64 (1 of 16)"]


def test_a_recurrent_audio_model_is_found_quickly(tmp_path: Path) -> None:
    found = search(open_models.recurrent_audio(), tmp_path)
    start = time.monotonic()
    maker, _ = found.find()
    assert time.monotonic() - start < 5
    assert maker.make(0, 0)["sr"] == 16000
    assert maker.shapes == {"samples": (1, 512), "state": (2, 1, 8), "sr": ()}


@pytest.mark.parametrize("make", [hostile_models.endless_loop, hostile_models.endless_empty_loop])
def test_an_endless_loop_is_stopped(tmp_path: Path, make: Callable[[], ModelProto]) -> None:
    with pytest.raises(ModelError, match=r"did not run on any seeded input within 0\.5 s") as caught:
        search(make(), tmp_path, fixed_seconds=0.5).find()
    assert caught.value.details == ("the model's fixed sizes: stopped: one run took more than 0.5 s",)


def test_a_small_model_has_a_minute_for_a_run_and_a_large_one_more() -> None:
    assert [limit_run(count) for count in (0, 2_000_000_000, 10**15)] == [60, 160, 1800]


def test_gigabytes_are_refused_before_they_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    largest = 0

    def watch(self: Any, seed: int, index: int) -> Any:
        nonlocal largest
        largest = max(largest, self.count_bytes())
        return original(self, seed, index)

    found = search(open_models.impossible_batch(), tmp_path)
    original = type(next(found._makers())).make
    monkeypatch.setattr("bundler.onnxkit.seeded_inputs.Maker.make", watch)
    with pytest.raises(ModelError) as caught:
        found.find()
    assert largest <= 64 << 20
    assert caught.value.message == "the model did not run on any seeded input"
    assert any("batch=16000: not tried: the inputs would have 18.3 GiB" in line for line in caught.value.details)
    assert any(re.match(r"batch=1 and \d+ more: .*reshape", line, re.IGNORECASE) for line in caught.value.details)
    assert caught.value.hint == "give real inputs with --samples, or sizes with --dim NAME=SIZE or --shape INPUT=SIZES"


def test_a_fixed_input_of_gigabytes_is_refused(tmp_path: Path) -> None:
    model = models.identity(shape=[40000, 40000])
    with pytest.raises(ModelError) as caught:
        search(model, tmp_path).find()
    assert "the inputs would have 6.0 GiB, more than 1.0 GiB" in caught.value.details[0]
    assert caught.value.hint == "give real inputs with --samples"


def test_an_endless_run_is_stopped(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(ModelError) as caught:
        search(open_models.endless_loop(), tmp_path, search_seconds=1.0, run_seconds=0.4).find()
    assert time.monotonic() - start < 5
    assert "within 1 s" in caught.value.message
    assert "stopped: one run took more than 0.4 s" in caught.value.details[0]


def test_the_list_of_tries_is_bounded_and_safe_to_print(tmp_path: Path) -> None:
    model = open_models.impossible_batch()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch\x1b[31m" + "x" * 500
    with pytest.raises(ModelError) as caught:
        search(model, tmp_path).find()
    assert len(caught.value.details) <= 13
    assert all(line.isprintable() and len(line) < 400 for line in caught.value.details)


def test_each_free_dimension_gets_two_sizes(tmp_path: Path) -> None:
    assert tried(models.token_encoder(), tmp_path) == {"batch": (1, 2), "sequence": (8, 16)}
    sizes = tried(models.unnamed_dimensions(), tmp_path)
    assert sizes == {"image[0]": (1, 2), "image[2]": (32, 64), "image[3]": (64, 96)}


def test_height_is_distinguished_from_width(tmp_path: Path) -> None:
    found = search(models.unnamed_dimensions(), tmp_path)
    base, _ = found.find()
    (changes,) = find_other_sizes(found, base).changes
    assert changes[("image", 2)] != changes[("image", 3)]


@pytest.mark.parametrize("batch", [1, 2, 8])
def test_a_batch_that_must_be_one_size_is_found(tmp_path: Path, batch: int) -> None:
    found = search(open_models.only_batch(batch), tmp_path)
    base, _ = found.find()
    (item,) = find_other_sizes(found, base).dimensions
    assert (item.symbol, item.sizes, item.only_size) == ("batch", (batch,), batch)
    assert [entry.size for entry in item.refused] == [batch + 1, batch + 2, 4 * batch]
    assert all("reshape" in entry.reason.lower() for entry in item.refused)


@pytest.mark.parametrize("channels", [False, True])
def test_a_number_of_features_that_the_models_errors_name_is_found(tmp_path: Path, *, channels: bool) -> None:
    said: list[str] = []
    model = open_models.only_features(162, channels=channels)
    found = search(model, tmp_path, report=lambda _share, text: said.append(text))
    base, _ = found.find()
    assert base.shapes == {"x": (1, 162, 16) if channels else (1, 162)}
    assert said[-1].startswith("trying rows=1, features=162")
    assert said[-1].endswith(", which the model's errors name")
    others = find_other_sizes(found, base)
    assert [item.only_size for item in others.dimensions] == [None, 162, *([None] if channels else [])]
    assert all("features" not in changes for changes in others.changes)


def test_numbers_in_names_and_in_places_of_source_files_are_no_sizes(tmp_path: Path) -> None:
    model = open_models.only_features(162)
    model.graph.node[0].name = "gemm_777_node.888"
    found = search(model, tmp_path)
    found.find()
    assert not {777, 888} & set(found._numbers)


def test_one_height_and_width_beside_any_batch(tmp_path: Path) -> None:
    found = search(open_models.only_square(224), tmp_path)
    base, _ = found.find()
    others = find_other_sizes(found, base)
    assert [item.only_size for item in others.dimensions] == [None, 224, 224]
    assert others.changes == ({("image", 0): 2},)


def test_what_a_limit_rejects_is_not_reported_as_the_models_error(tmp_path: Path) -> None:
    model = models.identity(shape=["batch", 12_000_000])
    found = search(model, tmp_path)
    base, _ = found.find()
    (item,) = find_other_sizes(found, base).dimensions
    assert item.sizes == (1,)
    assert item.only_size is None


@pytest.mark.parametrize("role", ["batch", "channel", "space", "length"])
def test_other_sizes_are_other_and_positive(role: Any) -> None:
    for size in range(1, 1030):
        found = other_sizes(role, size)
        assert found
        assert size not in found
        assert min(found) > 0


def test_the_light_networks_of_onnx_have_fixed_sizes(tmp_path: Path) -> None:
    light = Path(onnx.__file__).parent / "backend/test/data/light/light_shufflenet.onnx"
    assert tried(onnx.load(light), tmp_path) == {}
