"""Optimum's levels stand for stages that there are."""

from __future__ import annotations

import pytest

from bundler.planning.presets import PRESETS
from bundler.stages.fuse_transformers.spec import FUSIONS


def test_levels_grow() -> None:
    assert list(PRESETS) == ["O1", "O2", "O3", "O4"]
    assert [preset.level for preset in PRESETS.values()] == ["basic", "extended", "extended", "extended"]
    assert [preset.fuses for preset in PRESETS.values()] == [False, True, True, True]
    assert [preset.gelu_approximation for preset in PRESETS.values()] == [False, False, True, True]
    assert [preset.precision for preset in PRESETS.values()] == ["none", "none", "none", "fp16"]
    assert ["GPUs only" in preset.title for preset in PRESETS.values()] == [False, False, False, True]


@pytest.mark.parametrize("name", PRESETS)
def test_fusions_left_out_are_fusions(name: str) -> None:
    assert set(PRESETS[name].disabled) <= set(FUSIONS)
    assert PRESETS[name].title
