"""What a bundle tells of its outputs is read, and what it does not claim is not made up."""

from __future__ import annotations

import pytest

from bundler.model.results import restore_output

FIGURES = ("equal", "max_absolute", "mean_absolute", "max_relative", "cosine", "sqnr_db", "top1_agreement", "mismatch")


def test_an_output_that_could_not_be_judged_is_equal_to_nothing() -> None:
    output = restore_output({"name": "y", **dict.fromkeys(FIGURES)}, "it is empty in every sample")
    assert (output.equal, output.sqnr_db) == (False, None)
    assert output.reference is not None
    assert output.reference.unjudged == "it is empty in every sample"


def test_a_figure_of_another_bundler_is_refused() -> None:
    with pytest.raises(TypeError):
        restore_output({"name": "y", "more": 1}, "")
