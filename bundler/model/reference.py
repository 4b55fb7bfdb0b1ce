"""What recorded answers say of an output by themselves, before anything is compared with them."""

from __future__ import annotations

from dataclasses import dataclass

SIGNIFICANT = 1e-5
"""An output that never leaves this band around zero shows nothing of a model: errors of a tenth of it (`NEGLIGIBLE` in
`bundler.model.gates`) are rounding, whatever their ratio to so small a signal."""

EXACT = 2.0**-22
"""Two steps of a 32-bit float, as a share of the greatest magnitude: less than that is no difference between values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceFigures:
    """One output over all samples of a set.

    `signal` is the sum of the squared distances of all finite elements from their common mean. The mean is left out
    because it costs a model nothing to keep: of logits that share an offset of a thousand, an error of one is 60 dB
    below the output and as large as all that tells one class from another. `signals` has the same for each sample, with
    the sample's own mean, but never less than a sample of little signal has in this set: noise in a blank picture is
    held against what pictures usually show. Both are in the output's own unit, squared; `signal` is None for values
    that are no numbers, where all are equal, and where there are none.

    `numeric` outputs hold floating-point numbers, or integers that count as such; `peak` is the greatest magnitude,
    `quiet_peak` that of the sample where it is least. `scores` says that the output looks like scores of classes (see
    `bundler.onnxkit.score_rows`), `quantity` that its integers are rounded numbers and no labels. `elements` counts
    the values in all samples. `unjudged` says why no comparison can tell right from wrong here; empty where one can.
    `doubts` are reasons, each a sentence, why what is judged here says little.
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
