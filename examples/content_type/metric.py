"""What counts here: the share of files whose label is right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def share_right(samples: Iterable[Any]) -> float:
    """A sample has `name`, `inputs`, `reference` (the original model's answers) and `answers` (those to judge).

    The sample's name has the right label's index (see write_samples.py).
    """
    right = [sample.answers["target_label"].argmax() == int(sample.name.split("-")[1]) for sample in samples]
    return sum(right) / len(right)
