"""Regions of text in a heat map: connected parts above a threshold, as the smallest rectangles around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

THRESHOLD = 0.3
"""Heat from which a pixel counts as text."""
LEAST_HEAT = 0.5
"""Mean heat of a region; the others are dropped."""
GROWTH = 1.6
"""The detector is trained on shrunk regions: each grows by this times its area over its circumference."""
ARC = 64
"""Points of a circle around each corner."""
ROUNDING = 1e-6
"""Pixels that a place may lie outside of a rectangle and still be on its edge."""
SMALLEST = 3
"""Pixels of the shorter side of a region."""


@dataclass(frozen=True, slots=True)
class Region:
    """A region of text: int32[4, 2] corners (x, y) from the top left on, clockwise."""

    corners: Array

    @property
    def sides(self) -> tuple[float, float]:
        """Its width and height in pixels."""
        first, second, third, fourth = self.corners.astype(float)
        width = max(np.linalg.norm(first - second), np.linalg.norm(third - fourth))
        return float(width), float(max(np.linalg.norm(first - fourth), np.linalg.norm(second - third)))


def find_regions(heat: Array, size: tuple[int, int]) -> list[Region]:
    """The regions of float32[height, width] in pixels of an image of this width and height."""
    mask = heat > THRESHOLD
    mask[1:] |= mask[:-1].copy()
    mask[:, 1:] |= mask[:, :-1].copy()
    scale = np.array([size[0] / heat.shape[1], size[1] / heat.shape[0]])
    regions = []
    for points in list_parts(mask):
        rectangle, short = enclose(points)
        if short < SMALLEST or mean_heat(heat, rectangle) < LEAST_HEAT:
            continue
        grown = grow(rectangle)
        corners = np.clip(np.round(grown * scale), 0, np.array(size)).astype(np.int32)
        region = Region(np.clip(order_corners(corners), 0, np.array(size) - 1))
        if min(region.sides) > SMALLEST:
            regions.append(region)
    return regions


def list_parts(mask: Array) -> Iterator[Array]:
    """The (x, y) of the first and last pixel in each row of every connected part."""
    parents: list[int] = []
    runs: list[tuple[int, int, int]] = []

    def find(part: int) -> int:
        while parents[part] != part:
            parents[part] = parents[parents[part]]
            part = parents[part]
        return part

    above: list[int] = []
    for y, row in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(np.int8), [0]])))
        here = []
        for start, end in edges.reshape(-1, 2):
            number = len(runs)
            runs.append((y, int(start), int(end) - 1))
            parents.append(number)
            for other in above:
                if runs[other][1] <= end and runs[other][2] >= start - 1:  # corners touch, too
                    parents[find(other)] = find(number)
            here.append(number)
        above = here
    parts: dict[int, list[tuple[int, int]]] = {}
    for number, (y, start, end) in enumerate(runs):
        parts.setdefault(find(number), []).extend(((start, y), (end, y)))
    yield from (np.array(points, float) for points in parts.values())


def enclose(points: Array) -> tuple[Array, float]:
    """The smallest rectangle around points as float[4, 2], and its shorter side."""
    hull = convex_hull(points)
    edges = np.diff(np.concatenate([hull, hull[:1]]), axis=0)
    smallest, corners, short = np.inf, hull, 0.0
    for angle in np.unique(np.arctan2(edges[:, 1], edges[:, 0]) % (np.pi / 2)):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        turned = hull @ turn
        (left, top), (right, bottom) = turned.min(axis=0), turned.max(axis=0)
        area = (right - left) * (bottom - top)
        if area < smallest:
            corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]]) @ turn.T
            smallest, short = area, min(right - left, bottom - top)
    return corners, float(short)


def convex_hull(points: Array) -> Array:
    """Corners of the hull, in order."""
    ordered = sorted(set(map(tuple, points.tolist())))
    halves = []
    for side in (ordered, ordered[::-1]):
        half: list[tuple[float, float]] = []
        for point in side:
            while len(half) > 1 and _turns(half[-2], half[-1], point) <= 0:
                half.pop()
            half.append(point)
        halves += half[:-1]
    return np.array(halves or ordered, float)


def _turns(first: tuple[float, float], second: tuple[float, float], third: tuple[float, float]) -> float:
    across = (second[0] - first[0]) * (third[1] - first[1])
    return across - (second[1] - first[1]) * (third[0] - first[0])


def mean_heat(heat: Array, rectangle: Array) -> float:
    """The mean of the pixels within a rectangle."""
    low = np.clip(np.floor(rectangle.min(axis=0)).astype(int), 0, None)
    high = np.ceil(rectangle.max(axis=0)).astype(int)
    part = heat[low[1] : high[1] + 1, low[0] : high[0] + 1]
    ys, xs = np.mgrid[low[1] : low[1] + part.shape[0], low[0] : low[0] + part.shape[1]]
    inside = np.ones(part.shape, bool)
    for start, end in zip(rectangle, np.roll(rectangle, -1, axis=0), strict=True):
        inside &= (end[0] - start[0]) * (ys - start[1]) - (end[1] - start[1]) * (xs - start[0]) >= -ROUNDING
    return float(part[inside].mean()) if inside.any() else 0.0


def grow(rectangle: Array) -> Array:
    """The rectangle around all that is within a distance of it, in whole pixels, as the models were used."""
    width, height = np.linalg.norm(rectangle[1] - rectangle[0]), np.linalg.norm(rectangle[3] - rectangle[0])
    distance = GROWTH * width * height / (2 * (width + height))
    angles = np.arange(ARC) * (2 * np.pi / ARC)
    arc = distance * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return enclose(np.rint((np.trunc(rectangle)[:, None] + arc[None]).reshape(-1, 2)))[0]


def order_corners(corners: Array) -> Array:
    """From the top left on, clockwise."""
    by_x = corners[np.argsort(corners[:, 0], kind="stable")]
    left, right = (side[np.argsort(side[:, 1], kind="stable")] for side in (by_x[:2], by_x[2:]))
    return np.array([left[0], right[0], right[1], left[1]])
