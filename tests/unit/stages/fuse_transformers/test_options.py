"""Options that make no sense are refused with what there is; the lists are those of the library."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnxruntime.transformers import optimizer

from bundler.model.errors import UsageError
from bundler.stages.fuse_transformers.checking import check_options
from bundler.stages.fuse_transformers.spec import FUSIONS, MODEL_TYPES, Options
from tests.support import models
from tests.support.stage_calls import call_stage

LEVELS = {0: "none", 1: "basic", 2: "extended"}


def test_model_types_are_those_of_the_library() -> None:
    assert {name: LEVELS[level] for name, (_, _, level) in optimizer.MODEL_TYPES.items()} == MODEL_TYPES


def test_fusions_are_those_of_the_library() -> None:
    flags = {
        name.removeprefix("enable_")
        for model_type in MODEL_TYPES
        for name, value in vars(optimizer.FusionOptions(model_type)).items()
        if name.startswith("enable_") and value
    }
    assert flags == set(FUSIONS)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"model_type": "brt"}, "no model type 'brt' (did you mean 'bert'?)"),
        ({"disabled": ("skip-layernorm",)}, "no fusion 'skip_layernorm' (did you mean 'skip_layer_norm'?)"),
        ({"heads": 4}, "give heads and hidden_size together, or neither"),
        ({"heads": -1, "hidden_size": 4}, "heads and hidden_size cannot be negative"),
        ({"heads": 5, "hidden_size": 32}, "a hidden size of 32 cannot be split among 5 heads"),
        (
            {"backend": "onnxruntime-tools", "packed": True},
            "onnxruntime-tools has no packed; the backend onnxruntime has",
        ),
        ({"mask": "row"}, "no mask 'row' (did you mean 'raw'?)"),
        ({"level": "all"}, "no level 'all' (use one of default, none, basic, extended)"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_options(Options(**options))  # type: ignore[arg-type]  # options are whatever a user wrote
    assert caught.value.details == (problem,)


def test_types_that_the_old_backend_lacks_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        check_options(Options(backend="onnxruntime-tools", model_type="vit"))
    assert "no model type 'vit'" in caught.value.details[0]


def test_options_are_checked_before_the_model_is_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        call_stage("fuse_transformers", tmp_path / "out", {"model": tmp_path / "none.onnx"}, model_type="brt")


def test_a_long_name_is_cut(tmp_path: Path) -> None:
    path = models.save(models.mlp(), tmp_path)
    with pytest.raises(UsageError) as caught:
        call_stage("fuse_transformers", tmp_path / "out", {"model": path}, model_type="x" * 10_000)
    assert len(caught.value.details[0]) < 500
