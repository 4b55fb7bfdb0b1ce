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
_LINES: Final = 3
_SIGN: Final = (8, 6)
_STROKES: Final = 75
"""Heights of a stroke in the height of a scene."""
_GRAIN: Final = 0.05
_SPRINKLED_SHARE: Final = 1 / 8
"""The share of a tensor's integers that are constants which the model compares with."""


def draw_floats(shape: Shape, index: int, generator: np.random.Generator) -> np.ndarray:
    """Standard normal numbers, numbers from 0 to 1, half of normal, normal: a cycle of four, shifted by one each cycle.
    Where an input looks like images, three of four are scenes: of values from 0 to 1, from -1 to 1 and from -2 to 2, as
    applications prepare them. Noise is alike in all channels, and a model that swaps them may answer it as well.

    Nothing is wider than normal: at twice the width, some samples leave the calibrated range, which costs good int8
    models with few features 10 dB (19 to 9 dB, measured). Single values of 3 to 10 do
    not even suit models that lose none: they took an optimised pitch detector from 84 to 60 dB and out of its gate.
    """
    kind = _kind(index)
    scenes = draw_scenes(shape, index, generator)
    if scenes is not None:
        return scenes if kind == 1 else (scenes * 2 - 1) * (kind - 1)
    if kind == 1:
        return generator.random(shape)
    return generator.standard_normal(shape) * (0.5 if kind == 2 else 1.0)  # noqa: PLR2004 - of a cycle of four


def draw_scenes(shape: Shape, index: int, generator: np.random.Generator) -> np.ndarray | None:
    """Scenes with values from 0 to 1; None where the shape is not that of images, and for the samples of noise."""
    axis = _find_channels(shape)
    if axis is None or is_noise(index):
        return None
    rows, columns = (size for place, size in enumerate(shape) if place not in (0, axis))
    scenes = [_draw_scene(shape[axis], rows, columns, generator) for _ in range(shape[0])]
    return np.moveaxis(np.stack(scenes), 1, axis) if scenes else None


def is_noise(index: int) -> bool:
    """Whether images of this sample are noise, to which a detector may answer nothing."""
    return _kind(index) == 0


def _kind(index: int) -> int:
    return (index + index // 4) % 4


def _find_channels(shape: Shape) -> int | None:
    """The axis of the three or four channels of images; None where the shape is not that of images."""
    if len(shape) != _IMAGE_RANK:
        return None
    axis = next((axis for axis in (1, 3) if shape[axis] in _CHANNELS), None)
    sides = [size for place, size in enumerate(shape) if place not in (0, axis)]
    return axis if axis is not None and min(sides) >= _MIN_SIDE else None


def _draw_scene(channels: int, rows: int, columns: int, generator: np.random.Generator) -> np.ndarray:
    """A gradient in one colour, patches of others with sharp edges, lines like writing, and grain. The levels of the
    channels lie apart, in random order, so that no two have the same mean. A text detector, which answers zero to noise
    and to patches, answers writing with its full range.
    """
    levels = generator.permutation(np.linspace(0.2, 0.8, channels))
    slopes = generator.uniform(-0.2, 0.2, (channels, 2))
    down, across = np.linspace(-1, 1, rows)[:, None], np.linspace(-1, 1, columns)
    scene = np.stack([level + slope[0] * down + slope[1] * across for level, slope in zip(levels, slopes, strict=True)])
    for _ in range(_PATCHES):
        top, left = generator.integers(0, rows), generator.integers(0, columns)
        patch = slice(top, top + rows // 4 + 1), slice(left, left + columns // 4 + 1)
        scene[:, *patch] = generator.permutation(np.linspace(0.05, 0.95, channels))[:, None, None]
    for _ in range(_LINES):
        _write_line(scene, generator)
    return np.clip(scene + _GRAIN * generator.standard_normal(scene.shape), 0.0, 1.0)


def _write_line(scene: np.ndarray, generator: np.random.Generator) -> None:
    """Dark signs of random strokes, five wide and seven high with a gap between them, on light ground."""
    channels, rows, columns = scene.shape
    stroke = max(1, rows // _STROKES)
    signs = generator.random((_SIGN[0], columns * 2 // 3 // stroke)) < 0.5  # noqa: PLR2004 - every second place
    signs[0], signs[:, :: _SIGN[1]] = False, False
    ink = np.kron(signs, np.ones((stroke, stroke))) > 0
    top, left = generator.integers(0, max(1, rows - ink.shape[0])), generator.integers(0, columns - ink.shape[1])
    dark, light = generator.uniform(0.0, 0.2, (channels, 1, 1)), generator.uniform(0.8, 1.0, (channels, 1, 1))
    place = scene[:, top : top + ink.shape[0], left : left + ink.shape[1]]
    place[:] = np.where(ink[: place.shape[1]], dark, light)


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
