"""Figures of an output's recorded values, before anything is compared with them."""

from __future__ import annotations

from dataclasses import dataclass

SIGNIFICANT = 1e-5
"""An output that stays within this distance of zero cannot be judged: errors of a tenth of it (`NEGLIGIBLE` in
`bundler.model.gates`) are rounding."""

EXACT = 2.0**-22
"""Two ULPs of a float32, as a share of the largest magnitude: smaller differences count as equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceFigures:
    """One output over all samples of a set.

    `signal` is the sum of the squared distances of all finite elements from their common mean. The mean is excluded
    because a model keeps it easily: for logits with a common offset of a thousand, an error of one is 60 dB below the
    output, yet as large as the differences between classes. `signals` has the same for each sample, with the sample's
    own mean, but at least the energy of a quiet sample of this set, so that noise in a blank picture is compared with
    the signal of usual pictures. Both are in the output's own unit, squared; `signal` is None for values that are not
    numbers, for constant values, and for no values.

    `numeric` outputs have floating-point numbers, or integers that count as such; `peak` is the largest magnitude,
    `quiet_peak` the smallest of the samples' largest magnitudes. `scores` says that the output looks like class scores
    (see `bundler.onnxkit.score_rows`), `quantity` that its integers are rounded numbers and not labels. `elements`
    counts the values in all samples. `unjudged` says why no comparison can fail here; empty where one can. `doubts` are
    sentences on why a comparison here shows little.
    """

    name: str
    elements: int = 0
    numeric: bool = True
    signal: float | None = None
    signals: tuple[float, ...] = ()
    peak: float = 0.0
    quiet_peak: float = 0.0
    scores: bool = False
    quantity: bool = False
    unjudged: str = ""
    doubts: tuple[str, ...] = ()
