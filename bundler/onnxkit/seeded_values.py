"""Seeded values of one tensor: numbers of several scales, masks that end in padding, integers in their range."""

from __future__ import annotations

from typing import Final

import numpy as np

Shape = tuple[int, ...]

WORDS: Final = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel")
_CHANNELS: Final = (3, 4)
_IMAGE_RANK: Final = 4
_MIN_SIDE: Final = 8
_PATCHES: Final = 6
_GRAIN: Final = 0.05
OUTLIER_SAMPLE: Final = 6
_OUTLIERS: Final = 32
"""One value in so many is an outlier."""
_SPRINKLED_SHARE: Final = 1 / 8
"""The share of a tensor's integers that are constants which the model compares with."""


def draw_floats(shape: Shape, index: int, generator: np.random.Generator) -> np.ndarray:
    """Standard normal numbers, numbers from 0 to 1, half of normal, normal: a cycle of four, shifted by one each cycle.
    Where an input looks like images, those from 0 to 1 are scenes: noise is alike in all channels, and a model that
    swaps them may answer it as well.

    Nothing is wider than normal: at twice the width, some samples leave the calibrated range, which costs good int8
    models with few features 10 dB (19 to 9 dB, measured).
    """
    kind = _kind(index)
    if kind == 1:
        scenes = draw_scenes(shape, index, generator)
        return generator.random(shape) if scenes is None else scenes
    return generator.standard_normal(shape) * (0.5 if kind == 2 else 1.0)  # noqa: PLR2004 - of a cycle of four


def add_outliers(values: np.ndarray, index: int, generator: np.random.Generator) -> np.ndarray:
    """Some values of one sample lie 3 to 10 standard deviations from zero, so that it shows where a model clips them.
    A whole tensor of such values would hide errors of all other samples: their noise is compared with the signal of
    all. Nothing is changed in images, whose values have a range.
    """
    if index != OUTLIER_SAMPLE or not values.size or _find_channels(values.shape, (1, *_CHANNELS)) is not None:
        return values
    changed = values.reshape(-1).copy()
    places = generator.choice(changed.size, max(1, changed.size // _OUTLIERS), replace=False)
    changed[places] = generator.uniform(3.0, 10.0, places.size) * generator.choice((-1.0, 1.0), places.size)
    return changed.reshape(values.shape)


def draw_scenes(shape: Shape, index: int, generator: np.random.Generator) -> np.ndarray | None:
    """Scenes with values from 0 to 1; None where the shape is not that of images, and for samples of noise."""
    axis = _find_channels(shape)
    if axis is None or _kind(index) != 1:
        return None
    rows, columns = (size for place, size in enumerate(shape) if place not in (0, axis))
    scenes = [_draw_scene(shape[axis], rows, columns, generator) for _ in range(shape[0])]
    return np.moveaxis(np.stack(scenes), 1, axis) if scenes else None


def _kind(index: int) -> int:
    return (index + index // 4) % 4


def _find_channels(shape: Shape, channels: tuple[int, ...] = _CHANNELS) -> int | None:
    """The axis of the channels of images; None where the shape is not that of images."""
    if len(shape) != _IMAGE_RANK:
        return None
    axis = next((axis for axis in (1, 3) if shape[axis] in channels), None)
    sides = [size for place, size in enumerate(shape) if place not in (0, axis)]
    return axis if axis is not None and min(sides) >= _MIN_SIDE else None


def _draw_scene(channels: int, rows: int, columns: int, generator: np.random.Generator) -> np.ndarray:
    """A gradient in one colour, patches of others with sharp edges, and grain. The levels of the channels lie apart, in
    random order, so that no two have the same mean.
    """
    levels = generator.permutation(np.linspace(0.2, 0.8, channels))
    slopes = generator.uniform(-0.2, 0.2, (channels, 2))
    down, across = np.linspace(-1, 1, rows)[:, None], np.linspace(-1, 1, columns)
    scene = np.stack([level + slope[0] * down + slope[1] * across for level, slope in zip(levels, slopes, strict=True)])
    for _ in range(_PATCHES):
        top, left = generator.integers(0, rows), generator.integers(0, columns)
        patch = slice(top, top + rows // 4 + 1), slice(left, left + columns // 4 + 1)
        scene[:, *patch] = generator.permutation(np.linspace(0.05, 0.95, channels))[:, None, None]
    return np.clip(scene + _GRAIN * generator.standard_normal(scene.shape), 0.0, 1.0)


def draw_mask(shape: Shape, index: int, generator: np.random.Generator) -> np.ndarray:
    """True, then False, along the last axis, as in padded rows; every second index of the first axis is full."""
    if not shape:
        return np.ones((), bool)
    rows = shape[0] if len(shape) > 1 else 1
    lengths = draw_lengths(rows, shape[-1], index, generator)
    cut = np.arange(shape[-1]) < lengths.reshape(rows, *[1] * (len(shape) - 1))
    return np.broadcast_to(cut.reshape(shape) if len(shape) == 1 else cut, shape)


def draw_lengths(rows: int, full: int, index: int, generator: np.random.Generator) -> np.ndarray:
    """A length for each row, at least half of `full`; every second one is `full`."""
    drawn = generator.integers((full + 1) // 2, full + 1, rows)
    is_full = (np.arange(rows) + index) % 2 == 0
    return np.where(is_full, full, drawn)


def draw_integers(shape: Shape, bound: int, sprinkled: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Integers from 0 to below `bound`, with `sprinkled` ones in some places."""
    values = generator.integers(0, max(bound, 1), shape)
    if not sprinkled:
        return values
    chosen = generator.choice(np.array(sprinkled, np.int64), size=shape)
    return np.where(generator.random(shape) < _SPRINKLED_SHARE, chosen, values)


def selector_bit(index: int, place: int) -> int:
    """0 or 1 for a value that selects a branch; for two of them, all four pairs occur within four samples."""
    return (index >> 1) & 1 if place % 2 == 0 else (index + (index >> 2)) & 1
